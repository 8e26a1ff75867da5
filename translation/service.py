"""Service → its upstream records, one for each distinct upstream that routes claim.

The Service is the owner, not the routes: a change of endpoints costs one translation and one write. The claims
determine which upstreams are translated; a deleted Service keeps its upstreams without nodes, so that its routes return
503.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from apisix_ingress.model import names
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.names import Granularity
from apisix_ingress.model.objects import Meta, Service, ServicePort
from apisix_ingress.state.claims import UpstreamClaim, UpstreamOverrides, UpstreamVariant
from apisix_ingress.state.view import View
from translation.addresses.destinations import objection, service_objection
from translation.addresses.host_policy import refusal
from translation.core.builder import Builder
from translation.core.context import Context
from translation.core.durations import DEFAULT_TIMEOUTS, timeout_body
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.gateway.extensions.backend_traffic_policy import port_settings
from translation.gateway.extensions.standings import BACKEND_TRAFFIC_POLICY, policies_of
from translation.upstreams.nodes import ListedNodes, Node, node, service_nodes
from translation.upstreams.settings import decorator, default_body, discovery_body, for_port, settings_body

if TYPE_CHECKING:
    from crds.v2.upstream import UpstreamSettings


@dataclass(frozen=True, slots=True, order=True)
class _Wanted:
    """The parts of an upstream's name."""

    port: int
    subset: str
    granularity: Granularity
    variant: str


def translate_service(key: ObjectKey, service: Service | None, view: View, options: Options) -> Outcome:
    """Return the upstreams that routes claim for a Service, whether or not it exists."""
    draft = Builder(service.meta if service else Meta(*key), view, options)
    claimed: dict[_Wanted, list[UpstreamClaim]] = {}
    for _, claim in view.claims_on(key):
        variant = claim.variant.name if claim.variant else ""
        claimed.setdefault(_Wanted(claim.port, claim.subset, claim.granularity, variant), []).append(claim)
    settings = _Settings(key, service, view, options)
    found = _Found(draft, service, len(claimed)) if service else None
    for wanted in sorted(claimed):
        if draft.is_full:
            break
        _upstream(draft, found, settings, wanted, claimed[wanted])
    return draft.finish()


def plain_nodes(key: ObjectKey, number: int, upstreams: int, view: View, options: Options) -> list[Node] | None:
    """Return the endpoints of a Service's port as nodes; None if it has no endpoints of its own.

    They are the nodes of every upstream that `names.service_port_of` recognizes, whatever claims it.

    Args:
        key: The Service.
        number: The port.
        upstreams: The number of its upstreams.
        view: The objects.
        options: The options.
    """
    service = view.get(Service, key)
    if service is None or service.type == "ExternalName":
        return None
    found = _Found(Builder(service.meta, view, options), service, upstreams)
    port = found.port(number)
    return service_nodes(found.draft, service, port, None, listed=found.listed) if port else None


class _Found:
    """A Service that exists, with its ports by number and its endpoints by port: it may have thousands of either."""

    def __init__(self, draft: Builder, service: Service, upstreams: int) -> None:
        self.service = service
        self._ports = {port.port: port for port in reversed(service.ports)}
        self.draft = draft
        self._upstreams = upstreams

    @cached_property
    def listed(self) -> ListedNodes:
        """Its endpoints."""
        return ListedNodes(self.draft, self.service, self._upstreams)

    def port(self, number: int) -> ServicePort | None:
        """Return a port; a Service of type ExternalName without ports has every port."""
        if self.service.type == "ExternalName" and not self.service.ports:
            return ServicePort(number)
        return self._ports.get(number)


class _Settings:
    """The ApisixUpstream of a Service, or else its BackendTrafficPolicies.

    Their own translations and the routes report their mistakes.
    """

    def __init__(self, key: ObjectKey, service: Service | None, view: View, options: Options) -> None:
        self._context = ("ApisixUpstream", key.namespace, view, options)
        self._view = view
        self._key = key
        self._service = service
        found = decorator(key.namespace, key.name, view, options)
        self.spec = found[0] if found else None
        self._broken = found is not None and bool(found[1].problems)

    def of_port(self, port: int, scope: Context | None = None) -> UpstreamSettings | None:
        """Return the settings for a port, or None without any; `scope` gets the problems of a policy."""
        if self.spec or self._broken:
            return for_port(self.spec, port) if self.spec else None
        if not self._has_policies:
            return None
        return port_settings(scope or Context(*self._context), self._key, self._names.get(port, ""))

    @cached_property
    def _has_policies(self) -> bool:
        return bool(policies_of(BACKEND_TRAFFIC_POLICY, self._key, self._view))

    @cached_property
    def _names(self) -> dict[int, str]:
        return {port.port: port.name for port in reversed(self._service.ports)} if self._service else {}

    def body(self, port: int) -> JsonObject | None:
        """Return the fields that the settings define for a port, or None if they are invalid."""
        if self._broken:
            return None
        if not self.spec and not self._has_policies:
            return default_body()
        scope = Context(*self._context)
        body = settings_body(scope, self.of_port(port, scope))
        return None if scope.problems else body


