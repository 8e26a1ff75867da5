"""Expressions over request variables, as in route `vars`, plugin `_meta.filter` and traffic-split `match`.

`compile_rules` rejects what the gateway rejects, with the same messages; `Expression.holds` evaluates against any
lookup.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from e2e.devgateway.schemas.validator import is_number

Lookup = Callable[[str], object]


class BadExpression(ValueError):
    """The expression is rejected; the message is the gateway's."""


def to_number(value: object) -> float | None:
    """Convert a value to a number like Lua's tonumber, or return None."""
    if is_number(value):
        return float(value)
    if not isinstance(value, str):
        return None
    try:
        return float(int(value, 16)) if value.strip().lower().startswith("0x") else float(value)
    except ValueError:
        return None


def _equal(left: object, right: object) -> bool:
    if is_number(right):
        return to_number(left) == float(right)
    return left == right


def _ordered(compare: Callable[[float, float], bool]) -> Callable[[object, object], bool]:
    def run(left: object, right: object) -> bool:
        low, high = to_number(left), to_number(right)
        return low is not None and high is not None and compare(low, high)

    return run


def _regex(flags: int) -> Callable[[object, object], bool]:
    def run(left: object, right: object) -> bool:
        if left is None:
            return False
        try:
            return re.search(str(right), str(left), flags) is not None
        except re.error:
            return False

    return run


def _in_networks(left: object, right: object) -> bool:
    if left is None:
        return False
    try:
        address = ipaddress.ip_address(str(left))
    except ValueError:
        if left == "":
            raise  # the gateway's address library raises an error: the response is 500
        return False
    networks = right if isinstance(right, list) else [right]
    return any(address in ipaddress.ip_network(str(network), strict=False) for network in networks)


OPERATORS: dict[str, Callable[[object, object], bool]] = {
    "==": _equal,
    "~=": lambda left, right: not _equal(left, right),
    ">": _ordered(lambda left, right: left > right),
    ">=": _ordered(lambda left, right: left >= right),
    "<": _ordered(lambda left, right: left < right),
    "<=": _ordered(lambda left, right: left <= right),
    "~~": _regex(0),
    "~*": _regex(re.IGNORECASE),
    "in": lambda left, right: isinstance(right, list) and left in right,
    "has": lambda left, right: isinstance(left, list) and right in left,
    "ipmatch": _in_networks,
}
LOGIC = ("AND", "OR", "!AND", "!OR")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One `[name, operator, value]`, possibly negated."""

    name: str
    operator: str
    value: object
    negated: bool

    def holds(self, lookup: Lookup) -> bool:
        return OPERATORS[self.operator](lookup(self.name), self.value) != self.negated


@dataclass(frozen=True, slots=True)
class Expression:
    """Comparisons and expressions under one logical operator."""

    logic: str
    parts: tuple[Expression | Comparison, ...]

    def holds(self, lookup: Lookup) -> bool:
        """Evaluate; an expression without parts is true."""
        if not self.parts:
            return True
        met = (part.holds(lookup) for part in self.parts)
        result = any(met) if self.logic.endswith("OR") else all(met)
        return result != self.logic.startswith("!")


ALWAYS = Expression("AND", ())


def compile_rules(rules: Sequence[Any]) -> Expression:
    """Compile a whole expression; raises BadExpression."""
    if not rules:
        return ALWAYS
    if isinstance(rules, Mapping) or (not isinstance(rules[0], list) and str(rules[0]).upper() not in LOGIC):
        raise BadExpression("rule should be wrapped inside brackets")
    compiled = _compile(rules)
    return compiled if isinstance(compiled, Expression) else Expression("AND", (compiled,))


def _compile(rules: Sequence[Any]) -> Expression | Comparison:
    if not isinstance(rules, list) or not rules:
        raise BadExpression("rule too short")
    if isinstance(rules[0], list):
        return Expression("AND", tuple(_compile(rule) for rule in rules))
    logic = str(rules[0]).upper()
    if logic in LOGIC:
        if len(rules) <= 2:
            raise BadExpression("rule too short")
        return Expression(logic, tuple(_compile(rule) for rule in rules[1:]))
    return _compile_comparison(rules)


def _compile_comparison(rule: Sequence[Any]) -> Comparison:
    negated = len(rule) == 4
    if negated and rule[1] != "!":
        raise BadExpression("bad 'not' expression")
    parts = [rule[0], *rule[2:4]] if negated else list(rule[:3])
    name, operator, value = parts + [None] * (3 - len(parts))
    if operator is None:
        raise BadExpression("invalid expression")
    operator = str(operator).lower()
    if len(parts) == 2 and operator not in OPERATORS:
        operator, value = "==", parts[1]
    if operator not in OPERATORS:
        raise BadExpression(f"invalid operator '{operator}'")
    return Comparison(str(name), operator, value, negated)
