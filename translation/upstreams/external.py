"""External upstreams: an ApisixUpstream with nodes outside the cluster, or with service discovery.

Used for its own record and for the routes that refer to it, which fail with it.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from apisix_ingress.model.formats.patterns import ValuePattern
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.host_names import LONGEST_HOST
from apisix_ingress.model.objects import Service
from translation.addresses.policy import check_address
from translation.core.context import Context
from translation.upstreams.nodes import Node, node
from translation.upstreams.settings import discovery_body, settings_body

if TYPE_CHECKING:
    from crds.v2.upstream import ApisixUpstreamSpec, ExternalNode

_DOMAIN = ValuePattern(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", LONGEST_HOST)
_TLS_SCHEMES = frozenset({"https", "grpcs", "tls"})


def is_external(spec: ApisixUpstreamSpec) -> bool:
    """Return whether an ApisixUpstream has nodes or discovery."""
    return bool(spec.external_nodes) or spec.discovery is not None


def external_body(scope: Context, spec: ApisixUpstreamSpec) -> JsonObject:
    """Return the settings and nodes of an external upstream; problems are reported in `scope`."""
    body = settings_body(scope, spec)
    if discovery := discovery_body(spec):
        return body | discovery
    return body | {"nodes": _nodes(scope, spec)}


def _nodes(scope: Context, spec: ApisixUpstreamSpec) -> list[Node]:
    default = 443 if spec.scheme in _TLS_SCHEMES else 80
    found = (
        _node(scope, item, item.port or default, f"spec.externalNodes[{index}].name")
        for index, item in enumerate(spec.external_nodes)
    )
    return [item for item in found if item]


def _node(scope: Context, item: ExternalNode, port: int, path: str) -> Node | None:
    if item.type == "Service":
        host = _external_name(scope, item.name, path, port)
        return node(host, port, item.weight) if host else None
    if is_host(item.name):
        return node(item.name, port, item.weight) if check_address(scope, item.name, path, port=port) else None
    scope.error("InvalidNode", path, f"{item.name!r} is neither a lower-case host name nor an IP address")
    return None


def _external_name(scope: Context, name: str, path: str, port: int) -> str:
    key = ObjectKey("Service", scope.namespace, name)
    service = scope.view.get(Service, key)
    if service is None:
        scope.missing("ServiceNotFound", path, key)
    elif service.type != "ExternalName":
        message = f"{key} is of type {service.type}; use it in backends of the route, not in externalNodes"
        scope.error("NotExternalName", path, message)
    elif check_external_name(scope, service, path, port):
        return service.external_name
    return ""


def check_external_name(scope: Context, service: Service, path: str, port: int) -> bool:
    """Return whether the destination of a Service of type ExternalName is permitted; report it at `path` if not."""
    key = service.meta.key
    other = scope.within(key.kind, key.namespace)
    allowed = check_address(other, service.external_name, "spec.externalName", port=port)
    scope.adopt(other, path, key)
    return allowed


def is_host(text: str) -> bool:
    """Return whether a string is a lower-case host name or an IP address."""
    if _DOMAIN.fits(text):
        return True
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
