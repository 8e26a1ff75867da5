"""Caches results of a function of long strings, keyed by a hash instead of the strings themselves.

A cache with its arguments as keys, such as `functools.lru_cache`, keeps deleted data: certificates that are no longer
served, and their private keys. The caller decides what to cache and how many entries to keep.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")


def kept_by_digest(limit: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that caches the results of a pure function of strings.

    Keeps the `limit` most recently used results. Arguments are `str` or `bytes`, positional only.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        kept: OrderedDict[bytes, R | object] = OrderedDict()
        absent = object()

        @wraps(function)
        def remembering(*args: P.args, **kwargs: P.kwargs) -> R:
            digest = _digest(args)
            found = kept.pop(digest, absent)  # in one step: translations may run in two threads
            result = function(*args, **kwargs) if found is absent else cast("R", found)
            kept[digest] = result
            if len(kept) > limit:
                kept.popitem(last=False)
            return result

        return remembering

    return decorate


def _digest(texts: Iterable[object]) -> bytes:
    """Return a digest that is unique to these texts and their boundaries."""
    digest = hashlib.sha256()
    for text in texts:
        assert isinstance(text, str | bytes)
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return digest.digest()
