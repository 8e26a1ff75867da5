"""Patterns of paths whose evaluation may fail with an error, as for a very long path.

A gateway treats an error like a pattern that does not match, so a shorter path without the protection would answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from apisix_ingress.model.exposure import Exposure
from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.json import JsonObject
from translation.core.builder import Builder
from translation.plugins.exposure import exposure

_LONGEST_PATH = 8192
_MOST_STEPS = 65_536
"""Attempts to match after which APISIX stops with an error: `lua_regex_match_limit` is 100,000."""

_CLASSES = frozenset("dDsSwW")
_REPEATED_GROUPS = (")*", ")+", "{", "(*")
_SPECIAL = frozenset(".^$*+?()[]{}|\\")
_PLAIN = TextPattern(r"[^.^$*+?()\[\]{}|\\]*")
_GROUP = TextPattern(r"\([^()]*\)")
_MATCH = ("host", "hosts", "uris", "methods", "remote_addrs", "filter_func", "priority")
_DOT_IS_ALL = "(?s:"
_ERROR: JsonObject = {"plugins": {"fault-injection": {"abort": {"http_status": 500}}}}


def close_on_error(draft: Builder, name: str, body: JsonObject) -> None:
    """Add a route that responds with 500 if a pattern of a guarded route fails, so that no other route answers.

    Args:
        draft: The translation.
        name: The name of the guarded route.
        body: The guarded route.
    """
    conditions = body.get("vars", [])
    for place, condition in enumerate(conditions):
        if condition[:2] not in (["uri", "~~"], ["uri", "~*"]) or not may_fail(condition[2]):
            continue
        if exposure(body) < Exposure.OPEN:
            anchor = "^" if condition[2].startswith("^") else ""
            failing = on_failure(condition[2].removeprefix("^"), condition[1], anchor=anchor)
            match = {field: body[field] for field in _MATCH if field in body}
            match["vars"] = [*conditions[:place], *failing, *conditions[place + 1 :]]
            draft.record("routes", f"{name}#error", draft.new_body("routes", f"{name}#error") | match | _ERROR)
        return


def on_failure(pattern: str, operator: str, anchor: str = "^") -> list[Sequence[object]]:
    """Return the conditions that looking for a pattern, after an anchor, in a path fails with an error.

    The second one limits the effect of a pattern that the gateway cannot compile to its own paths.
    """
    start = plain_start(pattern.removeprefix(_DOT_IS_ALL)) if anchor else ""
    own = [("uri", "~*", f"^{start}")] if len(start) > 1 else []
    return [on_error(f"{anchor}{pattern}", operator), *own]


def on_error(pattern: str, operator: str) -> list[str]:
    """Return the condition that looking for a pattern in the path fails with an error.

    It also matches nothing, which is always possible without an error.
    """
    return ["uri", "!", operator, f"^(?:[\\s\\S]*?(?:{pattern})|)"]


def may_fail(pattern: str) -> bool:
    """Return whether matching may take too many steps or too much memory, or the pattern is not a simple one.

    Repeated groups need memory for each repetition, and each choice multiplies the steps.
    """
    text = _without_escapes(pattern.replace(_DOT_IS_ALL, "(?:"))
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


def plain_start(pattern: str) -> str:
    """Return what each match of a pattern begins with, in lower case; empty if that is not known."""
    if _SPECIAL.isdisjoint(pattern):
        return pattern.lower()
    if "|" in _GROUP.sub("", pattern):
        return ""
    found = _PLAIN.match(pattern)
    start = found[0] if found else ""
    return (start[:-1] if pattern[len(start) : len(start) + 1] in ("*", "?", "{") else start).lower()
