"""A parser that splits lists of the Admin API into records: a list may be too large to be parsed in one step.

The envelope is that of version 3 (`list`, an object if empty) or version 2 (`node.nodes`). The work between two yielded
values never takes longer than parsing one record, whatever the content is. `responses` interprets the records.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

from apisix_ingress.model.json import JsonObject

LARGEST_RECORD = 4 * 2**20
"""The maximum size of one record of a list in bytes; the Admin API accepts 1.5 MiB."""

TURN_BYTES, TURN_RECORDS, TURN_STEPS = 64 * 1024, 50, 2000
"""Number of bytes, records, or brackets within a record after which other tasks get a turn."""

_SHORT = 1024
_HEAD = re.compile(
    rb'\s{0,64}\{[^{}\[\]]{0,1024}?"(?:list"\s{0,64}:|node"\s{0,64}:\s{0,64}\{[^{}\[\]]{0,1024}?"nodes"\s{0,64}:)\s{0,64}\['
)
_GAP = re.compile(rb"\s{0,1024}(,?)\s{0,1024}")
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def _object(levels: int) -> str:
    """Return a pattern of an object with at most this many levels of objects; without backtracking, so it is linear."""
    inner = rf"|{_object(levels - 1)}" if levels > 1 else ""
    return rf'\{{[^"{{}}]*+(?:(?:{_STRING}{inner})[^"{{}}]*+)*+\}}'


_SHALLOW = re.compile(_object(9).encode(), re.DOTALL)
"""Most records: one match takes a quarter of the time of a search for each bracket."""
_TO_BRACKET = re.compile(rb'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+([\[\]{}])', re.DOTALL)


class NoList(ValueError):
    """A response is not a list of records, or one of them is larger than the limit."""


def begins_list(content: bytes) -> bool:
    """Return whether a response begins like a list."""
    return _HEAD.match(content) is not None


def items_of(content: bytes) -> Iterator[tuple[JsonObject, int] | None]:
    """Yield the objects of a list with their sizes in bytes, and None whenever other tasks should get a turn.

    Raises:
        NoList: Discard what was yielded before.
    """
    head = _HEAD.match(content) if len(content) > TURN_BYTES else None
    if head is None:
        yield from _of_small(content)
        return
    at, records, turn = head.end(), 0, head.end()
    while (start := _next(content, at, is_first=at == head.end())) is not None:
        end = start
        for end in _ends(content, start):
            if end < 0:
                yield None
        yield _parsed(content[start:end]), end - start
        at, records = end, records + 1
        if records % TURN_RECORDS == 0 or at - turn > TURN_BYTES:
            turn = at
            yield None
    _check_rest(content, head.end(), content.index(b"]", at))


def _of_small(content: bytes) -> Iterator[tuple[JsonObject, int] | None]:
    """Yield the objects of a list that is parsed in one step: a short one, or one with another beginning."""
    document = _parsed(content) if len(content) <= LARGEST_RECORD else {}
    if isinstance(node := document.get("node"), dict):
        document = {"list": node.get("nodes") or []}
    if "list" not in document:
        raise NoList
    items, size = document["list"], 0 if len(content) <= TURN_BYTES else len(content)
    for number, item in enumerate(items if isinstance(items, list) else (), 1):
        if isinstance(item, dict):
            yield item, size
        if number % TURN_RECORDS == 0:
            yield None


def _next(content: bytes, at: int, *, is_first: bool) -> int | None:
    """Return the position of the next object, None at the end of the list."""
    gap = _GAP.match(content, at)
    assert gap is not None  # it may be empty
    sign = content[gap.end() : gap.end() + 1]
    if sign == b"]" and not gap[1]:
        return None
    if sign != b"{" or bool(gap[1]) == is_first:
        raise NoList
    return gap.end()


def _ends(content: bytes, start: int) -> Iterator[int]:
    """Yield the end position of the object that begins at `start`; before it, yield -1 from time to time."""
    whole = _SHALLOW.match(content, start, start + TURN_BYTES)
    if whole is not None:
        yield whole.end()
        return
    depth, at, steps = 1, start + 1, 0
    while depth:
        found = _TO_BRACKET.match(content, at, start + LARGEST_RECORD)
        if found is None:
            raise NoList(f"an object is incomplete or larger than {LARGEST_RECORD // 2**20} MiB")
        depth += 1 if found[1] in b"{[" else -1
        at, steps = found.end(), steps + 1
        if steps % TURN_STEPS == 0:
            yield -1
    yield at


def _parsed(text: bytes) -> JsonObject:
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        raise NoList from None
    if not isinstance(document, dict):
        raise NoList
    return document


def _check_rest(content: bytes, begin: int, end: int) -> None:
    """Check that the text around the objects of a list is valid JSON, so that no record was lost."""
    if len(content) - end > _SHORT:
        raise NoList
    _parsed(content[:begin] + content[end:])
