"""Regular expressions in records: in conditions, and in the fields of plugins that a gateway matches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from apisix_ingress.model.json import FrozenJson
from translation.plugins.code import nested_plugins
from translation.plugins.notation import expanded, steps_of
from translation.plugins.rewrites import source_of
from translation.safety.faults import Fault, Steps, texts_at
from translation.safety.fields import FIELDS, Use
from translation.safety.regexes import regex_fault

_OPERATORS = ("~~", "~*")
"""Operators of conditions with a pattern (lua-resty-expr)."""

_OF_BODIES = {("response-rewrite", "filters[].regex")}
"""Fields that are applied to bodies."""

_PAIRS = {"proxy-rewrite": "regex_uri", "redirect": "regex_uri"}
"""Plugin → the field with patterns and their replacements in turn."""


def regex_faults(body: FrozenJson) -> Iterator[Fault]:
    """Yield the patterns of a record that may occupy a gateway."""
    yield from _conditions(body.get("vars"), ("vars",))
    plugins = body.get("plugins")
    stack: list[tuple[Steps, str, Any]] = [
        (("plugins", name), name, config) for name, config in (plugins or {}).items() if isinstance(config, dict)
    ]
    while stack:
        steps, name, config = stack.pop()
        yield from _conditions(config, steps)
        for field, is_of_bodies in _fields_of(name):
            for place, text in texts_at(config, field):
                is_replacement = field[0] == _PAIRS.get(name) and int(place[-1]) % 2 == 1
                pattern = source_of(text) or text
                if not is_replacement and (wrong := regex_fault(pattern, searches_bodies=is_of_bodies)):
                    yield Fault((*steps, *place), wrong)
        nested = (((*steps, inner), inner, its) for inner, its in nested_plugins(name, config))
        stack.extend(each for each in nested if isinstance(each[2], dict))


@cache
def _fields_of(name: str) -> tuple[tuple[tuple[str, ...], bool], ...]:
    paths = [*expanded(FIELDS.get(name, {}).get(Use.PATTERN, "")), *filter(None, [_PAIRS.get(name)])]
    return tuple((steps_of(path), (name, path) in _OF_BODIES) for path in dict.fromkeys(paths))


def _conditions(root: Any, steps: Steps) -> Iterator[Fault]:
    """Yield the faults of the conditions below a value: lists such as `["uri", "~~", "^/a"]`."""
    stack: list[tuple[Steps, Any]] = [(steps, root)]
    while stack:
        place, value = stack.pop()
        if isinstance(value, dict):
            stack.extend(((*place, name), item) for name, item in value.items())
        elif isinstance(value, list | tuple):
            stack.extend(((*place, index), item) for index, item in enumerate(value))
            is_match = any(each in _OPERATORS for each in value[1:3] if isinstance(each, str))
            if is_match and isinstance(value[-1], str) and (wrong := regex_fault(value[-1])):
                yield Fault(place, f"has a pattern that {wrong}")
