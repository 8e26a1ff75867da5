"""ApisixRoute → routes and stream routes, with claims on their upstreams.

All or nothing: a single mistake prevents the whole object from being published, since the other rules alone could open
a path that the invalid rule protects. Source of the mapping: v1-behaviour.md §2.2, §2.3, §2.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from apisix_ingress.model import names
from apisix_ingress.model.json import FrozenJson, JsonObject, list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey, RecordKind
from apisix_ingress.model.names import Granularity
from apisix_ingress.model.network.host_claims import claimed_port
from apisix_ingress.model.network.host_names import without_dot
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.claims import UpstreamClaim
from apisix_ingress.state.view import View
from crds import SpecError, parse_spec
from crds.v2.route import ApisixRouteSpec
from translation.core.builder import Builder
from translation.core.context import Context
from translation.core.durations import timeout_body, timeout_parts
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.scope import class_is_ours, in_scope
from translation.core.text_checks import check_object
from translation.hosts.matching import check_addresses, check_host_name, check_hosts, check_paths, expressions
from translation.hosts.route_conflicts import RouteConflicts
from translation.plugin_config import plugins_of
from translation.plugins.code import refuse_code
from translation.plugins.configs import Plugins, authenticate, present, translate_plugins
from translation.plugins.pattern_errors import close_on_error
from translation.upstreams.backends import Backend, claim_external, claim_service

if TYPE_CHECKING:
    from crds.v2.route import HttpMatch, HttpRule, StreamBackend, StreamRule

TRAFFIC_SPLIT = "traffic-split"

_SHORTEST_FILTER = 10
"""A gateway requires ten characters that begin with `function` (APISIX route schema)."""


def translate_route(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the routes, stream routes and claims of an ApisixRoute."""
    draft = Builder(obj.meta, view, options)
    _protect(draft, obj.spec)
    check_object(draft, obj)
    try:
        spec = parse_spec(ApisixRouteSpec, obj.spec)
    except SpecError as error:
        draft.report_invalid_spec(error)
        _claim_roughly(draft, obj.spec)
        return draft.finish()
    if draft.claims_too_much(obj):
        return draft.finish()
    rivals = RouteConflicts(draft, obj)
    for index, rule in enumerate(spec.http):
        _http(draft, rule, f"spec.http[{index}]", rivals)
    for index, stream in enumerate(spec.stream):
        _stream(draft, stream, f"spec.stream[{index}]")
    return draft.finish()


def find_plugin_config(draft: Builder, namespace: str, name: str, path: str) -> str:
    """Return the id of a plugin config, or report that no plugin config of this class has that name."""
    key = ObjectKey("ApisixPluginConfig", namespace, name)
    found = draft.custom(key)
    if found is None or not in_scope(namespace, draft.view, draft.options):
        draft.missing("PluginConfigNotFound", path, key)
    elif not class_is_ours(found, draft.view, draft.options):
        draft.foreign("PluginConfigNotFound", path, found)
    elif draft.options.judges_plugins:
        _check_plugin_config(draft, found, path)
    return draft.refer("plugin_configs", names.object_name(namespace, name))


def _check_plugin_config(draft: Builder, found: CustomObject, path: str) -> None:
    """Report forbidden settings in a plugin config: a gateway keeps its record for as long as a route refers to it."""
    key = found.meta.key
    if key not in draft.plugin_configs:
        scope = Context(key.kind, key.namespace, draft.view, draft.options)
        draft.plugin_configs[key] = plugins_of(scope, found) or {}, scope
    if draft.plugin_configs[key][1].has_refused_content:
        draft.adopt(draft.plugin_configs[key][1], path, key)


