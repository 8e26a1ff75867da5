"""Conditions that never hold: the gateway accepts them, so only `lint` can report them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from apisix_ingress.model.formats.patterns import pcre_error
from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record

_OPERATORS = ("~~", "~*")
_WILDCARD = (
    "{!r} is not a wildcard in the Gateway API: only paths that contain an asterisk match; write {!r} with type"
    " PathPrefix, or use type RegularExpression"
)


def pattern_problems(item: CustomObject, records: Iterable[Record]) -> Iterator[Problem]:
    """Yield the regular expressions in the conditions of an object's routes that cannot be compiled."""
    patterns = (each for record in records for each in _patterns(record.body.get("vars")))
    wrong = {pattern: why for pattern in patterns if (why := pcre_error(pattern))}
    for pattern, why in wrong.items():
        path = next((path for path, text in _texts(item.spec, "spec") if text in pattern and pcre_error(text)), "")
        message = f"the regular expression cannot be compiled: {why}; correct it, since the condition never holds"
        yield Problem("PatternInvalid", message, path)


def _patterns(conditions: object) -> Iterator[str]:
    """Yield the patterns in the conditions of a route record, which may be nested."""
    for each in list_in(conditions):
        if isinstance(each, list) and len(each) > 2 and each[-2] in _OPERATORS and isinstance(each[-1], str):
            yield each[-1]
        elif isinstance(each, list):
            yield from _patterns(each)


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _texts(each, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _texts(each, f"{path}.{name}")


def wildcard_problems(item: CustomObject) -> Iterator[Problem]:
    """Yield the paths of an HTTPRoute that end with an asterisk, as other APIs write a prefix."""
    for number, rule in enumerate(map(mapping_in, list_in(item.spec.get("rules")))):
        for index, match in enumerate(map(mapping_in, list_in(rule.get("matches")))):
            path = mapping_in(match.get("path"))
            value = path.get("value")
            if path.get("type", "PathPrefix") != "RegularExpression" and isinstance(value, str) and value.endswith("*"):
                message = _WILDCARD.format(value, value.rstrip("*").rstrip("/") or "/")
                yield Problem(
                    "PathHasWildcard", message, f"spec.rules[{number}].matches[{index}].path.value", "warning"
                )
