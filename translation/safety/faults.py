"""Faults of records: what makes it unsafe to publish one, and where."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from translation.core.text_checks import quoted
from translation.plugins.notation import ANY, ITEM

Steps = tuple[str | int, ...]

UNSAFE, SECRET_REFUSED = "UnsafeRecord", "SecretReferenceRefused"
"""The codes of problems."""


class Fault(NamedTuple):
    """One fault.

    Attributes:
        steps: The field of the record.
        what: What is wrong with it, as the rest of a sentence that begins with the field, and the remedy. It does not
            contain the value, which may come from a Secret.
        code: The code of the problem.
    """

    steps: Steps
    what: str
    code: str = UNSAFE


def dotted(steps: Steps) -> str:
    """Return the path of a field as in messages: `plugins.proxy-rewrite.regex_uri[1]`."""
    parts = (f"[{step}]" if isinstance(step, int) else f".{quoted(step)}" for step in steps)
    return "".join(parts).removeprefix(".")


def texts_at(value: Any, steps: tuple[str, ...], place: Steps = ()) -> Iterator[tuple[Steps, str]]:
    """Yield the texts of a field, and of its items if it is a list, with their places."""
    if isinstance(value, list) and (not steps or steps[0] == ITEM):
        for index, item in enumerate(value):
            yield from texts_at(item, steps[1:], (*place, index))
    elif not steps:
        if isinstance(value, str):
            yield place, value
    elif isinstance(value, dict):
        for name in value if steps[0] == ANY else (steps[0],):
            yield from texts_at(value.get(name), steps[1:], (*place, name))


def every_value(root: Any, place: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """Yield the texts, numbers and flags below a value, with their places."""
    stack: list[tuple[Steps, Any]] = [(place, root)]
    while stack:
        here, value = stack.pop()
        if isinstance(value, dict):
            stack.extend(((*here, name), item) for name, item in value.items())
        elif isinstance(value, list | tuple):
            stack.extend(((*here, index), item) for index, item in enumerate(value))
        elif value is not None:
            yield here, value


def every_text(root: Any, place: Steps = ()) -> Iterator[tuple[Steps, str]]:
    """Yield the texts below a value, with their places."""
    return ((here, value) for here, value in every_value(root, place) if isinstance(value, str))
