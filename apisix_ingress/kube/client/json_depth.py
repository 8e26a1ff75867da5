"""The depth of JSON: how deep an object may be nested, and how what is deeper is kept from harming its neighbours.

The API server accepts 10,000 levels where a plugin's config may hold anything; our parser reads 1,024 and writes 254.
Text and values only: who is told of what was too deep is decided elsewhere.
"""

from __future__ import annotations

import re
from typing import Any

DEEPEST = 200
"""Levels of an object, itself included; deeper ones are not read."""

CUT_BELOW = DEEPEST + 50
"""Levels of an answer that survive `cut`: what is left of an object that lost something is still too deep itself."""

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[{]|[\]}]', re.DOTALL)
"""Brackets, and texts as a whole, ended or not: no byte is looked at twice."""


def cut(content: bytes, levels: int = CUT_BELOW) -> bytes:
    """Return JSON text with null in place of every array and object that is nested deeper; takes linear time."""
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
                position = len(content)  # unless it is closed, nothing follows
        elif sign in b"]}":
            if depth == levels + 1:
                position = token.end()
            depth -= 1
    return b"".join((*kept, content[position:]))


def is_deep(value: Any, levels: int) -> bool:
    """Say whether a parsed JSON value has more levels of arrays and objects; a plain value has none."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        if not level:
            return False
        level = [
            child
            for each in level
            for child in (each.values() if isinstance(each, dict) else each)
            if isinstance(child, dict | list)
        ]
    return bool(level)


def check_depth(value: Any) -> None:
    """Refuse an object with more than `DEEPEST` levels.

    Raises:
        ValueError: it has.
    """
    if is_deep(value, DEEPEST):
        raise ValueError(f"nested deeper than {DEEPEST} levels")
