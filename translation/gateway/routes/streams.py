"""TLSRoute, TCPRoute and UDPRoute → stream routes; traffic-split divides their connections among backends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from crds import SpecError
from crds.gateway.routes import StreamRouteSpec
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.core.text_checks import check_object
from translation.gateway.entry.listeners import gateway_port
from translation.gateway.extensions.l4_route_policy import stream_plugins
from translation.gateway.names import route_name
from translation.gateway.parsing import spec_of
from translation.gateway.routes.attachment import Attached, parents_of
from translation.gateway.routes.backends import Backends, Invalid, Wanted, backends_of, split_of
from translation.gateway.routes.http import assessed
from translation.plugins.configs import Plugins


def translate_stream_route(obj: CustomObject, view: View, options: Options) -> Outcome:
    """Return the records of a TLSRoute, TCPRoute or UDPRoute with a Gateway of this controller."""
    draft = Builder(obj.meta, view, options)
    check_object(draft, obj)
    try:
        spec = spec_of(obj, StreamRouteSpec)
    except SpecError as error:
        draft.report_invalid_spec(error)
        return draft.finish()
    parents = parents_of(draft, obj, spec)
    attached = {each.listener.key: each for parent in parents for each in parent.listeners}
    invalid: dict[Invalid, None] = {}
    plugins = stream_plugins(draft, obj.meta.key)
    for index, rule in enumerate(spec.rules):
        path = f"spec.rules[{index}]"
        backends = backends_of(draft, rule.backend_refs, f"{path}.backendRefs", Wanted(verifies=False))
        invalid |= dict.fromkeys(backends.invalid)
        if index:
            draft.error("UnsupportedValue", path, "only the first rule can receive connections; keep a single rule")
        for each in attached.values():
            _records(draft, obj, each, index, backends, plugins)
    return assessed(draft, parents, tuple(invalid))


def _records(
    draft: Builder, obj: CustomObject, attached: Attached, rule: int, backends: Backends, plugins: Plugins
) -> None:
    if not backends.targets:
        return  # without a record the gateway closes connections
    listener = attached.listener
    port = gateway_port(listener, draft.options)
    where = {"server_addr": attached.address} if attached.address else {}
    for number, server_name in enumerate(_server_names(obj, attached)):
        name = route_name(obj.meta.key, rule, number, listener.key)
        body = draft.new_body("stream_routes", name)
        del body["name"]  # as other stream routes
        body |= {"server_port": port, **where, **server_name, "upstream_id": backends.targets[0].upstream_id}
        if listener.is_passthrough:
            body["tls_passthrough"] = True
        if every := {**plugins, **split_of(backends.targets, backends.broken)}:
            body["plugins"] = every
        draft.protect("stream_routes", names=frozenset({name}))
        draft.record("stream_routes", name, body)


def _server_names(obj: CustomObject, attached: Attached) -> Iterator[dict[str, Any]]:
    if obj.meta.kind != "TLSRoute":
        yield {}
        return
    for host in attached.hosts:
        yield {"sni": host} if host else {}
