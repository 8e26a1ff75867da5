"""Regular expressions in records: in conditions, and in the fields of plugins that a gateway matches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

from apisix_ingress.model.json import FrozenJson
from translation.plugins.code import NESTING, nested_plugins
from translation.plugins.notation import expanded, steps_of
from translation.plugins.rewrites import source_of
from translation.safety.faults import Fault, Steps, texts_at
from translation.safety.fields import FIELDS, Use
from translation.safety.regexes import MOST_WORK, regex_fault, regex_work

_OPERATORS = ("~~", "~*")
"""Operators of conditions with a pattern (lua-resty-expr)."""

SKIPPED = ("client", "skip_mtls_uri_regex")
"""The field of a certificate with patterns of paths that require no client certificate."""

_TOO_MANY = "is one of too many patterns that are costly for a gateway: use fewer, or begin them with ^"

MOST_PATTERNS = 2048
"""Maximum number of different patterns of an object or host: 4 s if a gateway compiles all of them for one request."""

TOO_MANY_PATTERNS = f"is one of conditions with more than {MOST_PATTERNS:,} regular expressions of an object; use fewer"

_OF_BODIES = {("response-rewrite", "filters[].regex")}
"""Fields that are applied to bodies."""

_PAIRS = {"proxy-rewrite": "regex_uri", "redirect": "regex_uri"}
"""Plugin → the field with patterns and their replacements in turn."""


def regex_faults(body: FrozenJson) -> Iterator[Fault]:
    """Yield the patterns of a record that may occupy a gateway, each of them or all together."""
    left = MOST_WORK
    for place, pattern, is_of_bodies, phrase in _patterns(body):
        if wrong := regex_fault(pattern, searches_bodies=is_of_bodies):
            yield Fault(place, phrase + wrong)
        left -= (work := regex_work(pattern))
        if left < 0 <= left + work:
            yield Fault(place, _TOO_MANY)


def patterns_of(body: FrozenJson) -> frozenset[str]:
    """Return the different patterns that a gateway compiles for a record."""
    return frozenset(pattern for _, pattern, _, _ in _patterns(body))


_Pattern: TypeAlias = tuple[Steps, str, bool, str]
"""A pattern: where it is, its text, whether it is applied to bodies, and how a message about it begins."""


def _patterns(body: FrozenJson) -> Iterator[_Pattern]:
    yield from _conditions(body.get("vars"), ("vars",))
    for place, text in texts_at(body, SKIPPED):
        yield place, text, False, ""
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
                if not is_replacement:
                    yield (*steps, *place), pattern, is_of_bodies, ""
        if name in NESTING:
            nested = (((*steps, inner), inner, its) for inner, its in nested_plugins(name, config))
            stack.extend(each for each in nested if isinstance(each[2], dict))


@cache
def _fields_of(name: str) -> tuple[tuple[tuple[str, ...], bool], ...]:
    paths = [*expanded(FIELDS.get(name, {}).get(Use.PATTERN, "")), *filter(None, [_PAIRS.get(name)])]
    return tuple((steps_of(path), (name, path) in _OF_BODIES) for path in dict.fromkeys(paths))


def _conditions(root: Any, steps: Steps) -> Iterator[_Pattern]:
    """Yield the patterns of the conditions below a value: lists such as `["uri", "~~", "^/a"]`.

    A gateway uses the first part after the operator, and ignores further ones.
    """
    stack: list[tuple[Steps, Any]] = [(steps, root)]
    while stack:
        place, value = stack.pop()
        if isinstance(value, dict):
            stack.extend(((*place, name), item) for name, item in value.items())
        elif isinstance(value, list | tuple):
            stack.extend(((*place, index), item) for index, item in enumerate(value))
            is_match = any(each in _OPERATORS for each in value[1:3] if isinstance(each, str))
            for text in value[2:] if is_match else ():
                if isinstance(text, str) and text not in _OPERATORS:
                    yield place, text, False, "has a pattern that "
