"""Applies the review: walks a configuration together with the rules of its plugin."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import zip_longest
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from apisix_ingress.model.names import consumer_name
from translation.addresses.policy import check_address
from translation.core.context import MOST_REPORTED
from translation.core.text_checks import quoted
from translation.plugins.code import is_code
from translation.plugins.policy.model import Kind, Node, tree
from translation.plugins.policy.numbers import most
from translation.plugins.policy.table import ACTIONS, COMMON, IN_ORDER, ORDER, PLUGINS
from translation.plugins.policy.targets import Target, is_path, is_selector, is_word, target_of_address, target_of_url
from translation.safety.faults import every_value
from translation.safety.paths import keeps_path

if TYPE_CHECKING:
    from apisix_ingress.model.json import JsonObject
    from translation.core.context import Context

_SETTING = "the controller's setting kubernetes.plugins: reviewed"
_REMEDY = "remove it, or ask the operator about kubernetes.plugins"
_UNKNOWN = "has not been reviewed for shared gateways"
_CONSUMERS = ("ApisixConsumer", "Consumer")
_ON_CONSUMERS = "would replace the plugin with this name on every route that admits the consumer; use it on a route"

MOST_REVIEWED = 50_000
"""Maximum number of plugin fields reviewed in one object: its other work waits for the review."""

MOST_VALUES = 5000
"""Maximum number of values of a plugin, except in lists of texts. A gateway needs 20 s to set 45,000 headers."""

_COST_OF_HOST = 20
"""Fields that could be reviewed in the time that one host takes."""

_DECODING = "filters"
"""The field that makes a gateway decompress a response in memory: 1 MB becomes 1 GB (response-rewrite)."""

IS_NOT_COMPRESSED = ["sent_http_content_encoding", "!", "~~", "."]
"""The condition that a response has no Content-Encoding."""

_DEFAULT_CACHE_KEY = ["$host", "$request_uri"]
"""The default cache key of a gateway (APISIX plugin proxy-cache)."""

Steps = tuple[str | int, ...]


class _Place(NamedTuple):
    """A value, its rules, its plugin, and its path in the configuration."""

    value: Any
    node: Node
    plugin: str
    steps: Steps = ()


@dataclass(slots=True)
class _Review:
    """One configuration under review.

    Attributes:
        scope: Where problems are reported.
        at: The steps to a field → the path that a problem names.
        changes: Where the namespace is prepended → the new value.
        problems: The number of reported problems.
        values: The number of values.
    """

    scope: Context
    at: Callable[[Steps], str]
    changes: list[tuple[Steps, Any]] = field(default_factory=list)
    problems: int = 0
    values: int = 0


def judge(scope: Context, name: str, config: JsonObject, path: str, config_path: str = "") -> JsonObject:
    """Return a plugin's configuration with the namespace prepended to shared names; report rejected parts in `scope`.

    Args:
        scope: The object that has the plugin.
        name: Of the plugin.
        config: Its configuration; it is not changed.
        path: The field that the plugin comes from.
        config_path: The field with the configuration; empty if the object has no such field.
    """
    review = _Review(scope, lambda steps: f"{config_path}.{_dotted(steps)}" if config_path and steps else path)
    stack = list(_start(review, name, config, ()))
    while stack and _continues(review):
        stack.extend(_step(review, stack.pop()))
    return _changed(config, review.changes)


def _continues(review: _Review, cost: int = 1) -> bool:
    """Return whether to continue: not after enough problems, and not with an object that takes too long."""
    scope = review.scope
    before, scope.reviewed = scope.reviewed, scope.reviewed + cost
    if before <= MOST_REVIEWED < scope.reviewed:
        message = (
            f"the plugins of this object have more than {MOST_REVIEWED} fields (a host counts as {_COST_OF_HOST}),"
            f" which is too many for {_SETTING}; split the object"
        )
        _note(review, (), message)
    is_small = scope.reviewed <= MOST_REVIEWED and review.values <= MOST_VALUES
    return is_small and review.problems < MOST_REPORTED


def _count(review: _Review, values: int) -> None:
    """Count values, which take a gateway quadratic time in some plugins."""
    before, review.values = review.values, review.values + values
    if before <= MOST_VALUES < review.values:
        message = f"the plugin has more than {MOST_VALUES} values, which is too many for {_SETTING}; use fewer"
        _note(review, (), message)


def _start(review: _Review, name: str, config: Any, steps: Steps) -> Iterator[_Place]:
    """Yield the configuration of a plugin if the review permits it."""
    found = PLUGINS.get(name)
    if is_code(name) or name in review.scope.options.trusted_plugins:
        return  # other settings decide about it
    if found is None or not found.allowed:
        why = found.reason if found else _UNKNOWN
    elif review.scope.kind in _CONSUMERS and not found.for_consumers:
        why = _ON_CONSUMERS
    else:
        yield _Place(config, _rules(name), name, steps)
        return
    _refuse(review, steps, f"plugin {quoted(name)}", why)


@cache
def _rules(name: str) -> Node:
    return tree(PLUGINS[name].rules + COMMON + ((ORDER,) if name in IN_ORDER else ()))


@cache
def _action(name: str) -> Node:
    return tree(ACTIONS[name].rules)


def _step(review: _Review, place: _Place) -> Iterator[_Place]:
    """Review one value, and yield the values below it that still have to be reviewed."""
    value, node, kind = place.value, place.node, place.node.kind
    if kind in (Kind.FREE, Kind.CODE, Kind.UNCOMPRESSED):
        _count(review, sum(1 for _ in every_value(value)))
        return
    if kind is Kind.REFUSED:
        _refuse_field(review, place, place.node.rule.reason if place.node.rule else "")
    elif kind is Kind.PLUGINS:
        yield from _nested(review, place)
    elif kind in (Kind.SHARED, Kind.CACHE_KEY):
        _own(review, place)
    elif kind is Kind.REWRITES:
        _rewrites(review, place)
    elif isinstance(value, dict) and kind is Kind.HOSTS:
        _hosts(review, place)
    elif isinstance(value, dict) and (node.fields or node.any):
        yield from _fields(review, place)
    elif isinstance(value, list) and node.items:
        for index, item in enumerate(value):
            yield _Place(item, node.items, place.plugin, (*place.steps, index))
    else:
        _leaf(review, place)


def _fields(review: _Review, place: _Place) -> Iterator[_Place]:
    node, plugin, steps = place.node, place.plugin, place.steps
    _count(review, len(place.value))
    for name, value in place.value.items():
        below = node.fields.get(name) or node.any
        if below is None:
            _refuse_field(review, _Place(value, node, plugin, (*steps, name)), _UNKNOWN)
        else:
            yield _Place(value, below, plugin, (*steps, name))
    for name, below in node.fields.items():
        if below.kind is Kind.CACHE_KEY and name not in place.value:
            yield _Place(_DEFAULT_CACHE_KEY, below, plugin, (*steps, name))
        elif below.kind is Kind.UNCOMPRESSED and place.value.get(_DECODING):
            _require_plain(review, place.value.get(name) or [], (*steps, name))


def _require_plain(review: _Review, given: Any, steps: Steps) -> None:
    """Add the condition that a response is not compressed; a gateway rejects conditions that are not a list."""
    if isinstance(given, list):
        conditions = (
            [given] if given and isinstance(given[0], str) else given
        )  # an operator such as OR, and its operands
        review.changes.append((steps, [IS_NOT_COMPRESSED, *conditions]))


def _nested(review: _Review, place: _Place) -> Iterator[_Place]:
    """Yield the plugins inside a plugin: a list of `{name: config}`, or of `[name, config]`."""
    for index, item in enumerate(place.value if isinstance(place.value, list) else (place.value,)):
        steps = (*place.steps, index)
        if isinstance(item, dict):
            for name, config in item.items():
                yield from _start(review, name, config, (*steps, name))
        elif isinstance(item, list) and len(item) == 2 and isinstance(item[0], str):
            name, config = item
            if name in ACTIONS:
                yield _Place(config, _action(name), place.plugin, (*steps, 1))
            else:
                yield from _start(review, name, config, (*steps, 1))
        else:
            _refuse_field(review, place, "is not a list of plugins with their configurations")


def _own(review: _Review, place: _Place) -> None:
    """Prepend the namespace to a name or a cache key: it contains no slash, so namespaces cannot collide."""
    prefix = f"{review.scope.namespace}/"
    if place.node.kind is Kind.CACHE_KEY and isinstance(place.value, list):
        review.changes.append((place.steps, [prefix, *place.value]))
    elif place.node.kind is Kind.SHARED and isinstance(place.value, str):
        review.changes.append((place.steps, prefix + place.value))
    else:
        _wrong(review, place, "a list of strings" if place.node.kind is Kind.CACHE_KEY else "a string")


def _hosts(review: _Review, place: _Place) -> None:
    for key, value in place.value.items():
        if not _continues(review):
            return
        if isinstance(value, dict | list):
            _refuse_field(review, place, _UNKNOWN)
        else:
            _check(review, place, Kind.HOST, key)


def _rewrites(review: _Review, place: _Place) -> None:
    """Review a replacement of paths: the gateway appends the result to the name of its upstream."""
    texts = place.value if isinstance(place.value, list) else (place.value,)
    pairs = zip_longest(texts[::2], texts[1::2], fillvalue="")
    if not all(isinstance(text, str) for text in texts) or not all(keeps_path(*pair) for pair in pairs):
        _wrong(review, place, "patterns and replacements that begin with / or with a group that always does")


def _leaf(review: _Review, place: _Place) -> None:
    """Review a string, number or flag, or a list of these."""
    kind = place.node.kind
    values = place.value if isinstance(place.value, list) else (place.value,)
    if kind is None or any(isinstance(value, dict | list) for value in values):
        _refuse_field(review, place, _UNKNOWN)
    elif kind is Kind.PLAIN:
        _check_numbers(review, place, values)
    else:
        for value in values:
            if not _continues(review):
                return
            _check(review, place, kind, value)


def _check_numbers(review: _Review, place: _Place, values: Sequence[object]) -> None:
    """Review the size of numbers: one request must not occupy a gateway that serves other teams."""
    limit = most(place.plugin, place.node.rule.path) if place.node.rule else inf
    if limit < inf and not all(isinstance(value, int | float) and value <= limit for value in values):
        _wrong(review, place, f"a number of at most {limit:,}")


def _check(review: _Review, place: _Place, kind: Kind, value: object) -> None:
    """Review one string that has a meaning outside its plugin."""
    text = value if isinstance(value, str) else ""
    match kind:
        case Kind.HOST:
            _check_host(review, place, target_of_address(text), "a host name or an address, with or without a port")
        case Kind.URL:
            _check_host(review, place, target_of_url(text), "a plain URL such as https://host:8443/path")
        case Kind.PATH if not is_path(text):
            _wrong(review, place, "a plain path that begins with /")
        case Kind.CONSUMER if not text.startswith(prefix := _consumer_prefix(review.scope)):
            _wrong(review, place, f"the username of a consumer of this namespace, which begins with {prefix}")
        case Kind.WORD if not is_word(text):
            _wrong(review, place, "one word of letters, digits, - and _")
        case Kind.HOSTS:
            _wrong(review, place, "a mapping of hosts to weights")
        case Kind.SELECTOR if not is_selector(text):
            _wrong(review, place, "a name, or a JSONPath without filters, lists and slices and with at most one '..'")


def _consumer_prefix(scope: Context) -> str:
    return consumer_name(scope.namespace, "", scope.options.consumer_names)


def _check_host(review: _Review, place: _Place, target: Target | None, form: str) -> None:
    if target and _continues(review, _COST_OF_HOST):
        review.problems += not check_address(review.scope, target.host, review.at(place.steps), port=target.port)
    elif not target:
        _wrong(review, place, f"{form}, without variables, user names and escapes")


def _wrong(review: _Review, place: _Place, form: str) -> None:
    _note(review, place.steps, f"{_name(place)} is rejected by {_SETTING}: it must be {form}")


def _refuse_field(review: _Review, place: _Place, why: str) -> None:
    _refuse(review, place.steps, _name(place), why)


def _refuse(review: _Review, steps: Steps, what: str, why: str) -> None:
    _note(review, steps, f"{what} is rejected by {_SETTING}: it {why}; {_REMEDY}")


def _note(review: _Review, steps: Steps, message: str) -> None:
    review.problems += 1
    review.scope.forbid("PluginRefused", review.at(steps), message)


def _name(place: _Place) -> str:
    return f"field {_dotted(place.steps)} of plugin {place.plugin}" if place.steps else f"plugin {place.plugin}"


def _dotted(steps: Steps) -> str:
    parts = (f"[{step}]" if isinstance(step, int) else f".{quoted(str(step))}" for step in steps)
    return "".join(parts).removeprefix(".")


def _changed(config: JsonObject, changes: list[tuple[Steps, Any]]) -> JsonObject:
    """Return a configuration with other values in some places; only containers on the way to them are copied."""
    if not changes:
        return config
    result = copy.copy(config)
    copied: dict[Steps, Any] = {(): result}
    for steps, value in changes:
        for depth in range(1, len(steps)):
            here, above = steps[:depth], copied[steps[: depth - 1]]
            if here not in copied:
                copied[here] = above[here[-1]] = copy.copy(above[here[-1]])
        copied[steps[:-1]][steps[-1]] = value
    return result
