"""Results of a function of long texts, kept by what tells the texts apart and not by the texts themselves.

A cache that has its arguments as keys, as `functools.lru_cache` does, holds what was deleted long ago: certificates
that nobody serves any more, and their private keys. What is worth keeping, and how much of it, is said by the caller.
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
    """Return a decorator for a pure function of texts: it works each result out once, as long as it is remembered.

    The `limit` results that were asked for last are. Arguments are `str` or `bytes`, and go by position.
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
    """Return what no other texts have; where one ends and the next begins counts as well."""
    digest = hashlib.sha256()
    for text in texts:
        assert isinstance(text, str | bytes)
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        digest.update(b"%d:" % len(raw))
        digest.update(raw)
    return digest.digest()
