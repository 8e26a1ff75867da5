"""Conditions of route records as the expressions of an ApisixRoute, which has no alternatives and no address lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from apisix_ingress.model.json import JsonObject
from translation.nginx.native.model import Var

_OPERATORS = {
    ("==",): "Equal",
    ("!", "=="): "NotEqual",
    ("~~",): "RegexMatch",
    ("!", "~~"): "RegexNotMatch",
    ("~*",): "RegexMatchCaseInsensitive",
    ("!", "~*"): "RegexNotMatchCaseInsensitive",
}
_ADDRESS = "remote_addr"


def alternatives(when: Iterable[Var]) -> Iterator[tuple[Var, ...]]:
    """Yield lists of plain conditions of which at least one holds if all given conditions do."""
    for parts in product(*(_alternatives(each) for each in when)):
        yield tuple(condition for part in parts for condition in part)


def addresses(when: Iterable[Var]) -> tuple[tuple[str, ...], bool]:
    """Return the client addresses in the conditions, and whether they are the ones that do not match."""
    for name, *rest in when:
        if name == _ADDRESS:
            return tuple(rest[-1]), rest[0] == "!"
    return (), False


def expressions(when: Iterable[Var]) -> list[JsonObject]:
    """Return the expressions of conditions; those on client addresses are not among them."""
    return [_expression(each) for each in when if each[0] != _ADDRESS]


def _alternatives(condition: Var) -> list[tuple[Var, ...]]:
    word, *parts = condition
    if word == "OR":
        return [each for part in parts for each in _alternatives(part)]
    if word == "AND":
        return [tuple(condition for part in found for condition in part) for found in _all(parts)]
    return [(condition,)]


def _all(parts: Sequence[Var]) -> Iterator[tuple[tuple[Var, ...], ...]]:
    return product(*(_alternatives(part) for part in parts))


def _expression(condition: Var) -> JsonObject:
    name, *operator, value = condition
    subject = {"scope": "Path"} if name == "uri" else {"scope": "Variable", "name": name}
    return {"subject": subject, "op": _OPERATORS[tuple(operator)], "value": value}
