"""Experimental fields of rules, `retry` and `sessionPersistence`, as far as APISIX has an equivalent.

A session is a hash. The response to a request without a session contains a random value. This request is already
balanced by that value, so that the session does not move; later requests are balanced by the cookie or header that
contains it. Both kinds of requests have separate records, because an upstream hashes a single value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.json import canonical
from crds.gateway.common import Timeouts
from crds.gateway.routes import Retry, SessionPersistence

DEFAULT_NAME = "apisix-session"
"""Name of the cookie or header of a session that has no `sessionName`."""

_NAME = ValuePattern(r"[A-Za-z0-9_-]{1,128}")
_NEW = canonical({"type": "chash", "hash_on": "vars_combinations", "key": "$request_id"}).decode()
_OFF = "is experimental; set gateway_api.experimental or remove it"

NO_REFUSAL = ("", "")


@dataclass(frozen=True, slots=True)
class Branch:
    """One of the records of a match.

    Attributes:
        suffix: The end of the name of the record.
        vars: Conditions in addition to those of the match.
        balancer: Fields of the upstream as canonical JSON, or empty.
        header: Name and value of a header that is added to the response, or None.
    """

    suffix: str = ""
    vars: tuple[tuple[Any, ...], ...] = ()
    balancer: str = ""
    header: tuple[str, str] | None = None


PLAIN = (Branch(),)


def retries_of(retry: Retry | None, timeouts: Timeouts, *, enabled: bool) -> tuple[int | None, tuple[str, str]]:
    """Return how often a request is retried, None for the gateway's default, and why the route is not accepted."""
    if retry is None:
        return None, NO_REFUSAL
    if not enabled:
        return None, _refused("retry", _OFF)
    if retry.codes:
        return None, _refused("retry.codes", "cannot be served: gateways retry if a connection fails; remove it")
    if retry.backoff is not None:
        return None, _refused("retry.backoff", "cannot be served: gateways retry immediately; remove it")
    if timeouts.request:
        return None, _refused("timeouts.request", "cannot include retries; use timeouts.backendRequest")
    return retry.attempts, NO_REFUSAL


def branches_of(
    session: SessionPersistence | None, *, backends: int, enabled: bool
) -> tuple[tuple[Branch, ...], tuple[str, str]]:
    """Return the records of each match, and why the route is not accepted.

    Args:
        session: The field of the rule.
        backends: How many backends it has.
        enabled: Whether experimental fields are served.
    """
    if session is None:
        return PLAIN, NO_REFUSAL
    if refusal := _session_refusal(session, backends, enabled=enabled):
        return PLAIN, refusal
    name = session.session_name or DEFAULT_NAME
    if session.type == "Header":
        variable, kind, header = f"http_{name.lower().replace('-', '_')}", "header", (name, "$request_id")
    else:
        age = session.absolute_timeout if session.cookie_config.lifetime_type == "Permanent" else None
        text = f"{name}=$request_id; Path=/; HttpOnly" + (f"; Max-Age={int(age)}" if age else "")
        variable, kind, header = f"cookie_{name}", "cookie", ("Set-Cookie", text)
    known = canonical({"type": "chash", "hash_on": kind, "key": name}).decode()
    return (
        Branch(vars=((variable, "~~", "."),), balancer=known),
        Branch("_new", ((variable, "!", "~~", "."),), _NEW, header),
    ), NO_REFUSAL


def _session_refusal(session: SessionPersistence, backends: int, *, enabled: bool) -> tuple[str, str] | None:
    if not enabled:
        return _refused("sessionPersistence", _OFF)
    if session.session_name and not _NAME.fits(session.session_name):
        return _refused("sessionPersistence.sessionName", "may have letters, digits, - and _")
    if session.idle_timeout is not None:
        return _refused("sessionPersistence.idleTimeout", "cannot be served; remove it")
    permanent = session.type == "Cookie" and session.cookie_config.lifetime_type == "Permanent"
    if session.absolute_timeout is not None and not permanent:
        return _refused("sessionPersistence.absoluteTimeout", "needs a cookie with lifetimeType: Permanent")
    if backends != 1:
        return _refused("sessionPersistence", "cannot be served with several backends; use a rule for each backend")
    return None


def _refused(field: str, message: str) -> tuple[str, str]:
    return "UnsupportedValue", f"{field} {message}"
