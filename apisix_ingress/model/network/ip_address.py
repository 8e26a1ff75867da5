"""IP addresses in every spelling that a resolver, client or gateway might accept.

* C's `inet_aton`, which many resolvers use, takes one to four numbers, each decimal, octal or hexadecimal.
* nginx (`ngx_inet_addr`) takes four decimal numbers, 0 if empty. The API server reads endpoints in decimal, too.

So `010.0.0.1` is 8.0.0.1 or 10.0.0.1.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from apisix_ingress.model.formats.patterns import ValuePattern

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_EMBEDDING = tuple(
    ipaddress.IPv6Network(text) for text in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")
)
"""Networks whose last 32 bits are an IPv4 address: compatible, mapped, translated (RFC 2765), NAT64."""

NUMBER = ValuePattern(r"0x[0-9a-f]*|[0-9]+")
"""A part of an IPv4 address in any notation; no name ends with one."""

_DECIMAL = ValuePattern(r"[0-9]*")

_LONGEST = 253
"""Maximum length of a host; longer texts are not parsed."""


def is_ip(text: str) -> bool:
    """Return whether a string is an IPv4 or IPv6 address; the API server does not accept a zone."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text


def canonical_ip(text: str) -> str:
    """Return the canonical form of an address that the API server accepts; any other text unchanged."""
    if ":" not in text:
        return text
    address = parse_ip(text)
    return text if address is None else str(address)


def parse_ip(text: str) -> IpAddress | None:
    """Return the address in a text, in any spelling; None if the text is a name."""
    return next(iter(readings(text)), None)


def readings(text: str) -> tuple[IpAddress, ...]:
    """Return the addresses that different software reads in a text, in any spelling; none if the text is a name."""
    if len(text) > _LONGEST:
        return ()
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return tuple(dict.fromkeys(filter(None, (_loose(text), _decimal(text)))))
    # A zone only names the interface.
    return (ipaddress.IPv6Address(int(address)) if address.version == 6 else address,)


def embedded_ips(address: IpAddress) -> Iterator[IpAddress]:
    """Yield the IPv4 addresses inside an IPv6 address."""
    if not isinstance(address, ipaddress.IPv6Address) or int(address) < 2:
        return
    if any(address in network for network in _EMBEDDING):
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    elif address.sixtofour is not None:
        yield address.sixtofour
    elif address.teredo is not None:
        yield from address.teredo


def _loose(text: str) -> IpAddress | None:
    """Return the address that `inet_aton` parses from a text: up to four numbers, each decimal, octal or hex."""
    parts = text.split(".")
    if len(parts) > 4 or not all(NUMBER.fits(part) for part in parts):
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


def _decimal(text: str) -> IpAddress | None:
    """Return the address that nginx reads in a text."""
    parts = text.split(".")
    if len(parts) != 4 or not all(_DECIMAL.fits(part) for part in parts):
        return None
    numbers = [int(part or "0") for part in parts]
    return ipaddress.IPv4Address(bytes(numbers)) if max(numbers) < 256 else None


def _number(part: str) -> int | None:
    try:
        if part.startswith("0x"):
            return int(part[2:] or "0", 16)
        return int(part, 8) if part.startswith("0") and part != "0" else int(part)
    except ValueError:
        return None
