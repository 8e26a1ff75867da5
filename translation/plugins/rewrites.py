"""Rewritten paths: pairs of pattern and replacement (`regex_uri`) whose result always begins with a slash.

A gateway appends the rewritten path to the name of its upstream. Without a slash at its beginning, the path would
become a part of the host name, and where it begins with text of the client, the client would choose the host. Each
replacement of a generated pair therefore begins with a slash, or its pattern cannot match at the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.formats.patterns import TextPattern
from translation.safety.paths import keeps_path

_FIRST_GROUP = TextPattern(r"\$(?:\{([0-9]{1,2})\}|([0-9]{1,2}))")
_ANY = r"[\s\S]"
_END = rf"(?!{_ANY})"


def rewrite(pattern: str, replacement: str) -> list[str]:
    """Return pairs that replace the first match of a pattern in a path, and add a slash if the result has none.

    If it is not certain that a pair keeps its match away from the beginning, only matches there are replaced.
    """
    if keeps_path(pattern, replacement):
        return [pattern, replacement]
    first, after = f"(?:{pattern})({_ANY}*){_END}", group_count(pattern) + 1
    later = (f"(?!^)(?:{pattern})", replacement)
    return [
        *_from_slash(first, replacement, groups=after, rest=f"${{{after}}}"),
        *(f"^(?:{pattern})", f"/{replacement}"),
        *(later if not pattern.startswith("^") and keeps_path(*later) else ()),
    ]


def whole_rewrite(pattern: str, replacement: str) -> list[str]:
    """Return pairs that replace the path if a pattern matches anywhere in it, and add a slash if the result has none.

    The pattern ignores case.
    """
    whole = whole_path(pattern)
    if replacement.startswith("/"):
        return [whole, replacement]
    first = f"(?i:{_ANY}*?(?:{pattern}))"
    return [*_from_slash(first, replacement, groups=group_count(pattern)), whole, f"/{replacement}"]


def whole_path(pattern: str) -> str:
    """Return the pattern that matches a whole path where nginx looks for a pattern in it."""
    return f"(?i)^{_ANY}*?(?:{pattern}){_ANY}*$"


def _from_slash(first: str, replacement: str, *, groups: int, rest: str = "") -> Iterator[str]:
    """Yield the pair for paths in which the replacement begins with a group, and the group with a slash.

    The pattern finds the text of the group again, and adds two groups: what follows it, and the text without its slash.

    Args:
        first: A pattern with the group.
        replacement: The replacement.
        groups: The number of groups of the pattern.
        rest: What follows the replacement.
    """
    found = _FIRST_GROUP.match(replacement)
    number = int(found[1] or found[2]) if found else 0
    if found and 0 < number <= groups:
        after, text = groups + 1, groups + 2
        yield f"^(?={first}){_ANY}*?(?=\\{number}({_ANY}*){_END})/({_ANY}*?)\\{after}{_END}"
        yield f"/${{{text}}}{replacement[found.end :]}{rest}"


def source_of(pattern: str) -> str | None:
    """Return the pattern that a generated pattern with backreferences was made of; None if it was not generated."""
    head, found, tail = pattern.rpartition(f"){_ANY}*?(?=\\")
    number, middle, after = tail.partition(f"({_ANY}*){_END})/({_ANY}*?)\\")
    is_generated = found and middle and number.isdecimal() and after.removesuffix(_END).isdecimal()
    return f"^{head.removeprefix('^(?=')}" if is_generated and head.startswith("^(?=") else None


def group_count(pattern: str) -> int:
    """Return the number of groups of a pattern that replacements can refer to."""
    count, index, closed_from = 0, 0, -1
    while index < len(pattern):
        char = pattern[index]
        if char == "\\":
            index += 1
        elif closed_from >= 0:
            closed_from = -1 if char == "]" and index >= closed_from else closed_from
        elif char == "[":
            closed_from = index + (3 if pattern.startswith("^", index + 1) else 2)
        elif char == "(":
            count += _captures(pattern[index + 1 : index + 5])
        index += 1
    return count


def _captures(opening: str) -> bool:
    """Return whether a group is numbered, from the text after its parenthesis."""
    if opening[:1] not in ("?", "*"):
        return True
    named = opening.removeprefix("?").removeprefix("P")
    return named[:1] == "'" or (named[:1] == "<" and named[1:2] not in ("=", "!"))
