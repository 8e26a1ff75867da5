"""The notation of fields in tables of plugins.

Paths are written as in messages: `rules[].match` is a field of each item of a list, `headers.*` any key of a mapping,
`checks.{host,port}` two fields. A list of strings or numbers needs no brackets.
"""

from __future__ import annotations

from collections.abc import Iterator

ITEM, ANY = "[]", "*"


def expanded(text: str) -> Iterator[str]:
    """Yield the paths of a list, with braces expanded: `a.{b,c}` is `a.b` and `a.c`."""
    for path in text.split():
        head, brace, rest = path.partition("{")
        inner, _, tail = rest.partition("}")
        for choice in inner.split(",") if brace else ("",):
            yield from expanded(f"{head}{choice}{tail}") if brace else (path,)


def steps_of(path: str) -> tuple[str, ...]:
    """Return the steps of a path: `a[].b` is `a`, `[]` and `b`."""
    return tuple(path.replace(ITEM, f".{ITEM}").removeprefix(".").split("."))
