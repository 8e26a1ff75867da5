"""Parses the configuration in a snippet into statements: directives, and blocks with the statements in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apisix_ingress.model.formats.patterns import TextPattern

_LONGEST = 8192
"""Characters of a snippet that are read."""

_DEEPEST = 8

_DIRECTIVE = TextPattern(r"""((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\$\{|[^;{}"'])*)([;{}]|$)""")
_WORD = TextPattern(r""""((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|(\S+)""")
_COMMENT = TextPattern(r"(?m)(^|\s)#.*$")
_SPACE = TextPattern(r"\s+")


@dataclass(slots=True)
class Statement:
    """One directive, or one block.

    Attributes:
        words: Its name and values, without quotation marks.
        text: As written, on one line.
        body: The statements in the block; None for a directive.
    """

    words: list[str]
    text: str
    body: list[Statement] | None = None

    @property
    def name(self) -> str:
        """Its first word."""
        return self.words[0]

    @property
    def quoted(self) -> str:
        """As written, with the content of a block."""
        if self.body is None:
            return f"{self.text};"
        return f"{self.text} {{ {' '.join(each.quoted for each in self.body)} }}"


def statements_of(snippet: str) -> list[Statement]:
    """Return the statements of a snippet; what is nested deeper than eight blocks is omitted."""
    found: list[Statement] = []
    stack: list[list[Statement]] = [found]
    for words, text, end in _parts(snippet[:_LONGEST]):
        if words and len(stack) <= _DEEPEST:
            statement = Statement(words, text, [] if end == "{" else None)
            stack[-1].append(statement)
        if end == "{":
            body = stack[-1][-1].body if words and len(stack) <= _DEEPEST else None
            stack.append(body if body is not None else [])
        elif end == "}" and len(stack) > 1:
            stack.pop()
    return found


def _parts(snippet: str) -> Iterator[tuple[list[str], str, str]]:
    """Yield words, text and the character at the end of each part."""
    plain = _COMMENT.sub("", snippet)
    for found in _DIRECTIVE.finditer(plain):
        text, end = found.groups()
        words = [next(filter(None, word.groups()), "") for word in _WORD.finditer(text)]
        if words or end in "{}":
            yield words, _SPACE.sub(" ", text).strip(), end
