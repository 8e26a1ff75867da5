"""Matchers: the requests that the rules of an object match, to find conflicts between objects.

Derived from raw specs, like every index, so that untranslatable objects are included. Two matchers are equal if host,
path, and all other conditions on requests are; a canary with another condition or priority therefore differs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from apisix_ingress.model.json import FrozenJson, list_in, mapping_in
from apisix_ingress.model.network.host_names import canonical_host
from apisix_ingress.model.objects import CustomObject

MOST_MATCHERS = 20_000
"""Limit of host and path pairs per object; an object with more has no matchers and its translation fails."""

REGEX_ANNOTATION = "k8s.apisix.apache.org/use-regex"
REGEX_PRIORITY = 100
DEFAULT_PRIORITY = -1
"""Priorities of Ingress routes: for a path that is a regular expression, and for the default backend."""

_LONG = 256
"""Length of a path from which its digest is used instead."""


class Matcher(NamedTuple):
    """One host and path of a rule.

    Attributes:
        field: The rule in the object, e.g. `spec.http[0]`.
        host: As written; empty for every host.
        path: As written.
        value: Equal for two matchers that match the same requests.
    """

    field: str
    host: str
    path: str
    value: str


class Rule(NamedTuple):
    """Hosts and paths of one rule of an object; no hosts: every host."""

    field: str
    hosts: list[str]
    paths: list[str]
    """As in the gateway: exact, or with a trailing `*`."""
    rest: str = ""
    shown: str = ""


def matchers(obj: CustomObject) -> tuple[Matcher, ...]:
    """Return the matchers of a route object in the order of its fields; empty if there are too many."""
    rules = tuple(rules_of(obj))
    return matchers_of(rules) if count_matchers(rules) <= MOST_MATCHERS else ()


def count_matchers(rules: Iterable[Rule]) -> int:
    """Return how many pairs of host and path rules have."""
    return sum(max(len(rule.hosts), 1) * len(rule.paths) for rule in rules)


def matcher_values(obj: CustomObject) -> Iterable[str]:
    """Return the values under which an object is indexed."""
    return (matcher.value for matcher in matchers(obj))


def matchers_of(rules: Iterable[Rule]) -> tuple[Matcher, ...]:
    """Return the matchers of rules, in their order."""
    found = []
    for rule in rules:
        paths = [(path, _path_value(path)) for path in rule.paths]
        for host in rule.hosts or [""]:
            spelled = canonical_host(host)
            found += [
                Matcher(rule.field, host, rule.shown or path, f"{spelled}\n{value}\n{rule.rest}")
                for path, value in paths
            ]
    return tuple(found)


def _path_value(path: str) -> str:
    return path if len(path) <= _LONG else _digest(path)


def rules_of(obj: CustomObject) -> Iterator[Rule]:
    """Yield the rules of an object, whether or not it can be translated; its kind must be in `RULE_READERS`."""
    return RULE_READERS[obj.meta.kind](obj)


def _route(obj: CustomObject) -> Iterator[Rule]:
    for index, rule in enumerate(list_in(obj.spec.get("http"))):
        match = mapping_in(mapping_in(rule).get("match"))
        rest = _rest(
            _number(mapping_in(rule).get("priority")),
            methods=_texts(match.get("methods")),
            addresses=_texts(match.get("remoteAddrs")),
            conditions=list_in(match.get("exprs")),
            function=match.get("filter_func"),
        )
        yield Rule(f"spec.http[{index}]", _texts(match.get("hosts")), _texts(match.get("paths")), rest)


def _ingress(obj: CustomObject) -> Iterator[Rule]:
    spec, regex = obj.spec, obj.meta.annotations.get(REGEX_ANNOTATION, "").strip() == "true"
    for index, rule in enumerate(list_in(spec.get("rules"))):
        hosts = _texts([mapping_in(rule).get("host")])
        for number, item in enumerate(list_in(mapping_in(mapping_in(rule).get("http")).get("paths"))):
            yield _ingress_path(f"spec.rules[{index}].http.paths[{number}]", hosts, mapping_in(item), regex=regex)
    if spec.get("defaultBackend"):
        yield Rule("spec.defaultBackend", [], ["/*"], _rest(DEFAULT_PRIORITY))


def _ingress_path(field: str, hosts: list[str], item: FrozenJson, *, regex: bool) -> Rule:
    """Return the rule for a path. Users cannot choose the priority of an Exact path."""
    path, kind = item.get("path") or "", item.get("pathType")
    if not isinstance(path, str):
        return Rule(field, hosts, [])
    if kind == "Prefix":
        return Rule(field, hosts, [f"{path.rstrip('/')}/*"], shown=path)
    if kind != "Exact" and regex:
        condition = {"subject": {"scope": "Path"}, "op": "RegexMatch", "value": path}
        return Rule(field, hosts, ["/*"], _rest(REGEX_PRIORITY, conditions=[condition]), shown=path)
    return Rule(field, hosts, [path or "/*"])


def _gateway_route(obj: CustomObject, path_of: Callable[[FrozenJson], tuple[str, str]]) -> Iterator[Rule]:
    """Yield a rule for each match; conditions are compared with those of ApisixRoutes."""
    hosts = _texts(obj.spec.get("hostnames"))
    for index, rule in enumerate(list_in(obj.spec.get("rules")) or [{}]):
        for number, match in enumerate(map(mapping_in, list_in(mapping_in(rule).get("matches")) or [{}])):
            path, expression = path_of(match)
            conditions = [_subject("Path", {"type": "RegularExpression", "value": expression})] if expression else []
            for scope, field in (("Header", "headers"), ("Query", "queryParams")):
                conditions += [_subject(scope, mapping_in(each)) for each in list_in(match.get(field))]
            methods = _texts([match.get("method")])
            rest = _rest(0, methods=methods, conditions=conditions)
            yield Rule(f"spec.rules[{index}].matches[{number}]", hosts, [path], rest, shown=expression or path)


def _subject(scope: str, match: FrozenJson) -> FrozenJson:
    """Return a condition of a match in the form of an ApisixRoute."""
    op = "RegexMatch" if match.get("type") == "RegularExpression" else "Equal"
    return {"subject": {"scope": scope, "name": match.get("name")}, "op": op, "value": match.get("value")}


def _http_path(match: FrozenJson) -> tuple[str, str]:
    """Return the path of a match of an HTTPRoute, as in the gateway, and its regular expression, or empty."""
    path = mapping_in(match.get("path"))
    value, kind = str(path.get("value") or "/"), path.get("type")
    if kind == "RegularExpression":
        return "/*", value
    return value if kind == "Exact" else f"{value.rstrip('/')}/*", ""


def _grpc_path(match: FrozenJson) -> tuple[str, str]:
    """Return the path of a match of a GRPCRoute, as in the gateway, and its regular expression, or empty."""
    call = mapping_in(match.get("method"))
    service, method = str(call.get("service") or ""), str(call.get("method") or "")
    if call.get("type") == "RegularExpression" or (method and not service):
        return "/*", f"/{service or '[^/]+'}/{method or '[^/]+'}"
    return f"/{service}/{method or '*'}" if service else "/*", ""


RULE_READERS: Mapping[str, Callable[[CustomObject], Iterator[Rule]]] = {
    "ApisixRoute": _route,
    "Ingress": _ingress,
    "HTTPRoute": partial(_gateway_route, path_of=_http_path),
    "GRPCRoute": partial(_gateway_route, path_of=_grpc_path),
}
"""Kind → its rules: every kind with the index of matchers. An index function must not fail for any spec."""


def _rest(
    priority: int,
    *,
    methods: Sequence[str] = (),
    addresses: Sequence[str] = (),
    conditions: Sequence[Any] = (),
    function: object = None,
) -> str:
    """Return the other conditions on requests; empty if there are none."""
    if not (priority or methods or addresses or conditions or function):
        return ""
    canonical = sorted({json.dumps(_condition(item), sort_keys=True) for item in conditions})
    parts = [priority, sorted(set(methods)), sorted(set(addresses)), canonical, function or ""]
    return _digest(json.dumps(parts, default=str)) if any(parts) else ""


def _condition(value: Any) -> Any:
    """Return a canonical form of a condition."""
    condition = {key: item for key, item in mapping_in(value).items() if item is not None}
    subject = mapping_in(condition.get("subject"))
    name = subject.get("name")
    if subject.get("scope") == "Header" and isinstance(name, str):
        condition["subject"] = {"scope": "Header", "name": name.lower().replace("-", "_")}
    elif subject.get("scope") == "Path":
        condition["subject"] = {"scope": "Path"}
    if "set" in condition:
        condition["set"] = sorted(set(_texts(condition["set"])))
    return condition


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str) and item] if isinstance(value, list) else []


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
