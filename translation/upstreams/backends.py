"""Backends: from a reference in a route to a claim on an upstream and the id of that upstream.

A route reads the Service, for its port, and the settings that its upstream depends on, but never endpoints. Therefore a
change of endpoints does not translate routes.
"""

from __future__ import annotations

from typing import NamedTuple

from apisix_ingress.model import names
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.names import Granularity
from apisix_ingress.model.objects import CustomObject, Service
from apisix_ingress.state.claims import UpstreamClaim, UpstreamOverrides
from crds import SpecError, parse_spec
from crds.v2.route import UpstreamReference
from crds.v2.upstream import ApisixUpstreamSpec
from translation.core.builder import Builder
from translation.core.context import Context
from translation.core.scope import class_is_ours
from translation.core.text_checks import check_spec
from translation.upstreams.external import check_external_name, external_body, is_external
from translation.upstreams.settings import decorator, for_port, port_paths, settings_body


class Backend(NamedTuple):
    """A reference to a port of a Service.

    Attributes:
        namespace: Namespace of the Service.
        service: Name of the Service.
        port: Number or name of its port.
        path: Field with the name of the Service.
        port_path: Field with the name of the port.
        granularity: Whether its endpoints or its cluster address are the nodes.
        subset: Name of the pod subset, or empty.
        overrides: Upstream settings of the Ingress that refers to it.
    """

    namespace: str
    service: str
    port: int | str
    path: str
    port_path: str
    granularity: Granularity = "endpoint"
    subset: str = ""
    overrides: UpstreamOverrides | None = None


def claim_service(draft: Builder, backend: Backend) -> str:
    """Claim the upstream of a backend and return its id; empty if it cannot be determined."""
    key = ObjectKey("Service", backend.namespace, backend.service)
    refused = draft.refuses(key)
    service = None if refused else draft.view.get(Service, key)
    if service is None:
        draft.missing("ServiceNotFound", backend.path, key)
        port = backend.port if isinstance(backend.port, int) and not refused else 0
    else:
        port = _port_number(draft, service, backend)
        _check_granularity(draft, service, backend)
        if service.type == "ExternalName":
            check_external_name(draft, service, backend.path, port)
    if not port:
        return ""
    _check_settings(draft, backend, port)
    granularity, subset = backend.granularity, backend.subset
    draft.claim(UpstreamClaim(key, port, subset, granularity, backend.overrides))
    name = names.service_upstream_name(*key[1:], port, subset=subset, granularity=granularity)
    return draft.refer("upstreams", name)


_MOST_LISTED = 100
"""Maximum number of ports of a Service that a message lists."""


def _port_number(draft: Builder, service: Service, backend: Backend) -> int:
    """Return the number of the Service port, or 0 if it is a name that the Service does not have."""
    wanted = backend.port
    numbers = draft.ports.get(service.meta.key)
    if numbers is None:
        numbers = draft.ports[service.meta.key] = {}
        for port in service.ports:
            numbers.setdefault(port.port, port.port)
            numbers.setdefault(port.name, port.port)
    if wanted in numbers:
        return numbers[wanted]
    if service.type == "ExternalName" and not service.ports and isinstance(wanted, int):
        return wanted
    draft.error("PortNotFound", backend.port_path, without_port(service, wanted))
    return wanted if isinstance(wanted, int) else 0


def without_port(service: Service, wanted: int | str) -> str:
    """Return the message that a Service has no port of a number or name."""
    ports = service.ports[:_MOST_LISTED]
    known = ", ".join(f"{port.port} ({port.name})" if port.name else str(port.port) for port in ports) or "none"
    hint = "; do not put a number in quotes" if isinstance(wanted, str) and wanted.isdigit() else ""
    return f"{service.meta.key} has no port {wanted}; it has {known}{hint}"


def _check_granularity(draft: Builder, service: Service, backend: Backend) -> None:
    if backend.granularity == "service" and service.headless and service.type != "ExternalName":
        message = f"{service.meta.key} has no cluster address; remove resolveGranularity to use its endpoints"
        draft.error("NoClusterAddress", backend.path, message)


def _check_settings(draft: Builder, backend: Backend, port: int) -> None:
    """Report mistakes in the settings of the upstream: with them it would not be created."""
    key = ObjectKey("ApisixUpstream", backend.namespace, backend.service)
    if key not in draft.judged:
        draft.judged[key] = decorator(backend.namespace, backend.service, draft.view, draft.options)
    found = draft.judged[key]
    if found is None:
        if backend.subset:
            _check_subset(draft, backend, None, port)
        return
    spec, common = found
    of_port = Context(key.kind, key.namespace, draft.view, draft.options)
    if spec is not None:
        settings_body(of_port, for_port(spec, port), port_paths(spec, port))
    for scope in (common, of_port):
        draft.adopt(scope, backend.path, key)
    if backend.subset and not common.problems and not of_port.problems:
        _check_subset(draft, backend, spec, port)


def _check_subset(draft: Builder, backend: Backend, spec: ApisixUpstreamSpec | None, port: int) -> None:
    if backend.granularity == "service":
        message = f"the subset {backend.subset} has no effect with the cluster address; remove resolveGranularity"
        draft.warn("SubsetUnused", backend.path, message)
        return
    known = [subset.name for subset in for_port(spec, port).subsets] if spec else []
    if backend.subset not in known:
        key, so = ObjectKey("ApisixUpstream", backend.namespace, backend.service), ", so no pod gets requests"
        foreign = draft.view.get(CustomObject, key) if spec is None else None
        missing = f"{key} has no subset {backend.subset}{so}; define it in spec.subsets"
        draft.degrade("SubsetNotFound", backend.path, draft.whose(foreign, so) if foreign else missing)


def claim_external(draft: Builder, reference: UpstreamReference, path: str) -> str:
    """Claim the upstream of an ApisixUpstream with external nodes and return its id."""
    key = ObjectKey("ApisixUpstream", draft.namespace, reference.name)
    draft.claim(UpstreamClaim(key))
    obj = draft.custom(key)
    if obj is None:
        draft.missing("UpstreamNotFound", path, key)
    elif not class_is_ours(obj, draft.view, draft.options):
        draft.foreign("UpstreamNotFound", path, obj)
    else:
        if key not in draft.external:
            draft.external[key] = _judged(draft, obj)
        draft.adopt(draft.external[key], path, key)
    return draft.refer("upstreams", names.object_name(draft.namespace, reference.name))


def _judged(draft: Builder, obj: CustomObject) -> Context:
    """Return the mistakes of an ApisixUpstream that is used for external nodes."""
    scope = draft.within(obj.meta.kind, obj.meta.namespace)
    check_spec(scope, obj.spec)
    try:
        spec = parse_spec(ApisixUpstreamSpec, obj.spec)
    except SpecError as error:
        scope.report_invalid_spec(error)
    else:
        _check_external(scope, spec)
    return scope


def _check_external(scope: Context, spec: ApisixUpstreamSpec) -> None:
    if is_external(spec):
        external_body(scope, spec)
    else:
        message = "has neither externalNodes nor discovery; use its Service in backends instead"
        scope.error("NotExternal", "spec.externalNodes", message)
