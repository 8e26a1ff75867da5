"""Conditions of a route record on the listener of a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from translation.core.options import Options
from translation.gateway.entry.certificates import validation_of
from translation.gateway.entry.listeners import Entry, Listener
from translation.gateway.hostnames import pattern

_VERIFIED = "SUCCESS"
"""The variable ssl_client_verify of a connection with a certificate of the right CA."""

_CLOSE = 444
"""Status with which nginx closes the connection without a response."""

Conditions = list[Any]
"""`vars` of a route record."""


def address_and_port(listener: Listener, address: str, options: Options) -> Conditions:
    """Return the conditions on the address and port of a connection; if the port is unknown, on the scheme.

    Args:
        listener: The listener.
        address: The address of its Gateway, empty if Gateways share their addresses.
        options: The settings.
    """
    found: Conditions = [["server_addr", "==", address]] if address else []
    port = options.listener_ports.get(listener.port) or (listener.port if address else 0)
    if port:
        return [*found, ["server_port", "==", str(port)]]
    return [*found, ["scheme", "==", "https" if listener.protocol == "HTTPS" else "http"]]


def server_names(entry: Entry, listener: Listener) -> Conditions:
    """Return the conditions on the server name of the handshake: like the host, it must select the listener.

    Clients may send it in upper or lower case.
    """
    if listener.protocol != "HTTPS":
        return []
    found: Conditions = []
    if listener.hostname:
        found.append(["ssl_server_name", "~*", f"^{pattern(listener.hostname)}$"])
    if narrower := [each for each in entry.narrower(listener) if each]:
        others = "|".join(pattern(each) for each in sorted(narrower))
        found.append(["ssl_server_name", "!", "~*", f"^({others})$"])
    return found


def handshake(entry: Entry, listener: Listener) -> Conditions:
    """Return the conditions on the handshake of a connection: its server name, and the client's certificate.

    Gateways select certificates by server name alone: with the certificate of another Gateway with the same hostname, a
    client would not need a client certificate (APISIX 3.18).
    """
    found = server_names(entry, listener)
    if _is_verified(entry, listener):
        found.append(["ssl_client_verify", "==", _VERIFIED])
    return found


def _is_verified(entry: Entry, listener: Listener) -> bool:
    """Return whether a listener admits only clients with a verified certificate."""
    validation = validation_of(entry.spec, listener) if listener.protocol == "HTTPS" else None
    return validation is not None and validation.mode == "AllowValidOnly"


def guards(entry: Entry, listener: Listener, address: str, options: Options) -> Sequence[tuple[str, dict[str, Any]]]:
    """Return the records, by a suffix of their names, that keep requests of a listener from falling through.

    A gateway also tries routes of less specific hosts. A request that no route of the most specific listener matches
    gets a 404 response. One whose host and server name lead to different listeners gets a 421 response. The connection
    of a client without a verified certificate is closed if the handshake did not fail.
    """
    hosts = {"hosts": [listener.hostname]} if listener.hostname else {}
    where = address_and_port(listener, address, options)
    found = []
    if listener.hostname:
        found.append(("isolation", {"uri": "/*", **hosts, "priority": -100, "vars": where} | abort(404)))
    if names := server_names(entry, listener):
        misdirected = [*where, ["!AND", ["scheme", "==", "https"], *names]]
        found.append(("misdirected", {"uri": "/*", **hosts, "priority": -98, "vars": misdirected} | abort(421)))
    if (listener.hostname or address) and _is_verified(entry, listener):
        unverified = [*where, ["ssl_client_verify", "~=", _VERIFIED]]
        found.append(("unverified", {"uri": "/*", **hosts, "priority": -99, "vars": unverified} | abort(_CLOSE)))
    return found


def closed(listener: Listener, address: str, options: Options) -> dict[str, Any]:
    """Return the record of an HTTPS listener that cannot be served: handshakes succeed by the record of another one."""
    hosts = {"hosts": [listener.hostname]} if listener.hostname else {}
    where = address_and_port(listener, address, options)
    return {"uri": "/*", **hosts, "priority": -99, "vars": where} | abort(_CLOSE)


def abort(status: int, percentage: int | None = None) -> dict[str, Any]:
    """Return the part of a record that responds to requests, or to a share of them, with a status."""
    share = {} if percentage is None else {"percentage": percentage}
    return {"plugins": {"fault-injection": {"abort": {"http_status": status, **share}}}}
