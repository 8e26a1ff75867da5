"""Places: numbers for the order in which patterns are tried, derived from the paths so that they seldom change.

Longer paths come first, as in ingress-nginx. The order of paths of one length, by their text, matters only if one
request may match both; so a further path moves only paths with its length and a common prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from translation.nginx.servers import Location
from translation.plugins.pattern_errors import plain_start

_SPAN = 256
"""Number of locations with overlapping paths of one length that have numbers of their own."""

_LONGEST = 8192
HIGHEST = 2 * _LONGEST * _SPAN
"""Every number is below."""


def places(locations: Sequence[Location], *, exact_first: bool) -> list[int]:
    """Return the numbers of locations in the order in which they are tried: the higher one first.

    Args:
        locations: In that order.
        exact_first: Whether exact paths come before all others.
    """
    groups: dict[tuple[bool, int], list[int]] = {}
    for index, location in enumerate(locations):
        group = (exact_first and location.type == "Exact", min(len(location.path), _LONGEST - 1))
        groups.setdefault(group, []).append(index)
    found = [0] * len(locations)
    for (first, length), indexes in groups.items():
        for index, rank in _ranks((index, locations[index].path) for index in indexes).items():
            found[index] = (_LONGEST * first + length) * _SPAN + rank
    return found


def _ranks(paths: Iterable[tuple[int, str]]) -> dict[int, int]:
    """Return the ranks of paths among the paths that may match the same requests; the last one has 0."""
    chains: list[tuple[str, list[int]]] = []
    for start, index in sorted((plain_start(path), index) for index, path in paths):
        if not chains or not start.startswith(chains[-1][0]):
            chains.append((start, []))
        chains[-1][1].append(index)
    ranked = (sorted(chain, reverse=True) for _, chain in chains)
    return {index: min(rank, _SPAN - 1) for chain in ranked for rank, index in enumerate(chain)}
