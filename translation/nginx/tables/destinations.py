"""Destinations: scheme, host and port of a URL to which a function of the gateway sends requests.

They are what the annotation says, whatever a client sends: variables may only follow after them. The one exception is
`$host`, for which the translation checks that the rules of the Ingress limit the hosts of requests.
"""

from __future__ import annotations

from typing import NamedTuple

from apisix_ingress.model.formats.patterns import ValuePattern

_NAME = r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*(?:\$host|\$\{host\})"
_REST = r"[/?][^\x00-\x20\x7f#\\]*|\$request_uri|\$\{request_uri\}"
_URL = ValuePattern(rf"(https?)://({_NAME})(?::([0-9]{{1,5}}))?((?:{_REST})?)")
"""A URL in which every parser finds the same host. The address of a request begins with a slash."""

_HIGHEST_PORT = 65_535


class Destination(NamedTuple):
    """The parts of a URL; a host may end with the variable `$host`, and no port means that of the scheme."""

    scheme: str
    host: str
    port: int | None
    rest: str

    @property
    def base(self) -> str:
        """The URL without the path and the query."""
        return f"{self.scheme}://{self.host}" + (f":{self.port}" if self.port else "")

    @property
    def is_literal(self) -> bool:
        """Whether the host is the same for every request."""
        return "$" not in self.host


def destination_of(url: str) -> Destination | None:
    """Return the parts of a URL; None if a variable could change the destination, or parsers may disagree about it."""
    found = _URL.fullmatch(url) if url else None
    if found is None or ".." in found[2]:
        return None
    port = int(found[3]) if found[3] else None
    if port is not None and not 0 < port <= _HIGHEST_PORT:
        return None
    return Destination(found[1], found[2], port, found[4])


def mirror_of(url: str) -> Destination | None:
    """Return the destination of copies of requests; None if it is not literal."""
    found = destination_of(url)
    return found if found and found.is_literal else None
