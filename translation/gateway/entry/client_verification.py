"""Client certificates: the client-auth settings of ssl records, which gateways select by the server name alone.

Listeners of several ports and Gateways may have one hostname, and each has an ssl record. A gateway uses the first of
them for all connections (APISIX 3.18). So all of them request certificates as soon as one listener verifies clients,
and if some listener does not, no record makes the handshake fail: routes of the others require a verified
certificate (`matching.handshake`). They can have only one set of CAs; a listener with a different set than the
oldest Gateway is not accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from apisix_ingress.model.keys import IndexKey
from apisix_ingress.model.kinds.indexes import BY_FRONTEND, EVERY
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError
from crds.gateway.gateways import Validation
from translation.core.builder import Builder
from translation.core.options import Options
from translation.gateway.entry.certificates import Unresolved, client_cas, validation_of
from translation.gateway.entry.listeners import Entry, Listener, entry_of
from translation.gateway.entry.owned import is_our_gateway

_DEPTH = 10
"""Maximum number of certificates between a client's and the CA."""

STRICT = "AllowValidOnly"


@dataclass(frozen=True, slots=True)
class Verification:
    """How clients of a listener are verified.

    Attributes:
        client: The fields of its ssl record.
        refusal: Reason and message why the listener is not accepted, or empty texts.
        unresolved: The first reference to a CA that cannot be followed.
    """

    client: dict[str, Any] = field(default_factory=dict)
    refusal: tuple[str, str] = ("", "")
    unresolved: Unresolved | None = None


class _Verifier(NamedTuple):
    """A listener that verifies clients."""

    entry: Entry
    mode: str
    cas: str


def verification_of(entry: Entry, listener: Listener, view: View, options: Options) -> Verification:
    """Return how clients of a listener are verified."""
    if listener.protocol != "HTTPS" or not listener.is_open:
        return Verification()
    own = validation_of(entry.spec, listener)
    wrong, text = None, ""
    if own is not None:
        text, unresolved = _cas(entry, own, view, options)
        wrong = unresolved[0] if unresolved else None
        if not text:
            return Verification({}, ("NoValidCACertificate", "no CA certificate for clients can be used"), wrong)
    verifiers = sorted(_verifiers(listener.hostname, view, options), key=lambda each: each.entry.gateway.meta.age)
    if not verifiers:
        return Verification()
    first = verifiers[0]
    if own is not None and text != first.cas:
        return Verification({}, ("UnsupportedValue", _conflict(first, listener)), wrong)
    client: dict[str, Any] = {"ca": first.cas, "depth": _DEPTH}
    if not _is_strict(listener.hostname, first.cas, view, options):
        client["skip_mtls_uri_regex"] = [".*"]
    return Verification({"client": client}, unresolved=wrong)


def _conflict(first: _Verifier, listener: Listener) -> str:
    name = listener.hostname or "every host"
    return (
        f"{first.entry.gateway.meta.key} has different CA certificates for {name}, and gateways select them by server "
        "name only; use the same CA certificates or another hostname"
    )


def _cas(entry: Entry, validation: Validation, view: View, options: Options) -> tuple[str, list[Unresolved]]:
    return client_cas(Builder(entry.gateway.meta, view, options), entry.gateway.meta.key, validation)


def _verifiers(hostname: str, view: View, options: Options) -> Iterator[_Verifier]:
    """Yield the listeners of a hostname that verify clients with a CA that can be used."""
    for entry, listener in _listeners(BY_FRONTEND, hostname, view, options):
        validation = validation_of(entry.spec, listener)
        if validation is not None and (text := _cas(entry, validation, view, options)[0]):
            yield _Verifier(entry, validation.mode, text)


def _is_strict(hostname: str, cas: str, view: View, options: Options) -> bool:
    """Return whether every listener of a hostname admits only clients with a certificate of these CAs."""
    strict = sum(each.mode == STRICT for each in _verifiers(hostname, view, options) if each.cas == cas)
    other = sum(each.cas != cas for each in _verifiers(hostname, view, options))
    return strict + other == sum(1 for _ in _listeners(EVERY, hostname, view, options))


def _listeners(index: str, hostname: str, view: View, options: Options) -> Iterator[tuple[Entry, Listener]]:
    """Yield the HTTPS listeners of a hostname, of all Gateways of ours with an index value."""
    for gateway in view.find(CustomObject, IndexKey("Gateway", index, "")):
        if is_our_gateway(gateway, view, options):
            try:
                entry = entry_of(gateway, view, options)
            except SpecError:
                continue
            for listener in entry.listeners:
                if listener.protocol == "HTTPS" and listener.hostname == hostname and not entry.refusal(listener)[0]:
                    yield entry, listener
