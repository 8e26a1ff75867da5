"""Backends of a rule: from references to claims on upstreams, and the problems of invalid references.

An invalid reference keeps its share of the requests, which get a 500 response. As in other routes, no
endpoint is read here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from apisix_ingress.model import names
from apisix_ingress.model.assessment import Verdict
from apisix_ingress.model.json import JsonObject, canonical
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Service, ServicePort
from apisix_ingress.state.claims import UpstreamClaim, UpstreamVariant
from crds.gateway.common import BackendReference, HeaderChanges, ServiceReference
from translation.addresses.destinations import objection
from translation.addresses.host_policy import refusal
from translation.core.builder import Builder
from translation.core.context import Context
from translation.core.grants import Destination
from translation.gateway.policies.backend_tls import policy_of, verification_of
from translation.gateway.routes.filters import literal, request_headers

H2C = "kubernetes.io/h2c"
WEBSOCKET = "kubernetes.io/ws"

_CHOICE = "X-Apisix-Backend"
"""Header that marks the chosen backend if backends change headers differently."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """A reference that cannot be resolved."""

    reason: str
    message: str
    path: str


@dataclass(frozen=True, slots=True)
class Target:
    """An upstream that gets requests.

    Attributes:
        upstream_id: Its id.
        weight: Its share.
        headers: Header changes for this backend only.
        is_websocket: Whether connections may be upgraded.
    """

    upstream_id: str
    weight: int = 1
    headers: HeaderChanges | None = None
    is_websocket: bool = False


@dataclass(slots=True)
class Backends:
    """The backends of a rule.

    Attributes:
        targets: Valid backends with a weight.
        invalid: Invalid references.
        broken: The sum of the weights of the invalid references.
        total: The sum of all weights.
        refusal: Reason and message why the route is not accepted, or empty texts.
    """

    targets: list[Target] = field(default_factory=list)
    invalid: list[Invalid] = field(default_factory=list)
    broken: int = 0
    total: int = 0
    refusal: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Requirements of a rule for its upstreams.

    Attributes:
        scheme: The scheme if the Service names none.
        retries: How often a request is retried; None for the setting of the Service.
        balancer: How requests are balanced, as canonical JSON; empty for the setting of the Service.
        verifies: Whether gateways may be able to verify certificates of backends.
    """

    scheme: str = ""
    retries: int | None = None
    balancer: str = ""
    verifies: bool = True


def backends_of(draft: Builder, references: Iterable[BackendReference], path: str, wanted: Wanted) -> Backends:
    """Claim the upstreams of a rule's backends."""
    found = Backends()
    for index, reference in enumerate(references):
        where = f"{path}[{index}]"
        target = target_of(draft, reference, where, wanted)
        found.total += reference.weight
        if isinstance(target, Invalid):
            found.invalid.append(target)
            found.broken += reference.weight
        elif reference.weight:
            headers = _headers(found, reference, where)
            found.targets.append(Target(target.upstream_id, reference.weight, headers, target.is_websocket))
    if len(found.targets) > 1 and any(each.headers and _is_more_than_set(each.headers) for each in found.targets):
        message = (
            "with several backends, each can only set headers, not add or remove them; use a rule for each backend"
        )
        found.refusal = ("UnsupportedValue", message)
    return found


def _headers(found: Backends, reference: BackendReference, where: str) -> HeaderChanges | None:
    headers = None
    for each in reference.filters:
        if each.request_header_modifier is None:
            message = f"{where}: filter type {each.type} is not supported on a backend; use it on the rule"
            found.refusal = ("UnsupportedValue", message)
        headers = each.request_header_modifier
    return headers


def target_of(draft: Builder, reference: ServiceReference, path: str, wanted: Wanted) -> Target | Invalid:
    """Claim the upstream of one reference, or return why it is invalid."""
    if (reference.group, reference.kind) != ("", "Service"):
        what = f"{reference.group}/{reference.kind}" if reference.group else reference.kind
        return Invalid("InvalidKind", f"{what} is not supported; refer to a Service", path)
    key = ObjectKey("Service", reference.namespace or draft.namespace, reference.name)
    if not draft.is_granted(draft.kind, draft.namespace, key):
        return Invalid(
            "RefNotPermitted", f"references to {key} are not permitted; create a ReferenceGrant in its namespace", path
        )
    service = draft.view.get(Service, key)
    if service is None:
        return Invalid("BackendNotFound", f"{key} does not exist; create it or correct the name", path)
    if reference.port is None:
        return Invalid("BackendNotFound", "port is missing", path)
    is_external = service.type == "ExternalName"
    port = next((each for each in service.ports if each.port == reference.port), None)
    if port is None and is_external and not service.ports:
        port = ServicePort(reference.port)
    if port is None:
        return Invalid("BackendNotFound", f"{key} has no port {reference.port}", path)
    if is_external and (what := _refused_external(draft, service, port.port)):
        return Invalid("RefNotPermitted", what, path)
    tls: JsonObject = {}
    if policy := policy_of(draft.view, key, port):  # a request must not be sent without the verification
        verification = verification_of(draft, policy) if wanted.verifies else None
        if verification is None or verification.fields is None:
            why = verification.accepted.message if verification else "gateways cannot verify these backends"
            return Invalid("UnsupportedProtocol", f"{policy.meta.key} applies to {key}: {why}", path)
        tls = verification.fields
    return _claimed(draft, key, port, wanted, tls)


