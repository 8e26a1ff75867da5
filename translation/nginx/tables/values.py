"""Values of annotations: which texts ingress-nginx takes, and what a wrong one leads to.

A wrong value has one of three outcomes, by annotation: the default applies, the path answers 503, or the whole Ingress
is refused. The patterns are those of its validators (internal/ingress/annotations/parser/validators.go).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Outcome: TypeAlias = Literal["default", "closed", "refused"]
"""What a wrong value leads to: the default applies, the path answers 503, or the Ingress is refused as a whole."""

TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
"""The texts that Go's strconv.ParseBool takes."""

_INTEGER = re.compile(r"[+-]?[0-9]+")
_SIZE = re.compile(r"([0-9]+)([bkmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30}

LONGEST_PATTERN = 1024
"""Characters of a regular expression that is taken over: a gateway compiles it for every path of the host."""


def boolean(text: str) -> bool | None:
    """Return what Go's strconv.ParseBool returns; None for anything else."""
    return True if text in TRUE else False if text in FALSE else None


def integer(text: str) -> int | None:
    """Return what Go's strconv.Atoi returns; None for anything else."""
    return int(text) if _INTEGER.fullmatch(text) and len(text) < 19 else None


def size(text: str) -> int | None:
    """Return a size of nginx in bytes; None for any other text."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * _UNITS[found[2].lower()] if found and len(found[1]) < 16 else None


def networks(text: str) -> tuple[str, ...] | None:
    """Return a list of networks and addresses separated by commas, sorted and once each; None if one is wrong."""
    found = set()
    for part in text.split(","):
        try:
            network = ipaddress.ip_network(part.strip(), strict=False)
        except ValueError:
            return None
        single = network.prefixlen == network.max_prefixlen
        found.add(str(network.network_address) if single else str(network))
    return tuple(sorted(found))


def python_pattern(pattern: str) -> str:
    """Return a pattern of PCRE with the names of groups as Python writes them."""
    return pattern.replace("(?<", "(?P<").replace("(?P<=", "(?<=").replace("(?P<!", "(?<!")


def compiles(pattern: str) -> bool:
    """Return whether a pattern may be handed to a gateway; it is never matched against anything here."""
    if len(pattern) > LONGEST_PATTERN:
        return False
    try:
        re.compile(python_pattern(pattern))
    except (re.error, RecursionError, OverflowError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class Values:
    """The annotations of one Ingress under the configured prefix, by their short names.

    A wrong value whose outcome is the default counts as absent.
    """

    given: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        return self.given.get(name, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a boolean, or the default without a valid one."""
        found = boolean(self.given.get(name, ""))
        return default if found is None else found

    def number(self, name: str, default: int = 0) -> int:
        """Return an integer, or the default without a valid one."""
        found = integer(self.given.get(name, ""))
        return default if found is None else found

    def has(self, name: str) -> bool:
        """Return whether an annotation is set to something."""
        return bool(self.given.get(name))
