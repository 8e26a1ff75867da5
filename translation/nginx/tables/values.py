"""Values of annotations: which texts ingress-nginx accepts, and the outcome of an invalid one.

An invalid value has one of three outcomes: the default applies, the path responds with 503, or the whole Ingress
is refused. The patterns are those of its validators (internal/ingress/annotations/parser/validators.go).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from apisix_ingress.model.formats.patterns import TextPattern, has_python_syntax

LARGEST = 2**53
"""The largest number that gateways read exactly; nginx accepts numbers up to 2^63."""

Outcome: TypeAlias = Literal["default", "closed", "refused"]
"""The outcome of an invalid value: the default applies, the path responds with 503, or the whole Ingress is refused."""

TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
"""The texts that Go's strconv.ParseBool accepts."""

_MAPPED = 96
"""Bits of an IPv6 address before the IPv4 address that it maps."""

_UNITS = {unit: 2 ** (10 * index) for index, units in enumerate(("bB", "kK", "mM", "gG")) for unit in units}

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_PCRE_ONLY = TextPattern(r"\\[hHNRz]")

LONGEST_PATTERN = 1024
"""Maximum length of a regular expression: a gateway compiles it for every path of the host."""


def boolean(text: str) -> bool | None:
    """Parse like Go's strconv.ParseBool; return None for other texts."""
    return True if text in TRUE else False if text in FALSE else None


def integer(text: str) -> int | None:
    """Parse like Go's strconv.Atoi; return None for other texts."""
    digits = text[1:] if text.startswith(("+", "-")) else text
    return int(text) if _is_digits(digits) and len(text) < 20 and abs(int(text)) < 2**63 else None


def size(text: str) -> int | None:
    """Return a size of nginx in bytes, at most the largest one that gateways read; None for any other text."""
    text = text.strip()
    unit = _UNITS.get(text[-1:])
    digits = text if unit is None else text[:-1]
    return min(int(digits) * (unit or 1), LARGEST) if _is_digits(digits) and len(digits) < 16 else None


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdecimal()


@lru_cache(maxsize=8)
def networks(text: str) -> tuple[str, ...] | None:
    """Return comma-separated networks and addresses, sorted, without duplicates; None if one is invalid.

    Every location of an Ingress has the same lists, which may be long.
    """
    found = set()
    for part in text.split(","):
        address, slash, bits = part.strip().partition("/")
        if "%" in address or (slash and not (bits.isascii() and bits.isdecimal())):
            return None
        try:
            network = _unmapped(ipaddress.ip_network(part.strip(), strict=False))
        except ValueError:
            return None
        single = network.prefixlen == network.max_prefixlen
        found.add(str(network.network_address) if single else str(network))
    return tuple(sorted(found))


def _unmapped(network: Network) -> Network:
    """Return a network of IPv6 addresses that map IPv4 addresses as one of IPv4 addresses, as Go does."""
    mapped = network.network_address.ipv4_mapped if isinstance(network, ipaddress.IPv6Network) else None
    if mapped is None or network.prefixlen < _MAPPED:
        return network
    return ipaddress.ip_network((mapped, network.prefixlen - _MAPPED))


def cookie_pair(text: str) -> tuple[str, str] | None:
    """Return a replacement in attributes of cookies, old and new text; None for `off`, patterns and others."""
    words = text.split()
    return (words[0], words[1]) if len(words) == 2 and not words[0].startswith("~") and ";" not in text else None


def python_pattern(pattern: str) -> str:
    """Return a PCRE pattern with named groups in Python's syntax, and a letter for each escape that only PCRE knows."""
    named = pattern.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")
    return "\\\\".join(_PCRE_ONLY.sub("x", part) for part in named.split("\\\\"))


def compiles(pattern: str) -> bool:
    """Return whether a pattern may be sent to a gateway; the controller never matches it."""
    return len(pattern) <= LONGEST_PATTERN and has_python_syntax(python_pattern(pattern))


@dataclass(frozen=True, slots=True)
class Values:
    """The annotations of one Ingress under the configured prefix, by their short names.

    An invalid value whose outcome is the default is ignored.
    """

    given: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        """Return a text without spaces at the ends of its lines; numbers and booleans are read with them."""
        given = self.given.get(name)
        if given is None:
            return default
        return "\n".join(line.strip() for line in given.split("\n")) if "\n" in given else given.strip()

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a boolean, or the default without a valid one."""
        found = boolean(self.given.get(name, ""))
        return default if found is None else found

    def number(self, name: str, default: int = 0) -> int:
        """Return an integer, or the default without a valid one."""
        given = self.given.get(name)
        found = integer(given) if given else None
        return default if found is None else found

    def has(self, name: str) -> bool:
        """Return whether an annotation is set and not empty."""
        return bool(self.text(name))

    def is_empty(self, name: str) -> bool:
        """Return whether an annotation is set, but empty."""
        return name in self.given and not self.text(name)
