"""Patterns of paths whose evaluation may fail with an error, as for a very long path.

A gateway treats an error like a pattern that does not match, so a shorter path without the protection would answer.
"""

from __future__ import annotations

_LONGEST_PATH = 8192
_MOST_STEPS = 65_536
"""Attempts to match after which APISIX stops with an error: `lua_regex_match_limit` is 100,000."""

_CLASSES = frozenset("dDsSwW")
_REPEATED_GROUPS = (")*", ")+", "{", "(*")


def on_error(pattern: str, operator: str) -> list[str]:
    """Return the condition that looking for a pattern in the path fails with an error.

    It also matches nothing, which is always possible without an error.
    """
    return ["uri", "!", operator, f"^(?:[\\s\\S]*?(?:{pattern})|)"]


def may_fail(pattern: str) -> bool:
    """Return whether matching may take too many steps or too much memory, or the pattern is not a simple one.

    Repeated groups need memory for each repetition, and each choice multiplies the steps.
    """
    text = _without_escapes(pattern)
    if text is None or text.count("(?") != text.count("(?:") or any(map(text.__contains__, _REPEATED_GROUPS)):
        return True
    inner = text.rstrip(")")
    text = inner.removesuffix(".*")  # It matches whatever is left.
    repeated = text.count("*") + text.count("+")
    choices = text.count("|") + text.count("?") - text.count("(?:")
    return bool(_LONGEST_PATH**repeated * 2**choices > _MOST_STEPS)


def _without_escapes(pattern: str) -> str | None:
    """Return a pattern with a letter for each escaped character; None if it has other escapes, as back references."""
    found = []
    characters = iter(pattern)
    for character in characters:
        escaped = next(characters, "") if character == "\\" else ""
        if escaped.isalnum() and escaped not in _CLASSES:
            return None
        found.append("x" if escaped else character)
    return "".join(found)