def _http(draft: Builder, rule: HttpRule, path: str, rivals: RouteConflicts) -> None:
    hosts = draft.usable(rule.match.hosts or [""], f"{path}.match.hosts")
    if not hosts:
        return
    name = names.route_name(draft.namespace, draft.meta.name, rule.name)
    if names.is_of_ingress(draft.namespace, rule.name):
        message = f"is the name of a record of an Ingress in namespace {draft.meta.name}; rename the rule"
        draft.error("InvalidSpec", f"{path}.name", message)
    body = draft.new_body("routes", name, labelled=True)
    body |= _matching(draft, rule.match, hosts, f"{path}.match")
    body |= present({"priority": rule.priority - rivals.ahead(path), "enable_websocket": rule.websocket})
    if rule.timeout is not None:
        body["timeout"] = timeout_body(timeout_parts(rule.timeout))
    plugins = translate_plugins(draft, rule.plugins, f"{path}.plugins")
    authenticate(draft, plugins, rule.authentication, f"{path}.authentication")
    upstream_id = _upstreams(draft, rule, plugins, path)
    if upstream_id:
        body["upstream_id"] = upstream_id
    if plugins or not upstream_id:
        # The gateway requires one of the two, and accepts an empty mapping.
        body["plugins"] = plugins
    if rule.plugin_config_name:
        namespace = rule.plugin_config_namespace or draft.namespace
        path = f"{path}.plugin_config_name"
        body["plugin_config_id"] = find_plugin_config(draft, namespace, rule.plugin_config_name, path)
    draft.record("routes", name, body)
    close_on_error(draft, name, body)


def _matching(draft: Builder, match: HttpMatch, hosts: Sequence[str], path: str) -> JsonObject:
    check_paths(draft, match.paths, f"{path}.paths")
    check_hosts(draft, match.hosts, f"{path}.hosts")
    check_addresses(draft, match.remote_addrs, f"{path}.remoteAddrs")
    if match.filter_func:
        _check_filter(draft, match.filter_func, f"{path}.filter_func")
    fields: JsonObject = {
        # The gateway rejects lists with duplicates.
        "uris": _once(match.paths),
        "hosts": _once([without_dot(host) for host in hosts if host]),
        "methods": _once(match.methods),
        "remote_addrs": _once(match.remote_addrs),
        "vars": expressions(match.exprs),
        "filter_func": match.filter_func,
    }
    return present(fields)


def _once(items: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(items)) if len(items) > 1 else list(items)


def _check_filter(draft: Builder, code: str, path: str) -> None:
    refuse_code(draft, "filter_func", path)
    if not code.startswith("function") or len(code) < _SHORTEST_FILTER:
        draft.error("InvalidSpec", path, "is not a function that gateways accept; write function(vars) … end")


def _upstreams(draft: Builder, rule: HttpRule, plugins: Plugins, path: str) -> str:
    """Claim the upstreams of a rule, add the split between them, and return the id of the first one."""
    backends = [
        (claim_service(draft, _backend(draft, item, f"{path}.backends[{index}]")), item.weight)
        for index, item in enumerate(rule.backends)
    ]
    external = [
        (claim_external(draft, item, f"{path}.upstreams[{index}].name"), item.weight)
        for index, item in enumerate(rule.upstreams)
    ]
    if not (targets := [*backends, *external]):
        return ""
    (first, first_weight), *others = targets
    if others:
        if TRAFFIC_SPLIT in plugins:
            message = (
                "the split between the backends replaces the plugin traffic-split; use one backend or remove the plugin"
            )
            draft.warn("PluginReplaced", f"{path}.plugins", message)
        if not any(weight for _, weight in targets):
            message = "are all 0, which the gateway treats as equal weights; set a weight for one of them"
            draft.warn("WeightsZero", f"{path}.backends", message)
        # The order of 1.8: the other backends, the first one, which is the route's own upstream, then upstreams.
        split: list[JsonObject] = [{"upstream_id": id_, "weight": weight} for id_, weight in others]
        split.insert(max(len(backends) - 1, 0), {"weight": first_weight})
        plugins[TRAFFIC_SPLIT] = {"rules": [{"weighted_upstreams": split}]}
    return first


