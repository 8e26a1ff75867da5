"""Conditions of a match → fields of a route record."""

from __future__ import annotations

from typing import Any

from apisix_ingress.model.formats.patterns import escaped_literal
from apisix_ingress.model.network.gateway_matches import decoded_path
from crds.gateway.common import HeaderMatch
from crds.gateway.routes import GrpcRouteMatch, HttpRouteMatch, MethodMatch, PathMatch


def http_fields(match: HttpRouteMatch) -> dict[str, Any]:
    """Return the fields of a record for path, method, headers and query."""
    uris, conditions = _path(match.path)
    conditions += [_condition(_header_variable(each.name), each) for each in _distinct(match.headers)]
    conditions += [_condition(f"arg_{each.name}", each) for each in match.query_params]
    methods = {"methods": [match.method]} if match.method else {}
    return {"uris": uris, "vars": conditions, **methods}


def grpc_fields(match: GrpcRouteMatch) -> dict[str, Any]:
    """Return the fields of a record for service, method and headers."""
    uris, conditions = _call(match.method)
    conditions += [_condition(_header_variable(each.name), each) for each in _distinct(match.headers)]
    return {"uris": uris, "vars": conditions}


def _path(path: PathMatch) -> tuple[list[str], list[Any]]:
    if path.type == "RegularExpression":
        # A dot also matches a line break, so that an encoded one does not lead past a guard.
        return ["/*"], [["uri", "~~", f"^(?s:{path.value})$"]]
    value = decoded_path(path.value)
    prefix = value.rstrip("/")
    if "*" in value:  # which the gateway would take as a wildcard
        expression = escaped_literal(value) if path.type == "Exact" else f"{escaped_literal(prefix)}(?:/[\\s\\S]*)?"
        return [value.partition("*")[0] + "*"], [["uri", "~~", f"^{expression}$"]]
    if path.type == "Exact":
        return [value], []
    return ([prefix, f"{prefix}/*"] if prefix else ["/*"]), []


def _call(call: MethodMatch) -> tuple[list[str], list[Any]]:
    service, method = call.service, call.method
    if call.type == "RegularExpression":
        return ["/*"], [["uri", "~~", f"^/(?:{service or '[^/]+'})/(?:{method or '[^/]+'})$"]]
    if service and method:
        return [f"/{service}/{method}"], []
    if method:
        return ["/*"], [["uri", "~~", f"^/[^/]+/{escaped_literal(method)}$"]]
    return ([f"/{service}/*"] if service else ["/*"]), []


def _header_variable(name: str) -> str:
    return f"http_{name.lower().replace('-', '_')}"


def _distinct(headers: tuple[HeaderMatch, ...]) -> list[HeaderMatch]:
    """Return the first condition on each header: later ones of the same name are ignored (Gateway API)."""
    found: dict[str, HeaderMatch] = {}
    for each in headers:
        found.setdefault(each.name.lower(), each)
    return list(found.values())


def _condition(variable: str, match: HeaderMatch) -> list[Any]:
    if match.type == "RegularExpression":
        return [variable, "~~", f"^(?:{match.value})$"]
    return [variable, "==", match.value]
