"""Addresses of users that lead to the gateway itself or to what only machines should reach, refused by a setting.

An address counts in each of its spellings, as whoever reads them might: C's `inet_aton` takes numbers, octal and hex.
Of a name nothing is known but itself: what it resolves to is for the gateway to see.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import urlsplit

from apisix_ingress.model.hosts import canonical_host
from translation.context import Options
from translation.scope import Scope

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NETWORKS: tuple[tuple[str, str], ...] = (
    ("127.0.0.0/8", "a loopback address"),
    ("::1/128", "a loopback address"),
    ("0.0.0.0/8", "the unspecified address"),
    ("::/128", "the unspecified address"),
    ("169.254.0.0/16", "a link-local address, as those of cloud metadata are"),
    ("fe80::/10", "a link-local address"),
    ("224.0.0.0/4", "a multicast address"),
    ("ff00::/8", "a multicast address"),
    ("255.255.255.255/32", "the broadcast address"),
    ("fd00:ec2::254/128", "an address of cloud metadata"),
    ("fd20:ce::254/128", "an address of cloud metadata"),
    ("100.100.100.200/32", "an address of cloud metadata"),
    ("192.0.0.192/32", "an address of cloud metadata"),
)
_REFUSED: tuple[tuple[_Network, str], ...] = tuple((ipaddress.ip_network(text), what) for text, what in _NETWORKS)

_EMBEDDING = tuple(
    ipaddress.IPv6Network(text) for text in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")
)
"""Networks whose last 32 bits are an IPv4 address: compatible, mapped, translated (RFC 2765), NAT64."""

_PART = re.compile(r"0x[0-9a-f]*|\d+", re.ASCII)

_PORTS = {"http": 80, "https": 443}

_JUDGED_KEPT = 65_536

ADMIN = "an address of the Admin API"


def admin_addresses(urls: Iterable[str]) -> frozenset[tuple[str, int]]:
    """Return host and port of each URL of an Admin API; of a name its first label, too: that may be enough there."""
    found = set()
    for url in urls:
        parts = urlsplit(url)
        host = parts.hostname or ""
        names = {*_judged(host)[0], host if parsed(host) else host.partition(".")[0]}
        found |= {(name, parts.port or _PORTS[parts.scheme]) for name in names}
    return frozenset(found)


def check_address(scope: Scope, host: str, path: str) -> bool:
    """Say whether a user may name a host as where requests go; note it if not."""
    what = refused(scope.options, host)
    if what:
        message = (
            f"{host!r} is {what}, which is refused by the controller's setting kubernetes.external_addresses: "
            "refuse-internal; name another host"
        )
        scope.error("AddressRefused", path, message)
        scope.forbidden = True
    return not what


def refused(options: Options, host: str, port: int | None = None) -> str:
    """Return what a host is that the settings refuse; empty if they don't.

    Args:
        options: The settings.
        host: A name or an address, in any spelling.
        port: Only on this port the Admin API counts: what else runs on its machine may be for everybody. None: any.
    """
    if options.external_addresses == "allow":
        return ""
    spellings, what = _judged(host)
    admins = (its for name in spellings for admin, its in options.admin_addresses if admin == name)
    return what or (ADMIN if any(port in (None, its) for its in admins) else "")


@lru_cache(maxsize=_JUDGED_KEPT)
def _judged(host: str) -> tuple[tuple[str, ...], str]:
    """Return the spellings by which a host is compared, and what it is that nobody should reach."""
    name = canonical_host(host)
    address = parsed(name)
    if address is None:
        return (_short(name),), "the gateway itself" if name.rpartition(".")[2] == "localhost" else ""
    every = (address, *_embedded(address))
    found = (what for each in every for network, what in _REFUSED if each in network)
    return tuple(map(str, every)), next(found, "")


def parsed(text: str) -> _Address | None:
    """Return the address that a text is, however it is spelled; None if it is a name."""
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return _loose(text)
    # A zone tells the interface only.
    return ipaddress.IPv6Address(int(address)) if address.version == 6 else address


def _short(name: str) -> str:
    """Return a name; of a Service, without the domain of the cluster."""
    parts = name.split(".")
    return ".".join(parts[:2]) if parts[2:3] == ["svc"] else name


def _embedded(address: _Address) -> Iterator[_Address]:
    """Yield the IPv4 addresses inside an IPv6 address."""
    if not isinstance(address, ipaddress.IPv6Address) or int(address) < 2:
        return
    if any(address in network for network in _EMBEDDING):
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    elif address.sixtofour is not None:
        yield address.sixtofour
    elif address.teredo is not None:
        yield from address.teredo


def _loose(text: str) -> _Address | None:
    """Return the address that `inet_aton` takes a text for: up to four numbers, each decimal, octal or hex."""
    parts = text.split(".")
    if len(parts) > 4 or not all(_PART.fullmatch(part) for part in parts):
        return None
    numbers = [_number(part) for part in parts]
    *heads, last = numbers
    if None in numbers or last is None:
        return None
    value = 0
    for head in heads:
        if head is None or head > 255:
            return None
        value = value << 8 | head
    width = 8 * (4 - len(heads))
    return ipaddress.IPv4Address(value << width | last) if last < 1 << width else None


def _number(part: str) -> int | None:
    try:
        if part.startswith("0x"):
            return int(part[2:] or "0", 16)
        return int(part, 8) if part.startswith("0") and part != "0" else int(part)
    except ValueError:
        return None
