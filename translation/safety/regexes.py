r"""How much work a regular expression of a tenant causes in a gateway (APISIX 3.18: PCRE2, `lua_regex_match_limit`).

The limit counts the steps from one position of the text. A gateway tries every position, and comparisons of a
backreference are not limited: with a path of 7 kB, `(a*)\1[bc]` takes 26 s and `a{0,1000}a{0,1000}[bc]` 17 s, while the
worker serves no other team. A pattern that begins with `^` has one position, which takes less than a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

LONGEST = 2000
"""Maximum length of a pattern."""

MOST_CHOICES = 8
"""Maximum number of ways to match the limited repetitions of a pattern that does not begin with `^`."""

_ANCHOR = "must begin with ^, or have at most one part of any length, such as .*"

Members = Callable[[str], bool]


def regex_fault(pattern: str, *, searches_bodies: bool = False) -> str:
    """Return what is wrong with a pattern, as the rest of a sentence; empty if it costs a gateway little.

    Args:
        pattern: As in a record.
        searches_bodies: Whether it is applied to whole bodies, which are longer than paths and headers.
    """
    return f"is longer than {LONGEST} characters" if len(pattern) > LONGEST else _fault(pattern, searches_bodies)


@lru_cache(maxsize=4096)
def _fault(pattern: str, searches_bodies: bool) -> str:
    found = _Reader(pattern).read()
    if found.is_unbounded:
        return "must not have backreferences, recursion, conditions or verbs, which occupy a gateway"
    if found.is_anchored and not searches_bodies:
        return ""
    if searches_bodies:
        return "must not have parts of any length, such as .*, since bodies are long" if found.free else ""
    return _ANCHOR if found.free > 1 or (found.free and found.choices > MOST_CHOICES) or found.is_nested else ""


@dataclass(slots=True)
class _Cost:
    """What determines the work for a pattern.

    Attributes:
        free: How many repetitions of any length compete for the same text.
        choices: The number of ways to match the other repetitions.
        is_nested: Whether a group with repetitions or alternatives is repeated, or the choices are many.
        is_anchored: Whether it can match at one position only.
        is_unbounded: Whether the limit of a gateway does not apply to its work.
    """

    free: int = 0
    choices: int = 1
    is_nested: bool = False
    is_anchored: bool = False
    is_unbounded: bool = False


_REFERENCES = ("(?P=", "(?P>", "(?R", "(?&", "(?(", "(*")
_CLASSES: dict[str, Members] = {
    "d": str.isdigit,
    "w": lambda char: char.isalnum() or char == "_",
    "s": str.isspace,
}


class _Reader:
    """Reads a pattern once, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._cost = _Cost()
        self._varies = [False]
        """For each open group, whether it contains repetitions or alternatives."""
        self._has_separated = False

    def read(self) -> _Cost:
        """Return the cost."""
        text = self._text
        body = text[text.find(")") + 1 :] if text.startswith("(?") and text[2:3] in "ixsU" else text
        flags = text[: len(text) - len(body)]
        self._cost.is_anchored = body.startswith(("^", "\\A")) and "m" not in flags
        while self._at < len(text):
            self._token()
        self._cost.free += self._has_separated
        return self._cost

    def _token(self) -> None:
        text, at = self._text, self._at
        char = text[at]
        if char == "(":
            self._open()
        elif char == "|":
            self._varies[-1] = True
            self._cost.is_anchored &= len(self._varies) > 1
            self._at += 1
        elif char == ")":
            varied = self._varies.pop() if len(self._varies) > 1 else False
            self._at += 1
            self._repetition(None, varied)
            self._varies[-1] |= varied
        else:
            self._repetition(self._atom(), False)

    def _open(self) -> None:
        text, at = self._text, self._at
        following = text[at + 2 : at + 3]
        if text.startswith(_REFERENCES, at) or (
            text[at + 1 : at + 2] == "?" and (following.isdigit() or following in "+")
        ):
            self._cost.is_unbounded = True
        if text.startswith("(?-", at) and text[at + 3 : at + 4].isdigit():
            self._cost.is_unbounded = True
        self._varies.append(False)
        self._at += 1
        if text[self._at : self._at + 1] == "?":
            # The kind of a group: up to its colon, its name, or the end of its flags.
            self._at += 1
            while self._at < len(text) and text[self._at] not in ":>=!)":
                self._at += 1
            self._at += self._at < len(text) and text[self._at] != ")"

    def _atom(self) -> Members | None:
        """Read one character, escape or class; return which characters it matches, or None for any."""
        text = self._text
        char = text[self._at]
        self._at += 1
        if char == ".":
            return None
        if char == "[":
            return self._class()
        if char != "\\":
            return char.__eq__
        kind = text[self._at : self._at + 1]
        self._at += 1
        self._cost.is_unbounded |= (kind.isdigit() and kind != "0") or kind in ("g", "k", "X", "C")
        return _CLASSES.get(kind) or (None if kind.isalnum() else kind.__eq__)

    def _class(self) -> Members | None:
        text = self._text
        negated = text[self._at : self._at + 1] == "^"
        self._at += negated
        parts: list[Members] = []
        first = self._at
        while self._at < len(text) and (text[self._at] != "]" or self._at == first):
            parts.append(self._part())
        self._at += 1
        return lambda char: any(part(char) for part in parts) != negated

    def _part(self) -> Members:
        text = self._text
        low = text[self._at]
        self._at += 1
        if low == "\\":
            kind = text[self._at : self._at + 1]
            self._at += 1
            return _CLASSES.get(kind) or ((lambda char: True) if kind.isalnum() else kind.__eq__)
        if low == "[":
            return lambda char: True  # a class of POSIX such as [:alpha:]
        if text[self._at : self._at + 1] == "-" and text[self._at + 1 : self._at + 2] not in ("]", "", "\\"):
            high = text[self._at + 1]
            self._at += 2
            return lambda char: low <= char <= high
        return low.__eq__

    def _repetition(self, members: Members | None, varied: bool) -> None:
        """Read a quantifier, if there is one, of an atom or of a group that varies."""
        low, high = self._quantifier()
        if low == high == 1:
            return
        self._varies[-1] = True
        self._cost.is_nested |= varied
        if high is not None:
            self._cost.choices *= high - low + 1
            self._cost.is_nested |= self._cost.choices > 2000
        elif members is not None and self._ends(members):
            self._has_separated = True
        else:
            self._cost.free += 1

    def _quantifier(self) -> tuple[int, int | None]:
        text = self._text
        char = text[self._at : self._at + 1]
        end = text.find("}", self._at)
        low, comma, high = text[self._at + 1 : max(end, 0)].partition(",")
        found: tuple[int, int | None] = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(char, (1, 1))
        length = int(found != (1, 1))
        if char == "{" and (low + high).isdigit() and len(low + high) < 12:
            found = int(low or 0), (int(high) if high else None) if comma else int(low)
            length = end - self._at + 1
        self._at += length
        if length and text[self._at : self._at + 1] in ("?", "+"):
            self._at += 1  # lazy or possessive
        return found

    def _ends(self, members: Members) -> bool:
        """Return whether the character after a repetition cannot belong to it, so that there is one way to match."""
        rest = self._text[self._at :].lstrip("()")
        if rest in ("", "$"):
            return True
        following = rest[1:2] if rest.startswith("\\") else rest[:1]
        is_literal = (not following.isalnum() if rest.startswith("\\") else following not in "[.|^$*+?{") and following
        return bool(is_literal) and not members(following.lower()) and not members(following.upper())
