"""Paths of a host, joined: nginx splits `/foo` as a Prefix into `/foo` and `/foo/`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from translation.nginx.native.merging import Merged
from translation.nginx.native.model import Place


@dataclass(frozen=True, slots=True)
class Path:
    """One path and what it does.

    Attributes:
        place: The location; of a joined path, the one with the longer path.
        joined: Whether requests for the path without a slash at its end do the same.
        action: What it does.
    """

    place: Place
    joined: bool
    action: Merged

    @property
    def stem(self) -> str:
        """The path without `/*` or a slash at its end."""
        return self.place.uris[0].removesuffix("*").rstrip("/") or "/"


def joined_paths(places: Sequence[Place], merge: Callable[[Place], Merged]) -> Iterator[Path]:
    """Yield the paths in their order; an Exact one with the same action as the Prefix with a slash is part of that."""
    actions = {id(place): merge(place) for place in places}
    exact = {place.uris[0]: place for place in places if place.kind == "Exact"}
    taken = set()
    for place in places:
        twin = exact.get(place.uris[0].removesuffix("/*")) if place.kind == "Prefix" else None
        if twin is not None and twin.hosts == place.hosts and actions[id(twin)] == actions[id(place)]:
            taken.add(id(twin))
    for place in places:
        if id(place) in taken:
            continue
        is_root = place.uris[0] == "/*" and "/" not in exact
        twin = exact.get(place.uris[0].removesuffix("/*")) if place.kind == "Prefix" else None
        yield Path(place, is_root or (twin is not None and id(twin) in taken), actions[id(place)])
