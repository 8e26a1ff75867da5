"""Ingress → routes, ssl records and claims on upstreams.

One route for each host and path. Source of the mapping: v1-behaviour.md §2.8; beyond it, default backends and Prefix
paths with a slash at the end work as in the Kubernetes specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from apisix_ingress.model import names
from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.network.host_names import in_ascii, without_dot
from apisix_ingress.model.network.route_keys import DEFAULT_PRIORITY, REGEX_PRIORITY
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds.v2.common import HOST_PATTERN
from translation.annotations import RouteAnnotations, read_annotations
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.text_checks import check_object
from translation.gateway.extensions.http_route_policy import rule_effects
from translation.gateway.extensions.standings import HTTP_ROUTE_POLICY, policies_of
from translation.hosts.certificate_conflicts import Hosts
from translation.hosts.matching import check_host_name
from translation.hosts.route_conflicts import RouteConflicts
from translation.ingress_spec import Backend, IngressSpec, parse_ingress
from translation.ingress_tls import protect_tls, translate_tls
from translation.plugins.configs import present
from translation.plugins.pattern_errors import close_on_error
from translation.route import find_plugin_config
from translation.upstreams import backends

EXACT_PRIORITY = 1
"""Priority of an Exact path if a Prefix path of the same Ingress has the same text. Otherwise 1.8's 0 is sufficient."""

_HOST = ValuePattern(HOST_PATTERN)


class _Entry(NamedTuple):
    """A route to create: a host, a path and a backend."""

    host: str
    path: str
    type: str
    backend: Backend
    field: str


def translate_ingress(obj: CustomObject, view: View, options: Options, *, now: datetime | None = None) -> Outcome:
    """Return the routes, certificates and claims of an Ingress.

    Args:
        obj: The Ingress.
        view: The objects to read.
        options: The settings.
        now: The wall clock, aware; without it, expired certificates are not reported.
    """
    draft = Builder(obj.meta, view, options)
    draft.protect("routes", prefix=names.ingress_prefix(draft.namespace, draft.meta.name))
    check_object(draft, obj)
    spec = parse_ingress(draft, obj.spec)
    if spec is None:
        return draft.finish()
    protect_tls(draft, spec.tls)
    extras = read_annotations(draft, obj.meta.annotations)
    if draft.claims_too_much(obj):
        return draft.finish()
    entries = tuple(_entries(draft, spec))
    prefixes = {(entry.host, _stem(entry.path)) for entry in entries if entry.type == "Prefix"}
    rivals = RouteConflicts(draft, obj)
    conditions, base = _policies(draft, obj)
    for entry, name in _named(draft, entries, extras):
        shared = (entry.host, entry.path) in prefixes
        priority = _priority(entry, extras, shared, rivals.ahead(entry.field)) + base
        _route(draft, entry, extras, name, priority=priority, conditions=conditions)
    if spec.tls:
        translate_tls(draft, spec, Hosts(draft, obj), now)
    return draft.finish()


def _policies(draft: Builder, obj: CustomObject) -> tuple[Sequence[Any], int]:
    """Return the further conditions on requests, and the priority, from HTTPRoutePolicies."""
    if not policies_of(HTTP_ROUTE_POLICY, obj.meta.key, draft.view):
        return (), 0
    [effect] = rule_effects(draft, obj)
    return effect.vars, effect.priority or 0


def _entries(draft: Builder, spec: IngressSpec) -> Iterator[_Entry]:
    for index, rule in enumerate(spec.rules):
        here = f"spec.rules[{index}]"
        if rule.host:
            _check_host(draft, rule.host, f"{here}.host")
        if not rule.http or not draft.usable([rule.host], f"{here}.host"):
            continue
        for number, item in enumerate(rule.http.paths):
            yield _Entry(rule.host, item.path, item.path_type, item.backend, f"{here}.http.paths[{number}]")
    if spec.default_backend and draft.usable([""], "spec.defaultBackend"):
        yield _Entry("", "/*", "Default", spec.default_backend, "spec.defaultBackend")


def _check_host(draft: Builder, host: str, path: str) -> None:
    if _HOST.fits(host):
        check_host_name(draft, host, path)
    else:
        draft.error("InvalidHost", path, f"{host!r} is not a host name{in_ascii(host)}")


