r"""Regular expressions: the only module that matches texts of users, clients, gateways and API servers with them.

Our own patterns run in RE2, in time linear to the text whatever the pattern is. RE2 has no lookaround, backreferences
or possessive repeats; `$` is the end of the text; `\d`, `\w`, `\s` and `\b` are ASCII; a pattern contains its flags,
`(?i)`, `(?s)` or `(?m)`. Patterns of users are written for PCRE and run with a time limit. Matching in `re` can take
exponential time, and nothing can interrupt it (decision 29).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import re2
import regex

LONGEST_VALUE = 4096
"""Maximum length of a value that a pattern accepts, unless the pattern states another one; in characters."""

LONGEST_LIST = 262_144
"""Maximum length of a value that is a list of any length: Kubernetes allows this many bytes of annotations."""

_MEMORY = 1 << 20
"""Maximum size of the automaton of one pattern in bytes; RE2 starts it again when it is full."""


_SECONDS = 0.5
"""CPU seconds after which a pattern with lookaround is given up."""


def _compiled(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return re2.compile(_encoded(pattern), options)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _key(group: int | str) -> int | bytes:
    return group.encode() if isinstance(group, str) else group


class Match:
    """Where a pattern matched a text.

    Attributes:
        start: Index of its first character in the text.
        end: Index after its last character.
    """

    __slots__ = ("_found", "end", "start")

    def __init__(self, start: int, end: int, found: re2._Match) -> None:
        self.start, self.end, self._found = start, end, found

    def __getitem__(self, group: int | str) -> str:
        """Return the text of a group; empty if the group took no part."""
        return _decoded(self._found[_key(group)] or b"")

    def has(self, group: int | str) -> bool:
        """Return whether a group took part in the match."""
        return self._found[_key(group)] is not None

    def groups(self) -> tuple[str, ...]:
        """Return the texts of all groups."""
        return tuple(map(_decoded, self._found.groups(b"")))


@dataclass(frozen=True, slots=True)
class ValuePattern:
    """A pattern of a whole value. A value longer than the maximum does not match.

    Attributes:
        pattern: In the syntax of RE2.
        longest: The maximum in characters.
    """

    pattern: str
    longest: int = LONGEST_VALUE
    _engine: re2._Regexp = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_engine", _compiled(self.pattern))

    def fullmatch(self, text: str) -> Match | None:
        """Return the match of the whole value, or None."""
        found = self._engine.fullmatch(_encoded(text)) if len(text) <= self.longest else None
        return Match(0, len(text), found) if found else None

    def fits(self, text: str) -> bool:
        """Return whether the whole value matches."""
        return len(text) <= self.longest and self._engine.fullmatch(_encoded(text)) is not None


@dataclass(frozen=True, slots=True)
class TextPattern:
    """A pattern of parts of a text of any length, which is searched completely.

    What repeats the search (`finditer` and its users) is linear only if no match depends on text far behind its end.

    Attributes:
        pattern: In the syntax of RE2.
    """

    pattern: str
    _engine: re2._Regexp = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_engine", _compiled(self.pattern))

    def found(self, text: str) -> bool:
        """Return whether a text contains a match."""
        return self._engine.search(_encoded(text)) is not None

    def search(self, text: str) -> Match | None:
        """Return the first match in a text, or None."""
        return next(self.finditer(text), None)

    def match(self, text: str) -> Match | None:
        """Return the match at the start of a text, or None."""
        found = self._engine.match(_encoded(text))
        return Match(0, len(_decoded(found.group())), found) if found else None

    def finditer(self, text: str) -> Iterator[Match]:
        """Yield the matches from left to right; they do not overlap."""
        data, ascii_only = _encoded(text), text.isascii()
        at = start = index = 0  # in bytes, and the same place in characters
        while found := self._engine.search(data, at):
            first, last = found.span()
            start = first if ascii_only else index + len(_decoded(data[at:first]))
            index = last if ascii_only else start + len(_decoded(data[first:last]))
            yield Match(start, index, found)
            if first == last:
                if last == len(data):
                    return
                width = len(_encoded(text[index]))
                last, index = last + width, index + 1
            at = last

    def findall(self, text: str) -> list[str]:
        """Return the texts of all matches."""
        return [found[0] for found in self.finditer(text)]

    def sub(self, by: str | Callable[[Match], str], text: str) -> str:
        """Return a text with every match replaced, by a constant or by a function of the match."""
        pieces, end = [], 0
        for found in self.finditer(text):
            pieces += [text[end : found.start], by if isinstance(by, str) else by(found)]
            end = found.end
        return "".join([*pieces, text[end:]]) if pieces else text

    def split(self, text: str) -> list[str]:
        """Return the parts of a text between the matches."""
        pieces, end = [], 0
        for found in self.finditer(text):
            pieces.append(text[end : found.start])
            end = found.end
        return [*pieces, text[end:]]


LONGEST_FOREIGN_PATTERN = 4096
"""Maximum length of a user's pattern, in characters."""

