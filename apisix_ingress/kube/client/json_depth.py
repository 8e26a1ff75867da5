"""Limits how deeply JSON may be nested, so that one object that is too deep does not break a whole list.

The API server accepts 10,000 levels in fields without a schema, such as a plugin's config. orjson reads 1,024 levels
and writes 254. Callers report objects that are too deep.
"""

from __future__ import annotations

import re
from typing import Any

DEEPEST = 200
"""Maximum levels of an object, including the object; deeper objects are not read."""

CUT_BELOW = DEEPEST + 50
"""Levels of a response that `cut` keeps. An object that was cut is still deeper than `DEEPEST`, and thus detected."""

_CONTAINERS = (dict, list)
"""Not `dict | list`, which would be evaluated for each value and double the time of `is_deep`."""

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
"""A bracket or a whole string, terminated or not, so that the scan visits each byte once."""


def cut(content: bytes, levels: int = CUT_BELOW) -> bytes:
    """Replace every array and object below `levels` in JSON text with null, in linear time."""
    if content.count(b"[") + content.count(b"{") <= levels:
        return content
    kept: list[bytes] = []
    depth = position = 0
    for token in _TOKEN.finditer(content):
        sign = token[0]
        if sign in b"[{":
            depth += 1
            if depth == levels + 1:
                kept += (content[position : token.start()], b"null")
                position = len(content)  # if no bracket closes it, drop the rest
        elif sign in b"]}":
            if depth == levels + 1:
                position = token.end()
            depth -= 1
    return b"".join((*kept, content[position:]))


def is_deep(value: Any, levels: int) -> bool:
    """Return whether a parsed JSON value has more than `levels` levels of arrays and objects; a scalar has 0."""
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(levels):
        if not level:
            return False
        level = [
            child
            for each in level
            for child in (each.values() if isinstance(each, dict) else each)
            if isinstance(child, _CONTAINERS)
        ]
    return bool(level)


def check_depth(value: Any) -> None:
    """Check that a value has at most `DEEPEST` levels.

    Raises:
        ValueError: It has more.
    """
    if is_deep(value, DEEPEST):
        raise ValueError(f"nested deeper than {DEEPEST} levels")
