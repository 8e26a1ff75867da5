"""Hosts and uris of a route, and how specifically they match a request (matching facts 1 to 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from apisix_ingress.model.formats.patterns import ValuePattern, pattern_of_user
from apisix_ingress.model.json import FrozenJson

LONGEST_PATH = 65_536
"""Maximum length of a path that is compared with patterns, in characters."""


@dataclass(frozen=True, slots=True)
class RouteFacts:
    """One route of the gateway.

    Attributes:
        id: Its id.
        body: Its body.
        order: Its position among equals; by default the gateway's after a restart, the order of ids.
        service_hosts: Hosts of its service, which are used if it has no hosts.
    """

    id: str
    body: FrozenJson
    order: int = 0
    service_hosts: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Its hosts in lower case; one empty string means every host."""
        own = [self.body["host"]] if "host" in self.body else self.body.get("hosts")
        return tuple(dict.fromkeys(str(host).lower() for host in own or self.service_hosts)) or ("",)

    @property
    def uris(self) -> tuple[str, ...]:
        """Its uris."""
        found = [self.body["uri"]] if "uri" in self.body else self.body.get("uris") or ()
        return tuple(dict.fromkeys(str(uri) for uri in found))

    @property
    def priority(self) -> int:
        """Its priority; 0 unless given."""
        return int(self.body.get("priority") or 0)


def fits_host(route: RouteFacts, host: str) -> bool:
    """Return whether a route matches a host."""
    return any(host_level(pattern, host) is not None for pattern in route.hosts)


def fits_path(route: RouteFacts, path: str) -> bool:
    """Return whether a route matches a path."""
    return any(uri_level(pattern, path) is not None for pattern in route.uris)


def host_level(pattern: str, host: str) -> tuple[int, int] | None:
    """Return how specific a matching host pattern is, or None."""
    if not pattern:
        return (2, 0)
    if pattern.startswith("*"):
        return (1, -len(pattern)) if host.endswith(pattern[1:]) else None
    return (0, 0) if pattern == host else None


def uri_level(pattern: str, path: str) -> tuple[int, int] | None:
    """Return how specific a matching uri pattern is, or None."""
    prefix, star, rest = pattern.partition("*")
    if not star:
        return (0, 0) if pattern == path else None
    if not path.startswith(prefix):
        return None
    if rest and not _fits_segments(pattern, path):
        return None
    return (1, -len(prefix))


def _fits_segments(pattern: str, path: str) -> bool:
    """Return whether a path that has the literal prefix of a pattern matches its segments (lua-resty-radixtree).

    A segment that begins with `*` matches any number of segments whatever follows the star, one that begins with `:`
    matches one, and any other segment is a regular expression. Without segments of the first two types, the prefix is
    all that counts: `/a*b` matches what `/a*` matches.
    """
    if not any(segment.startswith(("*", ":")) for segment in pattern.split("/")):
        return True
    compiled = _segments(pattern)
    return compiled is not None and compiled.fits(path)


@lru_cache(maxsize=1024)
def _segments(pattern: str) -> ValuePattern | None:
    parts = pattern.rstrip("/").split("/")
    texts = (".*" if part.startswith("*") else "[^/]+" if part.startswith(":") else part for part in parts)
    return pattern_of_user("(?s)" + "/".join(texts) + ("/" if pattern.endswith("/") else ""), LONGEST_PATH)
