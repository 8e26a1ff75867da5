r"""How much work a regular expression of a tenant causes in a gateway (APISIX 3.18: PCRE2, `lua_regex_match_limit`).

The limit counts the steps from one position of the text. A gateway tries every position, and comparisons of a
backreference are not limited: with a path of 7 kB, `(a*)\1[bc]` takes 26 s and `a{0,1000}a{0,1000}[bc]` 17 s, while the
worker serves no other team. A pattern that begins with `^` has one position, which takes less than a second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from string import ascii_letters, hexdigits, octdigits

LONGEST = 2000
"""Maximum length of a pattern."""

_MANY = 2000
"""The number of choices that are as much work as a part of any length."""

MOST_CHOICES = 8
"""Maximum number of ways to match limited repetitions and alternatives in a pattern that does not begin with `^`."""

_ANCHOR = "must begin with ^, or have at most one part of any length, such as .*"

MOST_WORK = 64
"""Maximum of `regex_work` for all patterns of a record: about three seconds for one request."""

_HEAVY, _SQUARE, _LIGHT = 8, 2, 1
"""The work for a pattern: about 250 ms, 90 ms and 20 ms with a path of 7 kB. Others take less than 1 ms."""

Members = Callable[[str], bool]


def regex_fault(pattern: str, *, searches_bodies: bool = False) -> str:
    """Return what is wrong with a pattern, as the rest of a sentence; empty if it costs a gateway little.

    Args:
        pattern: As in a record.
        searches_bodies: Whether it is applied to whole bodies, which are longer than paths and headers.
    """
    if len(pattern) > LONGEST:
        return f"is longer than {LONGEST} characters"
    found = _cost_of(pattern)
    if found.is_unbounded:
        return "must not have backreferences, recursion, conditions or verbs, which occupy a gateway"
    if found.is_unknown:
        return "must not have comments, quoted parts such as \\Q, control characters or classes such as [:alpha:]"
    if found.is_anchored and not searches_bodies:
        return ""
    if searches_bodies:
        return "must not have parts of any length, such as .*, since bodies are long" if found.free else ""
    return _ANCHOR if found.free > 1 or (found.free and found.choices > MOST_CHOICES) or found.is_nested else ""


def regex_work(pattern: str) -> int:
    """Return how much work a pattern without a fault is for a gateway, in units of about 25 ms."""
    found = _cost_of(pattern)
    if not found.is_anchored:
        return _LIGHT if found.free or found.choices > MOST_CHOICES else 0
    if found.is_nested or found.choices > MOST_CHOICES:
        return _HEAVY
    return _SQUARE if found.free > 1 else 0


@lru_cache(maxsize=4096)
def _cost_of(pattern: str) -> _Cost:
    return _Reader(pattern).read()


@dataclass(slots=True)
class _Cost:
    """What determines the work for a pattern.

    Attributes:
        free: How many repetitions of any length compete for the same text.
        choices: The number of ways to match the other repetitions and the alternatives.
        is_nested: Whether a group with repetitions or alternatives is repeated, or the choices are many.
        is_anchored: Whether it can match at one position only.
        is_unbounded: Whether the limit of a gateway does not apply to its work.
        is_unknown: Whether it has syntax that this module does not read as a gateway does.
    """

    free: int = 0
    choices: int = 1
    is_nested: bool = False
    is_anchored: bool = False
    is_unbounded: bool = False
    is_unknown: bool = False


@dataclass(slots=True)
class _Group:
    """An open group.

    Attributes:
        varies: Whether it contains repetitions or alternatives.
        firsts: The character that each alternative begins with; None if it may begin with others.
        is_at_start: Whether the current alternative has no character yet.
    """

    varies: bool = False
    firsts: list[str | None] = field(default_factory=list)
    is_at_start: bool = True

    def begins(self, first: str | None) -> None:
        """Note what the current alternative begins with."""
        if self.is_at_start:
            self.firsts.append(first)
            self.is_at_start = False

    def ends(self) -> None:
        """End the current alternative, which may be empty."""
        self.begins(None)
        self.is_at_start = True

    def competing(self) -> int:
        """Return how many alternatives may match the same text."""
        known = Counter(first for first in self.firsts if first is not None)
        return max(1, self.firsts.count(None) + max(known.values(), default=0))


_REFERENCES = ("(?P=", "(?P>", "(?R", "(?&", "(?(", "(*", "(?+", "(?-")
_HEADS = ("?:", "?=", "?!", "?>", "?|", "?<=", "?<!")
_FLAGS = frozenset("imsU")
_NAMED = (("?<", ">"), ("?P<", ">"), ("?'", "'"))
_DIGITS = frozenset("0123456789")
_UNKNOWN_ESCAPES = frozenset("cQEN")
_LONG_ESCAPES = {
    "x": (2, hexdigits),
    "0": (2, octdigits),
    "o": (0, ""),
    "p": (1, ascii_letters),
    "P": (1, ascii_letters),
}
"""Escapes that are continued in braces, or otherwise by at most this number of these characters."""
_CLASSES: dict[str, Members] = {
    "d": str.isdigit,
    "w": lambda char: char.isalnum() or char == "_",
    "s": str.isspace,
}


class _Reader:
    """Reads a pattern once, from left to right. What it does not know is noted, and the pattern has a fault."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._cost = _Cost()
        self._groups = [_Group()]
        self._has_separated = False

    def read(self) -> _Cost:
        """Return the cost."""
        text, cost = self._text, self._cost
        flags = self._flags(1) if text.startswith("(?") else ""
        body = text[len(flags) + 3 :] if text[len(flags) + 2 : len(flags) + 3] == ")" and flags else text
        cost.is_anchored = body.startswith(("^", "\\A")) and (body is text or "m" not in flags)
        while self._at < len(text):
            self._token()
        self._groups[0].ends()
        cost.choices *= self._groups[0].competing()
        cost.free += self._has_separated
        cost.is_nested |= cost.choices > _MANY
        return cost

    def _token(self) -> None:
        char, group = self._text[self._at], self._groups[-1]
        if char == "(":
            group.begins(None)
            self._open()
        elif char == "|":
            group.varies = True
            group.ends()
            self._cost.is_anchored &= len(self._groups) > 1
            self._at += 1
        elif char == ")":
            self._at += 1
            self._close()
        else:
            first = self._literal()
            low = self._repetition(self._atom(), varied=False)
            group.begins(first if low else None)

    def _literal(self) -> str | None:
        """Return the character that the next atom matches, or None if it may match others."""
        char, following = self._text[self._at], self._text[self._at + 1 : self._at + 2]
        if char == "\\":
            return following.lower() if following and not following.isalnum() else None
        return None if char in ".[^$" else char.lower()

    def _open(self) -> None:
        text, at = self._text, self._at
        if text.startswith(_REFERENCES, at) or (text[at + 2 : at + 3].isdigit() and text[at + 1 : at + 2] == "?"):
            self._cost.is_unbounded = True
        self._groups.append(_Group())
        self._at += 1 + self._head(at + 1)

    def _close(self) -> None:
        varied = False
        if len(self._groups) > 1:
            group = self._groups.pop()
            group.ends()
            self._cost.choices *= group.competing()
            varied = group.varies
        self._repetition(None, varied=varied)
        self._groups[-1].varies |= varied

    def _head(self, at: int) -> int:
        """Return the length of the part of a group that says of which kind it is, without a bracket that closes it."""
        text = self._text
        if not text.startswith("?", at):
            return 0
        if found := next((head for head in _HEADS if text.startswith(head, at)), ""):
            return len(found)
        for opening, closing in _NAMED:
            name, end, _ = text[at + len(opening) :].partition(closing) if text.startswith(opening, at) else ("",) * 3
            if end and name.isidentifier():
                return len(opening) + len(name) + 1
        flags = self._flags(at)
        following = text[at + 1 + len(flags) : at + 2 + len(flags)]
        self._cost.is_unknown |= not flags or following not in (":", ")")
        return 1 + len(flags) + (following == ":")

    def _flags(self, at: int) -> str:
        """Return the flags after the question mark at an index."""
        rest = self._text[at + 1 :]
        return rest[: len(rest) - len(rest.lstrip("".join(_FLAGS)))]

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
        return self._escaped(kind)

    def _escaped(self, kind: str) -> Members | None:
        r"""Read the rest of an escape, such as that of `\x{41}`; return which characters it matches."""
        text = self._text
        self._cost.is_unknown |= kind in _UNKNOWN_ESCAPES
        if kind in _LONG_ESCAPES and text.startswith("{", self._at):
            self._at += len(text[self._at :].partition("}")[0]) + 1
        elif kind in _LONG_ESCAPES:
            most, allowed = _LONG_ESCAPES[kind]
            rest = text[self._at : self._at + most]
            self._at += len(rest) - len(rest.lstrip(allowed))
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
            return self._escaped(kind) or (lambda char: True)
        if low == "[":
            # A class of POSIX such as [:alpha:], whose bracket does not end this one.
            self._cost.is_unknown |= text.startswith((":", ".", "="), self._at)
            return low.__eq__
        if text[self._at : self._at + 1] == "-" and text[self._at + 1 : self._at + 2] not in ("]", "", "\\"):
            high = text[self._at + 1]
            self._at += 2
            return lambda char: low <= char <= high
        return low.__eq__

    def _repetition(self, members: Members | None, *, varied: bool) -> int:
        """Read a quantifier, if there is one, of an atom or of a group that varies; return its minimum."""
        low, high = self._quantifier()
        if low == high == 1:
            return 1
        self._groups[-1].varies = True
        self._cost.is_nested |= varied
        if high is not None:
            self._cost.choices *= max(1, high - low + 1)
            self._cost.is_nested |= self._cost.choices > _MANY
        elif members is not None and self._ends(members):
            self._has_separated = True
        else:
            self._cost.free += 1
        return low

    def _quantifier(self) -> tuple[int, int | None]:
        text = self._text
        char = text[self._at : self._at + 1]
        end = text.find("}", self._at)
        low, comma, high = text[self._at + 1 : max(end, 0)].partition(",")
        found: tuple[int, int | None] = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(char, (1, 1))
        length = int(found != (1, 1))
        if char == "{" and _DIGITS.issuperset(low + high) and 0 < len(low + high) < 12:
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
