"""The destination of a string in a plugin: the host of an address or URL, in notations that every parser reads alike.

Only plain notations are accepted. Anything that a gateway or a library of its plugins might parse differently is
rejected: user names and passwords before the host, a question mark directly after it (some parsers find the host after
a later `@`), variables, escapes, backslashes, Unix sockets.
"""

from __future__ import annotations

from typing import NamedTuple

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.network.ip_address import parse_ip

_HOST = r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
_ADDRESS = ValuePattern(_HOST)
_URL = ValuePattern(rf"(?P<scheme>[Hh][Tt][Tt][Pp][Ss]?)://{_HOST}(?:/[!-#%-;=?-\[\]_a-z~]*)?")
_PATH = ValuePattern(r"/[!-#%-;=?-\[\]_a-z~]*")
_WORD = ValuePattern(r"[A-Za-z0-9_-]+")

_PORTS = {"http": 80, "https": 443}


class Target(NamedTuple):
    """A destination; without a port, another field has it."""

    host: str
    port: int | None = None


def target_of_address(text: str) -> Target | None:
    """Return the destination of `host`, `host:port`, `[v6]`, `[v6]:port` or an IPv6 address; None for anything else."""
    if found := _ADDRESS.fullmatch(text):
        return Target(found["host"], int(found["port"]) if found["port"] else None)
    return Target(text) if ":" in text and "[" not in text and parse_ip(text) is not None else None


def target_of_url(text: str) -> Target | None:
    """Return the destination of a plain http or https URL; None for anything else."""
    found = _URL.fullmatch(text)
    return Target(found["host"], int(found["port"] or _PORTS[found["scheme"].lower()])) if found else None


def is_path(text: str) -> bool:
    """Return whether a string stays a path when it is appended to an address."""
    return _PATH.fits(text)


def is_word(text: str) -> bool:
    """Return whether a string stays one part of an address that it is inserted into."""
    return _WORD.fits(text)


def is_selector(text: str) -> bool:
    """Return whether a name or JSONPath selects each part of a document at most once.

    A second `..` multiplies the results by the depth of the document, and a list such as `[0,0]` by its length. A slice
    such as `[0:9]` is expanded item by item, however long the document is.
    """
    return text.count("..") <= 1 and not {*"(,:"} & {*text}
