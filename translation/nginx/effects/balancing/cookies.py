"""Affinity cookies: a hash of the cookie selects the backend; a client without a cookie gets one.

The first request of a client is balanced by the value that its cookie will have, so that the client does not move.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apisix_ingress.model.keys import ObjectKey
from translation.nginx.effects.balancing.backends import cookie_name, service_values
from translation.nginx.effects.branches import Site
from translation.nginx.tables.values import Values, integer

_OLD_BROWSERS = (
    "^(?:.*Chrome/[456]|.*iPhone OS 12|.*iPad; CPU OS 12"
    "|(?!.*Chrome)(?=.*Macintosh)(?=.*Intel Mac OS X 10_14)(?=.*Safari))"
)
"""Browsers that reject cookies with SameSite=None (util/same_site.lua of ingress-nginx)."""


@dataclass(frozen=True, slots=True)
class NewCookie:
    """The cookie for clients without one.

    Attributes:
        name: Its name.
        text: The header; empty: the client gets no cookie.
        known: The pattern of cookies that clients keep.
        when: The condition for this cookie, in addition to that the client has none.
    """

    name: str
    text: str
    known: str
    when: tuple[Sequence[object], ...] = ()


def affinity_cookies(site: Site, scheme: str) -> Iterator[NewCookie]:
    """Yield the cookies for clients without one; the last one is for all others."""
    backend = site.location.backend
    if backend is None:
        return
    # Affinity applies to the Service; only paths of an Ingress that requests it set the cookie.
    values = service_values(site, ObjectKey("Service", site.namespace, backend.name))
    if values.text("affinity") != "cookie":
        return
    name, known = cookie_name(values), known_cookie(values)
    if site.values.text("affinity") != "cookie":
        yield NewCookie(name, "", known)
        return
    parts = [f"{name}=$request_id"]
    age, expires = integer(values.text("session-cookie-max-age")), integer(values.text("session-cookie-expires"))
    if age is not None and age >= 0:
        parts.append(f"Max-Age={age}")
    elif expires is not None and expires >= 0:
        parts.append(f"Max-Age={expires}")
    domain = values.text("session-cookie-domain")
    if domain and ":" not in domain:
        parts.append(f"Domain={domain}")
    parts.append(f"Path={_plain_path(values.text('session-cookie-path') or site.location.given or '/')}")
    same_site = values.text("session-cookie-samesite")
    if scheme == "https" or values.flag("session-cookie-secure"):
        parts.append("Secure")
    parts.append("HttpOnly")
    if same_site == "None" and values.flag("session-cookie-conditional-samesite-none"):
        yield NewCookie(name, "; ".join(parts), known, (("http_user_agent", "~~", _OLD_BROWSERS),))
    if same_site in ("None", "Lax", "Strict"):
        parts.append(f"SameSite={same_site}")
    yield NewCookie(name, "; ".join(parts), known)


def _plain_path(path: str) -> str:
    """Return the path of a cookie: gateways add no header with a colon in its value, so that the folder is used."""
    start, colon, _ = path.partition(":")
    return f"{start.rpartition('/')[0]}/" if colon else path


def known_cookie(values: Values) -> str:
    """Return the pattern of cookies that clients keep; in mode `persistent`, others are replaced."""
    return "^[0-9a-f]{32}$" if values.text("affinity-mode") == "persistent" else ".+"
