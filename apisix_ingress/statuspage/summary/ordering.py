"""Sorting long lists piece by piece, so that other tasks run in between."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeVar

from apisix_ingress.runtime.tasks import in_turns

T = TypeVar("T")

CHUNK = 200
"""Number of steps before other tasks can run: about 2 ms."""


async def ordered(items: Iterable[T], place: Callable[[T], Any]) -> list[T]:
    """Sort, yielding to other tasks in between."""
    iterator, pieces = iter(items), []
    while piece := list(islice(iterator, CHUNK)):
        pieces.append(sorted(piece, key=place))
        await asyncio.sleep(0)
    return [item async for item in in_turns(heapq.merge(*pieces, key=place), every=CHUNK)]
