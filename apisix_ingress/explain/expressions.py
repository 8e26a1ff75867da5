"""Evaluates the expressions of a route's `vars` with a reason: the condition, the actual value, and the result.

Follows lua-resty-expr as the gateway runs it. If the request does not contain a value, the result is None, unless the
other conditions decide it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from apisix_ingress.explain.request import Unknown
from apisix_ingress.model.formats.patterns import LONGEST_FOREIGN_PATTERN, ForeignPattern
from apisix_ingress.model.secrets.fields import is_secret_of_request

Lookup = Callable[[str], str | None]

REGEX_TIMEOUT = 0.05
"""Seconds for one regular expression: the pattern belongs to a tenant."""

_LOGIC = ("AND", "OR", "!AND", "!OR")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a condition holds (None: unknown), and the text of the reason."""

    holds: bool | None
    reason: str


class Malformed(Exception):
    """The gateway would not compile the expression, so the route never matches."""


def evaluate(rules: Sequence[Any], lookup: Lookup) -> Verdict:
    """Evaluate a route's `vars`; an empty list matches."""
    if not rules:
        return Verdict(True, "")
    try:
        return _group(rules, lookup)
    except Malformed as error:
        return Verdict(False, f"vars cannot be compiled: {error}")


def _group(rules: Any, lookup: Lookup) -> Verdict:
    if not isinstance(rules, list) or not rules:
        raise Malformed("rule too short")
    if isinstance(rules[0], list):
        return _combine("AND", [_group(rule, lookup) for rule in rules])
    logic = str(rules[0]).upper()
    if logic in _LOGIC:
        if len(rules) <= 2:
            raise Malformed("rule too short")
        return _combine(logic, [_group(rule, lookup) for rule in rules[1:]])
    return _comparison(rules, lookup)


def _combine(logic: str, parts: list[Verdict]) -> Verdict:
    is_or = logic.endswith("OR")
    deciding = [part for part in parts if part.holds is is_or]
    open_parts = [part for part in parts if part.holds is None]
    chosen = deciding or open_parts or parts
    holds: bool | None = is_or if deciding else None if open_parts else not is_or
    reason = chosen[0].reason if chosen is not parts or not is_or else " and ".join(part.reason for part in parts)
    if logic.startswith("!"):
        return Verdict(None if holds is None else not holds, f"not ({reason})")
    return Verdict(holds, reason)


def _comparison(rule: list[Any], lookup: Lookup) -> Verdict:
    negated = len(rule) == 4
    if negated and rule[1] != "!":
        raise Malformed("bad 'not' expression")
    parts = [rule[0], *rule[2:4]] if negated else list(rule[:3])
    name, operator, wanted = parts + [None] * (3 - len(parts))
    operator = str(operator).lower()
    if len(parts) == 2 and operator not in _OPERATORS:
        operator, wanted = "==", parts[1]
    if operator not in _OPERATORS:
        raise Malformed(f"invalid operator '{operator}'")
    shown = _hidden if is_secret_of_request(str(name)) else repr
    asked = f"{name} {'not ' if negated else ''}{operator} {shown(wanted)}"
    try:
        found = lookup(str(name))
        holds = _OPERATORS[operator](found, wanted)
    except (Unknown, TimeoutError) as error:
        return Verdict(None, f"{asked}: {error}")
    return Verdict(holds != negated, f"{asked}, but it is {shown(found) if found is not None else 'absent'}")


def _hidden(_value: object) -> str:
    return "[hidden]"


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, str):
        return None
    try:
        return float(int(value, 16)) if value.strip().lower().startswith("0x") else float(value)
    except ValueError:
        return None


def _equal(found: str | None, wanted: object) -> bool:
    if isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return _number(found) == float(wanted)
    return found == wanted


def _ordered(compare: Callable[[float, float], bool]) -> Callable[[str | None, object], bool]:
    def run(found: str | None, wanted: object) -> bool:
        left, right = _number(found), _number(wanted)
        return left is not None and right is not None and compare(left, right)

    return run


def _matching(*, ignore_case: bool) -> Callable[[str | None, object], bool]:
    def run(found: str | None, wanted: object) -> bool:
        if found is None:
            return False
        if len(str(wanted)) > LONGEST_FOREIGN_PATTERN:
            raise TimeoutError(f"the regular expression is longer than {LONGEST_FOREIGN_PATTERN} characters")
        try:
            return ForeignPattern(str(wanted), ignore_case=ignore_case).found(found, seconds=REGEX_TIMEOUT)
        except ValueError:
            return False
        except TimeoutError:
            raise TimeoutError("the regular expression takes too long") from None

    return run


def _in_networks(found: str | None, wanted: object) -> bool:
    try:
        address = ipaddress.ip_address(found or "")
        networks = wanted if isinstance(wanted, list) else [wanted]
        return any(address in ipaddress.ip_network(str(network), strict=False) for network in networks)
    except ValueError:
        return False


_OPERATORS: dict[str, Callable[[str | None, Any], bool]] = {
    "==": _equal,
    "~=": lambda found, wanted: not _equal(found, wanted),
    ">": _ordered(lambda left, right: left > right),
    ">=": _ordered(lambda left, right: left >= right),
    "<": _ordered(lambda left, right: left < right),
    "<=": _ordered(lambda left, right: left <= right),
    "~~": _matching(ignore_case=False),
    "~*": _matching(ignore_case=True),
    "in": lambda found, wanted: isinstance(wanted, list) and found in wanted,
    "has": lambda found, wanted: False,  # expects a list, but variables of a request are text
    "ipmatch": _in_networks,
}
