"""URLs to which a gateway sends requests: where they lead, whatever the values of the variables in them are.

The rules are those of lua-resty-http (`parse_uri`), which plugins and functions use.
"""

from __future__ import annotations

from typing import NamedTuple

from apisix_ingress.model.network.ip_address import parse_ip

_PORTS = {"http": 80, "https": 443, "grpc": 80, "grpcs": 443}
_ENDS = "/?"
_ODD = frozenset("@#\\$[] \t\r\n")
_DIGITS = frozenset("0123456789")


class Authority(NamedTuple):
    """Where a URL leads to; the host of an IPv6 address has no brackets. No port means that another field has it."""

    host: str
    port: int | None


def authority_of(url: str) -> Authority | None:
    """Return where a URL leads to; None if that is not certain.

    An address in brackets must not be followed by a variable anywhere: the parser looks for the last closing bracket of
    the URL, so that a client could append another port.
    """
    scheme, separator, rest = url.partition("://")
    default = _PORTS.get(scheme.lower())
    if not separator or default is None:
        return None
    end = min((place for place in map(rest.find, _ENDS) if place >= 0), default=len(rest))
    if rest.startswith("[") and ("$" in rest or "]" in rest[end:]):
        return None
    found = address_of(rest[:end])
    return Authority(found.host, found.port or default) if found else None


def address_of(text: str) -> Authority | None:
    """Return where `host`, `host:port`, `[v6]`, `[v6]:port` or an IPv6 address lead to; None for anything else."""
    if text.count(":") > 1 and "[" not in text:
        return Authority(text, None) if parse_ip(text) else None
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        colon, port = rest[:1], rest[1:]
        if not bracket or colon not in ("", ":"):
            return None
    else:
        host, colon, port = text.partition(":")
    if not host or not _ODD.isdisjoint(host) or (colon and not _is_port(port)):
        return None
    return Authority(host, int(port) if colon else None)


def _is_port(text: str) -> bool:
    return 0 < len(text) < 6 and _DIGITS.issuperset(text)
