"""Patterns whose evaluation may fail with an error, as for a very long path: nginx then responds with 500.

A gateway treats an error like a pattern that does not match, so a shorter path without the protection would answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from translation.nginx.effects.branches import Site
from translation.nginx.effects.protection.access import address_lists
from translation.nginx.effects.protection.authentication import authentication
from translation.nginx.effects.protection.limits import is_limited
from translation.nginx.effects.protection.proxy_ssl import is_unverifiable
from translation.nginx.effects.protection.required_objects import missing_object
from translation.nginx.effects.responses import response_headers
from translation.nginx.places import plain_start

_LONGEST_PATH = 8192
_MOST_STEPS = 65_536
"""Attempts to match after which APISIX stops with an error: `lua_regex_match_limit` is 100,000."""

_CLASSES = frozenset("dDsSwW")
_REPEATED_GROUPS = (")*", ")+", "{", "(*")


def fails_open(site: Site) -> bool:
    """Return whether an error of the location's pattern would lose a protection."""
    return may_fail(site.location.path) and _is_protected(site)


def on_error(path: str) -> list[Sequence[object]]:
    """Return the conditions that the evaluation of a pattern fails with an error.

    The first one matches the pattern or nothing, which is always possible without an error. The second one limits the
    effect of a pattern that the gateway cannot compile to its own paths.
    """
    start = plain_start(path)
    own = [("uri", "~*", f"^{start}")] if len(start) > 1 else []
    return [("uri", "!", "~*", f"^(?:{path}|)"), *own]


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


def _is_protected(site: Site) -> bool:
    source = site.location.source
    if source is None:
        return False
    guard = authentication(site)
    closed = source.closed or source.shut or guard.closed or guard.shut or missing_object(site)
    refuses = guard.functions or any(address_lists(site)) or is_limited(site)
    return bool(closed or refuses or is_unverifiable(site) or response_headers(site) is None)