def _refused_external(draft: Builder, service: Service, port: int) -> str:
    """Return why the destination of a Service of type ExternalName is not permitted; empty if it is.

    The settings decide as for other kinds. In addition, a name must not lead around the ReferenceGrants of the Gateway
    API, so other namespaces need one whatever the settings say.
    """
    key, host = service.meta.key, service.external_name
    if found := refusal(draft.options, host, port):
        return f"{key}: {host!r} is {found.what}, which is rejected by the controller's setting {found.setting}"
    strict = replace(draft.options, external_addresses="refuse-internal", cross_namespace="grant")
    scope = Context(key.kind, key.namespace, draft.view, strict)
    scope.trail = draft.granted_trail
    what = objection(scope, host)
    draft.references |= scope.references
    if draft.options.external_addresses != "allow":
        draft.destinations[Destination(key.kind, key.namespace, host)] = None
    return f"{key}: {host!r} is {what}" if what else ""


def _claimed(draft: Builder, service: ObjectKey, port: ServicePort, wanted: Wanted, tls: JsonObject) -> Target:
    scheme = "grpc" if port.app_protocol == H2C else wanted.scheme
    if tls:
        scheme = "grpcs" if scheme == "grpc" else "https"
    own = tls | (json.loads(wanted.balancer) if wanted.balancer else {})
    asked = UpstreamVariant(scheme, wanted.retries, canonical(own).decode() if own else "")
    variant = None if asked == UpstreamVariant() else asked
    draft.claim(UpstreamClaim(service, port.port, variant=variant))
    suffix = variant.name if variant else ""
    name = names.service_upstream_name(service.namespace, service.name, port.port, variant=suffix)
    return Target(draft.refer("upstreams", name), is_websocket=port.app_protocol == WEBSOCKET)


def resolved(invalid: Sequence[Invalid]) -> Verdict:
    """Return the condition ResolvedRefs of a route."""
    if not invalid:
        return Verdict("ResolvedRefs", True, "ResolvedRefs")
    message = "; ".join(f"{each.path}: {each.message}" for each in invalid[:10])
    return Verdict("ResolvedRefs", False, invalid[0].reason, message)


def backend_fields(found: Backends, plugins: dict[str, Any]) -> dict[str, Any]:
    """Return the upstream of a record; plugins that split or reject requests are added to its plugins."""
    if not found.targets:
        plugins["fault-injection"] = {"abort": {"http_status": 500}}
        return {}
    if found.broken:
        share = max(1, round(100 * found.broken / found.total))
        plugins["fault-injection"] = {"abort": {"http_status": 500, "percentage": share}}
    first, *others = found.targets
    if not others:
        if first.headers:
            _merge_headers(plugins, first.headers)
    elif any(each.headers for each in found.targets):
        _split_with_headers(found.targets, plugins)
    else:
        plugins |= split_of(found.targets)
    websocket = {"enable_websocket": True} if any(each.is_websocket for each in found.targets) else {}
    return {"upstream_id": first.upstream_id, **websocket}


def split_of(targets: Iterable[Target], broken: int = 0) -> dict[str, Any]:
    """Return the plugin that splits requests, or none if they all go to one upstream.

    The plugin accepts one weight per upstream (APISIX traffic-split.lua), so weights of the same upstream are added up.

    Args:
        targets: The upstreams.
        broken: The weight of an additional upstream without endpoints.
    """
    weights: Counter[str] = Counter()
    for each in targets:
        weights[each.upstream_id] += each.weight
    split: list[dict[str, Any]] = [{"upstream_id": id_, "weight": weight} for id_, weight in weights.items()]
    if broken:
        split.append({"upstream": {"type": "roundrobin", "nodes": []}, "weight": broken})
    return {"traffic-split": {"rules": [{"weighted_upstreams": split}]}} if len(split) > 1 else {}


def _merge_headers(plugins: dict[str, Any], changes: HeaderChanges) -> None:
    """Add the header changes of the only backend to those of the rule."""
    rewrite = dict(plugins.get("proxy-rewrite", {}))
    headers = dict(rewrite.get("headers", {}))
    for name, value in request_headers(changes).items():
        before = headers.get(name)
        if isinstance(value, dict):
            headers[name] = {**(before or {}), **value}
        else:
            headers[name] = list(dict.fromkeys([*(before or []), *value]))
    plugins["proxy-rewrite"] = rewrite | {"headers": headers}


def _split_with_headers(targets: Sequence[Target], plugins: dict[str, Any]) -> None:
    """Choose a backend first, mark the request with it and its headers, then split by the mark."""
    actions, rules = [], []
    for index, target in enumerate(targets):
        own = {each.name: literal(each.value) for each in target.headers.set} if target.headers else {}
        actions.append({"set_headers": {**own, _CHOICE: str(index)}, "weight": target.weight})
        match = [{"vars": [["http_x_apisix_backend", "==", str(index)]]}]
        rules.append({"match": match, "weighted_upstreams": [{"upstream_id": target.upstream_id, "weight": 1}]})
    plugins["traffic-label"] = {"rules": [{"actions": actions}]}
    plugins["traffic-split"] = {"rules": rules}


def _is_more_than_set(changes: HeaderChanges) -> bool:
    return bool(changes.add or changes.remove)
