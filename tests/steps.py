"""Counts the work of a call in steps instead of seconds, so that a test can say how it grows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


def steps(call: Callable[[], object]) -> int:
    """Return the number of functions that a call calls, plus the lengths of the texts whose methods are called.

    A method of `str` in C visits each character of its text about once. Engines of regular expressions are not counted.
    """
    count = 0

    def profile(_frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        if event == "call":
            count += 1
        elif event == "c_call":
            owner = getattr(argument, "__self__", None)
            count += 1 + (len(owner) if isinstance(owner, str | bytes) else 0)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def pumped(seed: str, times: int) -> Iterator[str]:
    """Yield a text with each of its characters and words repeated, also with an end that fits nothing."""
    parts = dict.fromkeys([*seed, *seed.replace(",", " ").split(), seed, f"{seed},", f"{seed} "])
    for part in filter(None, parts):
        before, _, after = seed.partition(part)
        for end in (after, f"{after}!", f"{after}\x00"):
            yield before + part * times + end