LONGEST_FOREIGN_TEXT = 16_384
"""Maximum length of a text that a user's pattern is matched with, in characters."""


def pattern_of_user(pattern: str, longest: int = LONGEST_VALUE) -> ValuePattern | None:
    """Return a user's pattern of whole values in RE2; None if it is invalid, too large, or needs PCRE."""
    if len(pattern) > LONGEST_FOREIGN_PATTERN:
        return None
    try:
        return ValuePattern(pattern, longest)
    except re2.error:
        return None


def has_python_syntax(pattern: str) -> bool:
    """Return whether `re` compiles a user's pattern, which is a good guess whether PCRE does.

    Compiling takes time quadratic to the length at most, and the result is never used for matching.
    """
    return _syntax(pattern) is not None


def group_numbers(pattern: str) -> Mapping[str, int]:
    """Return the numbers of the named groups of a user's pattern in Python's syntax; nothing if it is invalid."""
    compiled = _syntax(pattern)
    return compiled.groupindex if compiled else {}


def _syntax(pattern: str) -> re.Pattern[str] | None:
    if len(pattern) > LONGEST_FOREIGN_PATTERN:
        return None
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return None


_FATAL = (
    "missing )",
    "unbalanced parenthesis",
    "unterminated character set",
    "nothing to repeat",
    "multiple repeat",
    "bad escape (end of pattern)",
    "bad character range",
    "min repeat greater than max repeat",
)
"""The messages of `regex` about mistakes that are also mistakes for PCRE."""


def pcre_error(pattern: str) -> str:
    """Return why PCRE cannot compile a user's pattern; empty if it can, or if that is not certain."""
    if len(pattern) > LONGEST_FOREIGN_PATTERN or "\\Q" in pattern or "(*" in pattern:
        return ""
    try:
        regex.compile(pattern)
    except regex.error as error:
        message = str(error).partition(" at position")[0]
        return message if message in _FATAL else ""
    except (RecursionError, OverflowError):
        return ""
    return ""


def escaped_literal(text: str) -> str:
    """Return the pattern, for PCRE and RE2, that matches a text and nothing else."""
    return re.escape(text)


class ForeignMatch(NamedTuple):
    """Where a user's pattern matched, and the texts of its groups; empty for one that took no part."""

    start: int
    end: int
    groups: tuple[str, ...]


class ForeignPattern:
    """A user's pattern for PCRE, matched by `regex` with a time limit.

    Raises:
        ValueError: It is invalid or longer than the maximum.
    """

    __slots__ = ("_compiled",)

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        if len(pattern) > LONGEST_FOREIGN_PATTERN:
            raise ValueError(f"the regular expression is longer than {LONGEST_FOREIGN_PATTERN} characters")
        try:
            self._compiled = regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
        except (regex.error, RecursionError, OverflowError) as error:
            raise ValueError(f"the regular expression is not valid: {error}") from None

    def found(self, text: str, *, seconds: float) -> bool:
        """Return whether a text contains a match.

        Raises:
            TimeoutError: It took longer, or the text is longer than the maximum.
        """
        return self.groups(text, seconds=seconds) is not None

    def groups(self, text: str, *, seconds: float) -> ForeignMatch | None:
        """Return the first match in a text, or None.

        Raises:
            TimeoutError: It took longer, or the text is longer than the maximum.
        """
        if len(text) > LONGEST_FOREIGN_TEXT:
            raise TimeoutError(f"the text is longer than {LONGEST_FOREIGN_TEXT} characters")
        match = self._compiled.search(text, timeout=seconds)
        return match and ForeignMatch(match.start(), match.end(), tuple(group or "" for group in match.groups()))


GuardedMatch: TypeAlias = "regex.Match[str]"


class GuardedPattern:
    """A pattern of ours that needs lookaround, matched by `regex` with a time limit.

    It must take time linear to the text anyway; the limit is the guarantee. Every method raises `TimeoutError` when a
    text takes longer: hide or refuse the whole text then. It is compiled for its first text, which takes milliseconds.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    @cached_property
    def _compiled(self) -> regex.Pattern[str]:
        return regex.compile(self._pattern)

    def search(self, text: str, position: int = 0) -> GuardedMatch | None:
        """Return the first match at or behind a position, or None."""
        return self._compiled.search(text, position, timeout=_SECONDS)

    def match(self, text: str, position: int = 0) -> GuardedMatch | None:
        """Return the match at a position, or None."""
        return self._compiled.match(text, position, timeout=_SECONDS)

    def finditer(self, text: str) -> Iterator[GuardedMatch]:
        """Yield the matches from left to right."""
        return self._compiled.finditer(text, timeout=_SECONDS)

    def sub(self, by: str | Callable[[GuardedMatch], str], text: str) -> str:
        """Return a text with every match replaced, by a template or by a function of the match."""
        return self._compiled.sub(by, text, timeout=_SECONDS)