def _upstream(
    draft: Builder, found: _Found | None, settings: _Settings, wanted: _Wanted, claims: Sequence[UpstreamClaim]
) -> None:
    meta = draft.meta
    name = names.service_upstream_name(
        meta.namespace,
        meta.name,
        wanted.port,
        subset=wanted.subset,
        granularity=wanted.granularity,
        variant=wanted.variant,
    )
    body = draft.new_body("upstreams", name)
    key = RecordKey("upstreams", body["id"])
    draft.protect("upstreams", names=frozenset({name}))
    port = found.port(wanted.port) if found else None
    if found and not port:
        # Its routes cannot be translated either: their records stay in the gateways, and so does this upstream.
        draft.carry_over(key)
        return
    given = claims[0].variant.fields if claims[0].variant else ""
    if given:
        body |= _given(draft, found, port, wanted, settings, given)
        draft.record("upstreams", name, body, existing_only=all(claim.weak for claim in claims))
        return
    nodes = _nodes(draft, found, port, wanted, settings) if found and port else []
    fields = settings.body(wanted.port)
    if fields is None:
        # The routes stay unchanged, too. A deleted pod must be removed nevertheless.
        draft.carry_over(key, **({} if nodes is None else {"nodes": nodes}))
        return
    body |= fields | {"labels": body["labels"] | fields.get("labels", {})}
    _override(body, claims, decorated=settings.spec is not None)
    if variant := claims[0].variant:
        _vary(body, variant)
    body |= discovery_body(settings.of_port(wanted.port)) or {"nodes": nodes or []}
    draft.record("upstreams", name, body, existing_only=all(claim.weak for claim in claims))


def _nodes(draft: Builder, found: _Found, port: ServicePort, wanted: _Wanted, settings: _Settings) -> list[Node] | None:
    """Return the nodes of an upstream; None for an unknown subset."""
    service = found.service
    if service.type == "ExternalName":
        # If its destination is rejected, the routes report it; until they are changed, their requests reach no backend.
        return [node(service.external_name, port.port)] if _leads_on(draft, service, port) else []
    if wanted.granularity == "service":
        return [node(service.cluster_ip, port.port)] if _has_good_address(draft, service) else []
    if not wanted.subset:
        return service_nodes(draft, service, port, None, listed=found.listed)
    chosen = settings.of_port(wanted.port)
    labels = next((item.labels for item in chosen.subsets if item.name == wanted.subset), None) if chosen else None
    return None if labels is None else service_nodes(draft, service, port, labels, listed=found.listed)


def _given(
    draft: Builder, found: _Found | None, port: ServicePort | None, wanted: _Wanted, settings: _Settings, text: str
) -> JsonObject:
    """Return the fields that a claim adds, with the nodes: those of another Service if this one has none."""
    fields: JsonObject = json.loads(text)
    fallback, main = fields.pop("fallback", None), fields.pop("canary_of", None)
    if port and isinstance(port.target, int) and found and found.service.type == "ExternalName":
        port = replace(port, port=port.target or port.port)
    nodes = _nodes(draft, found, port, wanted, settings) if found and port else []
    if main:
        instead = _fallback_nodes(draft, *main)
        return fields | {"nodes": (nodes or instead) if instead else []}
    return fields | {"nodes": nodes or (_fallback_nodes(draft, *fallback) if fallback else [])}


def _fallback_nodes(draft: Builder, namespace: str, name: str, port: int) -> list[Node]:
    """Return the nodes of the Service that takes over from one without endpoints."""
    service = draft.view.get(Service, ObjectKey("Service", namespace, name))
    found = _Found(draft, service, 1) if service else None
    number = found.port(port) if found else None
    return service_nodes(draft, found.service, number, None, listed=found.listed) if found and number else []


def _leads_on(draft: Builder, service: Service, port: ServicePort) -> bool:
    """Return whether the settings permit the destination of a Service of type ExternalName."""
    host = service.external_name
    return bool(host) and not refusal(draft.options, host, port.port) and not objection(_judge(draft), host)


def _has_good_address(draft: Builder, service: Service) -> bool:
    """Return whether a Service has a cluster address that leads only to permitted destinations."""
    if service.headless:
        return False
    what = service_objection(_judge(draft), service.meta.key)
    if what:
        draft.degrade("ForeignAddress", "endpoints", f"lead {what}; remove them, or use resolveGranularity endpoint")
    return not what


def _judge(draft: Builder) -> Context:
    """Return a context that reports missing grants: such a node is skipped, the other nodes stay."""
    return draft.within(draft.kind, draft.namespace)


def _override(body: JsonObject, claims: Iterable[UpstreamClaim], *, decorated: bool) -> None:
    """Apply the overrides of Ingresses, field by field, the oldest first, then the defaults of an Ingress.

    1.8 gives the upstream of an Ingress timeouts of 60 s unless it is decorated, and existing gateways are adopted
    without a write.
    """
    overrides = [claim.overrides for claim in claims if claim.overrides]
    if not overrides:
        return
    for name in ("scheme", "retries"):
        given = [value for item in overrides if (value := getattr(item, name)) is not None]
        if given:
            body[name] = given[0]
    timeouts = _timeouts(overrides)
    if timeouts is not None or not decorated:
        base = body.get("timeout") or timeout_body(DEFAULT_TIMEOUTS)
        body["timeout"] = base | {name: value for name, value in (timeouts or {}).items() if value}


def _vary(body: JsonObject, variant: UpstreamVariant) -> None:
    """Apply what a route of the Gateway API needs; all claims on one upstream need the same."""
    if variant.scheme:
        body["scheme"] = variant.scheme
    if variant.retries is not None:
        body["retries"] = variant.retries
    if variant.own:
        body |= json.loads(variant.own)


def _timeouts(overrides: Iterable[UpstreamOverrides]) -> JsonObject | None:
    """Return the first value set for each part of the timeouts; a part that is 0 is not set."""
    given = [item.timeout for item in overrides if item.timeout is not None]
    if not given:
        return None
    connect, send, read = (next((part for part in parts if part > 0), 0) for parts in zip(*given, strict=True))
    return timeout_body((connect, send, read))
