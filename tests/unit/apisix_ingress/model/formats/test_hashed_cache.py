"""Cached results without the texts that they were computed from."""

import sys

from apisix_ingress.model.formats.hashed_cache import kept_by_digest


def test_result_is_worked_out_once() -> None:
    calls: list[tuple[bytes, str]] = []

    @kept_by_digest(2)
    def size(first: bytes, second: str) -> int:
        calls.append((first, second))
        return len(first) + len(second)

    assert [size(b"a", "bc"), size(b"a", "bc"), size(b"ab", "c")] == [3, 3, 3]
    assert calls == [(b"a", "bc"), (b"ab", "c")]


def test_the_least_recently_used_result_is_evicted_first() -> None:
    calls: list[str] = []

    @kept_by_digest(2)
    def noted(text: str) -> str:
        calls.append(text)
        return ""

    for text in ("a", "b", "a", "c", "a", "b"):
        noted(text)
    assert calls == ["a", "b", "c", "b"]


def test_a_text_that_was_freed_is_not_kept() -> None:
    @kept_by_digest(10)
    def empty(text: bytes) -> bool:
        return not text

    text = b"x" * 1000
    before = sys.getrefcount(text)
    empty(text)
    assert sys.getrefcount(text) == before
