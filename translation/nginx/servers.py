"""Servers: the locations that nginx derives from the Ingresses of one host, in the order in which they are tried.

Source: createServers, getBackendServers and updateServerLocations of ingress-nginx 1.15 (internal/ingress/controller).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from translation.ingress_spec import ServiceBackend
from translation.nginx.options import CATCH_ALL
from translation.nginx.sources import Source

ROOT = "/"


@dataclass(frozen=True, slots=True)
class Location:
    """One location of a server.

    Attributes:
        path: As in nginx: the path of a Prefix ends with a slash.
        type: Prefix also represents ImplementationSpecific.
        source: The Ingress whose annotations apply, or None.
        backend: The backend; None means the default backend.
        given: The path in the Ingress.
        plain: Whether redirects and rewrites of the Ingress are ignored.
    """

    path: str
    type: Literal["Exact", "Prefix"]
    source: Source | None = None
    backend: ServiceBackend | None = None
    given: str = ""
    is_default: bool = False
    plain: bool = False

    @property
    def target(self) -> str:
        """The rewrite target if it changes the path."""
        found = "" if self.source is None or self.plain else self.source.values.text("rewrite-target")
        return "" if found == self.path else found

    @property
    def regex(self) -> bool:
        """Whether it turns all paths of the host into patterns."""
        return bool(self.target) or (self.source is not None and self.source.values.flag("use-regex"))


@dataclass(frozen=True, slots=True)
class Server:
    """A host.

    Attributes:
        host: The name, a wildcard or `_`.
        sources: Its Ingresses, the oldest first, without canaries.
        every: Its Ingresses with canaries, whose settings for the TLS of the whole host also apply.
        locations: In the order in which patterns are tried; one of them matches every path.
        regex: Whether every path is a pattern.
    """

    host: str
    sources: tuple[Source, ...]
    locations: tuple[Location, ...]
    regex: bool
    every: tuple[Source, ...]

    def matching(self, path: str) -> Location | None:
        """Return the location of a path; None if the paths of the host are patterns."""
        if self.regex:
            return None
        exact = (each for each in self.locations if each.type == "Exact" and each.path == path)
        prefixes = (each for each in self.locations if each.type == "Prefix" and path.startswith(each.path))
        return next(exact, None) or next(prefixes, None)


def build_server(host: str, sources: Sequence[Source]) -> Server | None:
    """Return the server of a host; None if no Ingress serves it. The catch-all server always exists."""
    mains = tuple(source for source in sources if not source.canary)
    if not mains and host != CATCH_ALL:
        return None
    found = own_locations(host, mains)
    regex = any(location.regex for location in found.values())
    split = _split(found.values())
    by_text = sorted(split, key=lambda location: location.path, reverse=True)
    return Server(host, mains, tuple(sorted(by_text, key=lambda location: -len(location.path))), regex, tuple(sources))


def own_locations(host: str, mains: Sequence[Source]) -> dict[tuple[str, bool], Location]:
    """Return the locations of a host as its Ingresses name them, in the order in which nginx adds them.

    Args:
        host: The name.
        mains: Its Ingresses, the oldest first, without canaries.

    Returns:
        Path and whether it is exact → its location.
    """
    first = _catch_all(mains) if host == CATCH_ALL else _unmatched(mains[0])
    found = {(first.path, False): first}
    for source in mains:
        for path in source.paths(host):
            if path.backend.service is None:
                continue
            kind: Literal["Exact", "Prefix"] = "Exact" if path.path_type == "Exact" else "Prefix"
            key = (path.path or ROOT, kind == "Exact")
            if key not in found or found[key].is_default:
                found[key] = Location(key[0], kind, source, path.backend.service, key[0])
    return found


def _unmatched(source: Source) -> Location:
    """Return the location for requests that match no path; it has the annotations of the host's oldest Ingress."""
    backend = source.spec.default_backend.service if source.spec.default_backend else None
    return Location(ROOT, "Prefix", source, backend, ROOT, is_default=True)


def _catch_all(sources: Iterable[Source]) -> Location:
    for source in sources:
        default = source.spec.default_backend
        if default and default.service and not source.spec.rules:
            return Location(ROOT, "Prefix", source, default.service, ROOT, plain=True)
    return Location(ROOT, "Prefix", None, None, ROOT, is_default=True)


def _split(locations: Iterable[Location]) -> list[Location]:
    """Split a Prefix `/foo` into `/foo/` and `= /foo`, unless it is a pattern itself."""
    every = list(locations)
    exact = {location.path for location in every if location.type == "Exact"}
    found: list[Location] = []
    for location in every:
        if location.path == ROOT or location.type == "Exact" or location.regex:
            found.append(location)
            continue
        found.append(replace(location, path=f"{location.path.rstrip('/')}/"))
        if location.path not in exact:
            found.append(replace(location, type="Exact"))
    return found