def _named(draft: Builder, entries: Sequence[_Entry], extras: RouteAnnotations) -> Iterator[tuple[_Entry, str]]:
    """Yield each entry that has a route, with the name of the route.

    1.8's name consists of host and path only, and if several entries have the same name, the last one gets the route.
    The same applies here; an earlier entry of another type has a second name, and one of the same type gets no
    requests.
    """
    winners = {_taken(entry, extras): entry for entry in entries}
    won = [entry for entry in entries if winners[_taken(entry, extras)] is entry]
    holders = {_name(draft, entry): entry for entry in won}
    for entry in entries:
        winner = winners[_taken(entry, extras)]
        name = _name(draft, entry)
        if winner is not entry:
            message = f"{winner.field} has the same host and path and gets the requests because it comes later"
            draft.warn("PathTwice", entry.field, message)
        elif holders[name] is entry:
            yield entry, name
        else:
            yield entry, _name(draft, entry, f"#{entry.type}")


def _taken(entry: _Entry, extras: RouteAnnotations) -> tuple[str, str, str]:
    """Return the key that distinguishes entries that match different requests."""
    kind = _kind(entry, extras)
    return entry.host, _stem(entry.path) if kind == "Prefix" else entry.path, kind


def _name(draft: Builder, entry: _Entry, suffix: str = "") -> str:
    return names.ingress_route_name(draft.namespace, draft.meta.name, entry.host, f"{entry.path}{suffix}")


def _kind(entry: _Entry, extras: RouteAnnotations) -> str:
    """Return the path type that determines the gateway's behaviour."""
    return "Exact" if entry.type == "ImplementationSpecific" and not extras.use_regex else entry.type


def _route(
    draft: Builder, entry: _Entry, extras: RouteAnnotations, name: str, *, priority: int, conditions: Sequence[Any]
) -> None:
    body = draft.new_body("routes", name) | present({"host": without_dot(entry.host), "priority": priority})
    body |= _path(entry, extras)
    if conditions:
        body["vars"] = [*body.get("vars", ()), *conditions]
    body["upstream_id"] = _upstream(draft, entry, extras)
    body |= _extras(draft, extras)
    draft.record("routes", name, body)
    close_on_error(draft, name, body)


def _priority(entry: _Entry, extras: RouteAnnotations, shared: bool, ahead: int) -> int:
    """Return the priority of a route; the larger one wins. `ahead` conflicting objects are older."""
    match _kind(entry, extras):
        case "Default":
            return DEFAULT_PRIORITY - ahead
        case "Exact" if shared and not ahead:
            return EXACT_PRIORITY
        case "ImplementationSpecific":
            return REGEX_PRIORITY - ahead
        case _:
            return -ahead


def _path(entry: _Entry, extras: RouteAnnotations) -> JsonObject:
    match entry.type:
        case "Prefix":
            # `/foo/` matches `/foo` and everything below it, as in Kubernetes (quirk 32).
            stem = _stem(entry.path)
            return {"uris": [stem, f"{stem.rstrip('/')}/*"]}
        case "ImplementationSpecific" if extras.use_regex:
            return {"uris": ["/*"], "vars": [["uri", "~~", entry.path]]}
        case _:
            return {"uris": [entry.path or "/*"]}


def _stem(path: str) -> str:
    return path.rstrip("/") or "/"


def _upstream(draft: Builder, entry: _Entry, extras: RouteAnnotations) -> str:
    field = f"{entry.field}.backend" if entry.type != "Default" else entry.field
    service = entry.backend.service
    if service is None:
        message = "does not name a Service, the only supported kind of backend; use service"
        draft.error("BackendUnsupported", field, message)
        return ""
    port = service.port.number or service.port.name
    if not port:
        draft.error("InvalidSpec", f"{field}.service.port", "is missing: set the number or the name of the port")
        return ""
    backend = backends.Backend(
        extras.service_namespace or draft.namespace,
        service.name,
        port,
        path=f"{field}.service.name",
        port_path=f"{field}.service.port",
        overrides=extras.overrides,
    )
    return backends.claim_service(draft, backend)


def _extras(draft: Builder, extras: RouteAnnotations) -> JsonObject:
    body = present({"enable_websocket": extras.websocket, "plugins": dict(extras.plugins)})
    if extras.plugin_config:
        path = extras.plugin_config_field
        body["plugin_config_id"] = find_plugin_config(draft, draft.namespace, extras.plugin_config, path)
    return body