def _backend(draft: Builder, backend: StreamBackend, path: str) -> Backend:
    return Backend(
        backend.service_namespace or draft.namespace,
        backend.service_name,
        backend.service_port,
        path=f"{path}.serviceName",
        port_path=f"{path}.servicePort",
        granularity="service" if backend.by_service else "endpoint",
        subset=backend.subset,
    )


def _stream(draft: Builder, rule: StreamRule, path: str) -> None:
    claim = rule.match.host or claimed_port(rule.match.ingress_port)
    if not draft.usable([claim], f"{path}.match.{'host' if rule.match.host else 'ingressPort'}"):
        return
    name = names.stream_route_name(draft.namespace, draft.meta.name, rule.name)
    body = draft.new_body("stream_routes", name)
    del body["name"]  # 1.8 sends none
    check_host_name(draft, rule.match.host, f"{path}.match.host")
    body |= {"server_port": rule.match.ingress_port, **present({"sni": without_dot(rule.match.host)})}
    body["upstream_id"] = claim_service(draft, _backend(draft, rule.backend, f"{path}.backend"))
    body |= present({"plugins": translate_plugins(draft, rule.plugins, f"{path}.plugins")})
    draft.record("stream_routes", name, body)


def _protect(draft: Builder, spec: FrozenJson) -> None:
    """Protect the records of the object, as far as its spec can be read. Stream routes do not contain a name."""
    if draft.namespace == names.INGRESS:
        # A name that begins with namespace and name may belong to an Ingress in the namespace of that name.
        known = (rule.get("name") for rule in _mappings(spec.get("http")))
        own = (rule for rule in known if isinstance(rule, str) and not names.is_of_ingress(draft.namespace, rule))
        routes = frozenset(names.route_name(draft.namespace, draft.meta.name, rule) for rule in own)
        draft.protect("routes", names=routes)
    else:
        draft.protect("routes", prefix=names.route_prefix(draft.namespace, draft.meta.name))
    if streams := spec.get("stream"):
        rules = (rule.get("name") for rule in _mappings(streams))
        own = (rule for rule in rules if isinstance(rule, str))
        held = frozenset(names.stream_route_name(draft.namespace, draft.meta.name, rule) for rule in own)
        draft.protect("stream_routes", names=held)


def unnamed_records(obj: CustomObject) -> Iterator[tuple[RecordKind, str]]:
    """Yield the stream routes that an object may have: their bodies contain no name."""
    for rule in list_in(obj.spec.get("stream")):
        if isinstance(name := mapping_in(rule).get("name"), str):
            yield "stream_routes", names.stream_route_name(obj.meta.namespace, obj.meta.name, name)


def _claim_roughly(draft: Builder, spec: FrozenJson) -> None:
    """Claim what can be read of an invalid spec: its routes may be in a gateway from a valid version."""
    rules = [*_mappings(spec.get("http")), *_mappings(spec.get("stream"))]
    for rule in rules:
        for backend in _mappings([*list_in(rule.get("backends")), rule.get("backend")]):
            _claim_service_roughly(draft, backend)
        for reference in _mappings(rule.get("upstreams")):
            if isinstance(name := reference.get("name"), str):
                draft.claim(UpstreamClaim(ObjectKey("ApisixUpstream", draft.namespace, name)))


def _claim_service_roughly(draft: Builder, backend: FrozenJson) -> None:
    service, port = backend.get("serviceName"), backend.get("servicePort")
    namespace, subset = backend.get("serviceNamespace") or draft.namespace, backend.get("subset")
    if not isinstance(service, str) or not isinstance(port, int) or not isinstance(namespace, str):
        return
    key = ObjectKey("Service", namespace, service)
    if not draft.refuses(key):
        granularity: Granularity = "service" if backend.get("resolveGranularity") == "service" else "endpoint"
        draft.claim(UpstreamClaim(key, port, subset if isinstance(subset, str) else "", granularity))


def _mappings(value: object) -> Iterator[JsonObject]:
    return (item for item in list_in(value) if isinstance(item, dict))
