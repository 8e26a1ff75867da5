"""The response that a request gets from the route that the gateway chooses: status, Location and backend.

This is the only place that computes it. `explain`, hosts, problems and the commands read the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from apisix_ingress.explain.plugins import Reply, replies
from apisix_ingress.explain.request import ProbeRequest
from apisix_ingress.explain.templates import PluginScope
from apisix_ingress.model.json import FrozenJson, list_in, mapping_in
from apisix_ingress.model.keys import RecordKey

Records = Mapping[RecordKey, FrozenJson]

ResponseKind = Literal["backend", "redirect", "reply", "error"]


@dataclass(frozen=True, slots=True)
class Destination:
    """An upstream that a request may be sent to.

    Attributes:
        key: Its record; None: the upstream is part of the route.
        body: The upstream; empty if the record does not exist.
        by: The rule that selects it, such as `traffic-split weight 20`; empty: it is the route's.
    """

    key: RecordKey | None
    body: FrozenJson
    by: str = ""

    @property
    def error(self) -> tuple[int, str] | None:
        """Status and cause if requests for it fail; None if nothing is known to be wrong."""
        name = self.body.get("name") or (self.key.id if self.key else "of the route")
        if self.key is not None and not self.body:
            return (500 if self.by else 502), f"upstream {name} does not exist"
        if not self.body.get("nodes") and not self.body.get("service_name"):
            return 503, f"upstream {name} has no nodes"
        return None


@dataclass(frozen=True, slots=True)
class Response:
    """What a client gets.

    Attributes:
        kind: backend: the response of a backend; redirect, reply and error: a response of the gateway itself.
        status: The HTTP status; None: that of the backend, or there is no response.
        cause: Why the gateway responds itself, as a sentence without a subject or a full stop.
        location: Where a redirect leads; variables whose values are unknown stay in it as `$name`. Empty: unknown.
        destinations: The upstreams that the request may be sent to.
        depends_on: What may change the response; empty: it is certain.
        plugin: The plugin that responds; empty: none does.
        by_client: Whether the response depends on who sends the request.
    """

    kind: ResponseKind
    status: int | None = None
    cause: str = ""
    location: str = ""
    destinations: tuple[Destination, ...] = ()
    depends_on: tuple[str, ...] = ()
    plugin: str = ""
    by_client: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether nothing that is unknown may change the response."""
        return not self.depends_on

    @property
    def fails(self) -> bool:
        """Whether everyone gets an error."""
        return (self.kind == "error" or (self.status or 0) >= 400) and not self.by_client


NOT_FOUND = Response("error", 404, "no route matches this request")
NO_HANDSHAKE = Response("error", None, "the TLS handshake fails: no certificate has this name")


def respond(
    request: ProbeRequest,
    route: FrozenJson | None,
    records: Records,
    global_rules: Sequence[FrozenJson] = (),
    *,
    patterns: bool = True,
) -> Response:
    """Return the response to a request.

    Args:
        request: The request.
        route: The route that the gateway chooses; None: no route matches.
        records: The records that routes refer to.
        global_rules: The global rules of the gateway.
        patterns: Whether conditions and patterns of users are evaluated.
    """
    unsure: tuple[str, ...] = ()
    for rule in global_rules:
        plugins = mapping_in(rule.get("plugins"))
        name, reply, may = replies(plugins, _scope(request, plugins, patterns=patterns))
        unsure += may
        if reply is not None:
            return replace(_of_plugin(name, reply), depends_on=unsure)
    response = NOT_FOUND if route is None else _of_route(request, route, records, patterns=patterns)
    return replace(response, depends_on=unsure + response.depends_on)


def global_rules_of(records: Records) -> tuple[FrozenJson, ...]:
    """Return the global rules among records."""
    return tuple(body for key, body in records.items() if key.kind == "global_rules")


def plugins_of(route: FrozenJson, records: Records) -> FrozenJson:
    """Return the plugins of a route: its own replace those of its plugin config, and these those of its service.

    A plugin is replaced as a whole (matching fact 8).
    """
    service = named(records, "services", route.get("service_id"))
    shared = named(records, "plugin_configs", route.get("plugin_config_id"))
    holders = (service, shared, route)
    return {name: conf for each in holders for name, conf in mapping_in(each.get("plugins")).items()}


def named(records: Records, kind: Any, id_: Any) -> FrozenJson:
    """Return a record by its id; empty if there is none."""
    return records.get(RecordKey(kind, str(id_)), {}) if id_ is not None else {}


def destinations(route: FrozenJson, records: Records) -> Iterator[Destination]:
    """Yield every upstream of a route: its own, and those of its `traffic-split`."""
    yield from _own(route, records)
    for rule in list_in(mapping_in(plugins_of(route, records).get("traffic-split")).get("rules")):
        for target in list_in(rule.get("weighted_upstreams")):
            if "upstream" in target or "upstream_id" in target:
                yield _target(target, records)


