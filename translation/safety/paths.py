"""Rewritten paths: whether the result always begins with a slash.

A gateway appends a rewritten path to the name of its upstream (`proxy_pass http://apisix_backend$upstream_uri`). A path
without a slash at its beginning would extend this name, and a client could choose where the gateway connects to.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_OPTIONAL = ("?", "*", "{")
"""Quantifiers that may make what precedes them optional."""

_META = frozenset("\\^$.[]|()?*+{}/")
_NOT_AT_START = "(?!^)"
_KNOWN_ESCAPES = frozenset("dDwWsSbBAzZhHvVRKnrtf")
"""Letters after a backslash that neither change how the rest of a pattern is read nor contain a parenthesis."""


@dataclass(slots=True)
class _Group:
    """A group of a pattern.

    Attributes:
        start: Index of its content.
        captures: Whether it has a number.
        above: The group around it.
        is_sure: Whether it takes part in every match, as far as its own quantifier and choices show.
        ends_pattern: Whether it is optional and only the end of the path follows it.
        repeats: Whether its text may be that of a later repetition.
    """

    start: int
    captures: bool
    above: _Group | None
    is_sure: bool = True
    ends_pattern: bool = False
    repeats: bool = False


@dataclass(slots=True)
class _Pattern:
    """A pattern that could be followed: its groups, and whether it is a choice as a whole."""

    text: str
    groups: list[_Group] = field(default_factory=list)
    is_choice: bool = False


def keeps_path(pattern: str, replacement: str) -> bool:
    """Return whether a path always begins with a slash after the match of a pattern in it was replaced.

    The path begins with a slash, and what precedes the match stays. So one of these must hold:

    * the replacement begins with a slash;
    * the pattern cannot match at the beginning of the path;
    * the replacement begins with a group that takes part in every match and begins with a slash, or that is everything
      that remains of the path;
    * the replacement begins with the first group, which is at the beginning of the path, and a slash.

    Patterns that this function cannot follow are rejected.
    """
    if replacement.startswith("/"):
        return True
    found = _read(pattern.removeprefix(_NOT_AT_START).removeprefix("(?i)"))
    if found is None or found.is_choice:
        return False
    if pattern.startswith(_NOT_AT_START) or _begins_with_literal(found.text):
        return True
    number, rest = _first_group(replacement)
    numbered = [group for group in found.groups if group.captures]
    return 0 < number <= len(numbered) and _keeps(found.text, numbered[number - 1], rest)


def _keeps(pattern: str, group: _Group, rest: str) -> bool:
    """Return whether the text of a group, and after it the rest of a replacement, begin with a slash."""
    if pattern[: group.start] in ("(", "^(") and not group.repeats and rest.startswith("/"):
        return True
    if not pattern.startswith("/", group.start) or pattern.startswith(_OPTIONAL, group.start + 1):
        return False
    around = group
    while around.is_sure and around.above:
        around = around.above
    # Without its text nothing remains but a line break at the end of the path, which is not a name of a host.
    return around.is_sure or (around.ends_pattern and _is_whole(around) and rest[:1] in ("", "/"))


def _is_whole(group: _Group) -> bool:
    """Return whether the groups around a group take part in every match."""
    return group.above is None or (group.above.is_sure and _is_whole(group.above))


def _begins_with_literal(pattern: str) -> bool:
    """Return whether a pattern begins with a character other than a slash: it never matches at the beginning."""
    first, following = pattern[:1], pattern[1:2]
    if first == "\\":
        first, following = ("" if following.isalnum() or following == "/" else following), pattern[2:3]
    elif first in _META:
        first = ""
    return first != "" and following not in _OPTIONAL


def _first_group(replacement: str) -> tuple[int, str]:
    """Return the number of the group that a replacement begins with, and the rest; 0 if it begins otherwise."""
    if not replacement.startswith("$"):
        return 0, ""
    name = replacement[1:]
    if name.startswith("{"):
        name, brace, rest = name[1:].partition("}")
        name = name if brace else ""
    else:
        rest = name.lstrip("0123456789")
        name = name.removesuffix(rest) if rest else name
    is_number = name.isascii() and name.isdecimal() and len(name) < 4
    return (int(name), rest) if is_number else (0, "")


def _read(pattern: str) -> _Pattern | None:
    """Return the groups of a pattern; None if it is too complex."""
    found, here, index = _Pattern(pattern), None, 0
    while index < len(pattern):
        match pattern[index]:
            case "\\":
                if not _is_simple_escape(pattern[index + 1 : index + 2]):
                    return None
                index += 1
            case "[":
                index = _end_of_class(pattern, index)
                if not index:
                    return None
            case "(":
                captures = pattern[index + 1 : index + 2] not in ("?", "*")
                if not captures and not pattern.startswith("?:", index + 1):
                    return None
                here = _Group(index + (1 if captures else 3), captures, here)
                found.groups.append(here)
            case ")":
                if here is None:
                    return None
                _close(here, pattern[index + 1 :])
                here = here.above
            case "|" if here:
                here.is_sure = False
            case "|":
                found.is_choice = True
        index += 1
    return found if here is None else None


def _close(group: _Group, following: str) -> None:
    group.repeats = following.startswith(("+", "*", "{"))
    if following.startswith(_OPTIONAL):
        group.ends_pattern = group.is_sure and following == "?$"
        group.is_sure = False


def _end_of_class(pattern: str, start: int) -> int:
    """Return the index of the bracket that closes a character class; 0 if there is none, or if it is too complex."""
    index = start + 1
    index += pattern.startswith("^", index)
    index += pattern.startswith("]", index)
    while index < len(pattern):
        match pattern[index]:
            case "]":
                return index
            case "[":  # [:alpha:] has a bracket of its own
                return 0
            case "\\":
                if not _is_simple_escape(pattern[index + 1 : index + 2]):
                    return 0
                index += 1
        index += 1
    return 0


def _is_simple_escape(char: str) -> bool:
    return bool(char) and (char in _KNOWN_ESCAPES or not (char.isascii() and char.isalnum()))
