"""Conditions in plugins, as lua-resty-expr reads them: a gateway rejects a plugin with one that it cannot read."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any

_LOGIC = ("OR", "!OR", "AND", "!AND")
_OPERATORS = ("==", "~=", ">", ">=", "<", "<=", "~~", "~*", "in", "has", "ipmatch")
_NOT = "!"
_DEEPEST = 16


def expression_mistakes(rules: Sequence[Any], path: str) -> Iterator[tuple[str, str]]:
    """Yield the field and the mistake of each condition that cannot be read."""
    if rules and isinstance(rules[0], str) and rules[0].upper() not in _LOGIC:
        yield path, 'must be a list of conditions, such as [["arg_name", "==", "value"]]'
        return
    yield from _mistakes(rules, path, _DEEPEST) if rules else ()


def _mistakes(rules: Sequence[Any], path: str, depth: int) -> Iterator[tuple[str, str]]:
    if not rules or depth == 0:
        yield path, "is empty" if depth else "is nested too deeply"
        return
    is_logic = isinstance(rules[0], str) and rules[0].upper() in _LOGIC
    if is_logic and len(rules) < 3:
        yield path, f"{rules[0]} needs at least two conditions"
    elif is_logic or isinstance(rules[0], list):
        for index, each in enumerate(rules):
            if isinstance(each, list):
                yield from _mistakes(each, f"{path}[{index}]", depth - 1)
    elif why := _fault(rules):
        yield path, why


def _fault(condition: Sequence[Any]) -> str:
    """Return what is wrong with a condition such as `["arg_name", "!", "in", ["a", "b"]]`."""
    words = list(condition)
    if len(words) == 4:
        if words[1] != _NOT:
            return 'with four parts, the second one must be "!"'
        del words[1]
    operator = str(words[1]).lower() if len(words) > 1 else ""
    if len(words) == 2 and operator not in _OPERATORS:
        return ""  # a variable and its value
    if len(words) < 2:
        return "must have a variable, an operator and a value"
    if operator not in _OPERATORS:
        return f"unknown operator {words[1]!r}; use one of {', '.join(_OPERATORS)}"
    return _addresses_fault(words[2:]) if operator == "ipmatch" else ""


def _addresses_fault(values: Sequence[Any]) -> str:
    given = values[0] if values else None
    every = given if isinstance(given, list) else [given]
    if not every or not all(isinstance(each, str) and _is_network(each) for each in every):
        return "ipmatch needs IP addresses or networks"
    return ""


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True