def _of_route(request: ProbeRequest, route: FrozenJson, records: Records, *, patterns: bool) -> Response:
    for kind, field, status in (("plugin_configs", "plugin_config_id", 503), ("services", "service_id", 404)):
        if field in route and not named(records, kind, route[field]):
            return Response("error", status, f"{kind[:-1].replace('_', ' ')} {route[field]} does not exist")
    plugins = plugins_of(route, records)
    scope = _scope(request, plugins, patterns=patterns)
    name, reply, unsure = replies(plugins, scope)
    response = _of_plugin(name, reply) if reply is not None else _of_upstreams(route, plugins, scope, records)
    if "script" in route or "script_id" in route:
        unsure += ("the script of the route may respond itself",)
    return _rewritten(replace(response, depends_on=unsure + response.depends_on), plugins, scope)


def _scope(request: ProbeRequest, plugins: FrozenJson, *, patterns: bool) -> PluginScope:
    changed = frozenset({"remote_addr"} if "real-ip" in plugins else ())
    return PluginScope(request, mapping_in(plugins.get("proxy-rewrite")), changed=changed, patterns=patterns)


def _of_plugin(name: str, reply: Reply) -> Response:
    kind: ResponseKind = "error" if reply.status >= 400 else "redirect" if reply.status in _MOVED else "reply"
    cause = f"{name} {reply.cause}"
    return Response(kind, reply.status, cause, reply.location, plugin=name, by_client=reply.by_client)


_MOVED = (301, 302, 303, 307, 308)


def _of_upstreams(route: FrozenJson, plugins: FrozenJson, scope: PluginScope, records: Records) -> Response:
    own = list(_own(route, records))
    chosen, unsure = _split(mapping_in(plugins.get("traffic-split")), scope, own, records)
    if not chosen:
        return Response("error", 503, "it has no upstream", depends_on=unsure)
    errors = [error for each in chosen if (error := each.error) is not None]
    if len(errors) == len(chosen):
        status, cause = errors[0]
        return Response("error", status, cause, destinations=tuple(chosen), depends_on=unsure)
    unsure += tuple(f"{status} for a part of the requests: {cause}" for status, cause in errors)
    return Response("backend", destinations=tuple(chosen), depends_on=unsure)


def _split(
    conf: FrozenJson, scope: PluginScope, own: list[Destination], records: Records
) -> tuple[list[Destination], tuple[str, ...]]:
    """Return where `traffic-split` sends a request, and what that depends on."""
    chosen: list[Destination] = []
    for rule in list_in(conf.get("rules")) if scope.applies(conf) is not False else ():
        met = scope.any_holds([match.get("vars") for match in list_in(rule.get("match"))])
        if met is False:
            continue
        targets = [each for each in list_in(rule.get("weighted_upstreams")) if each.get("weight", 1)] or [{}]
        for target in targets:
            chosen += [_target(target, records)] if {"upstream", "upstream_id"} & target.keys() else own
        if met:
            return chosen, ()
    chosen += own
    return chosen, ("conditions of traffic-split",) if len(chosen) > len(own) else ()


def _own(route: FrozenJson, records: Records) -> Iterator[Destination]:
    for holder in (route, named(records, "services", route.get("service_id"))):
        if "upstream" in holder or "upstream_id" in holder:
            yield _destination(holder, records, "")
            return


def _target(target: FrozenJson, records: Records) -> Destination:
    return _destination(target, records, f"traffic-split weight {target.get('weight', 1)}")


def _destination(holder: FrozenJson, records: Records, by: str) -> Destination:
    if "upstream_id" not in holder:
        return Destination(None, mapping_in(holder["upstream"]), by)
    key = RecordKey("upstreams", str(holder["upstream_id"]))
    return Destination(key, records.get(key, {}), by)


def _rewritten(response: Response, plugins: FrozenJson, scope: PluginScope) -> Response:
    """Return a response after `response-rewrite`, which also changes responses of the gateway itself."""
    conf = mapping_in(plugins.get("response-rewrite"))
    status = conf.get("status_code")
    if not status or scope.applies(conf) is False:
        return response
    met = replace(scope, status=response.status).holds(conf.get("vars"))
    if met is None:
        return replace(response, depends_on=(*response.depends_on, f"response-rewrite may set the status {status}"))
    if met is False:
        return response
    kind: ResponseKind = "backend" if response.kind == "backend" else "error" if status >= 400 else "reply"
    return replace(response, kind=kind, status=int(status), cause=f"response-rewrite sets the status {status}")
