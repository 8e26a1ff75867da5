"""Whether `gateway_api.loopback` is an address at which gateways accept requests, as far as their Service shows it."""

from __future__ import annotations

from urllib.parse import urlsplit

from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import SLICES_BY_SERVICE
from apisix_ingress.model.network.ip_address import parse_ip
from apisix_ingress.model.objects import EndpointSlice, Service, ServicePort
from apisix_ingress.state.view import View

_HTTP = 80


def wrong_loopback(front: ObjectKey | None, view: View, loopback: str) -> str:
    """Return why gateways cannot reach themselves; empty if they can, or if that is unknown.

    Args:
        front: The Service in front of the gateways; None if it is unknown.
        view: Services and EndpointSlices.
        loopback: `gateway_api.loopback`.
    """
    url = urlsplit(loopback)
    address = parse_ip(url.hostname or "")
    service = view.get(Service, front) if front else None
    if service is None or address is None or not address.is_loopback or url.scheme != "http":
        return ""
    names = {port.name for port in service.ports if _is_http(port)}
    key = f"{service.meta.namespace}/{service.meta.name}"
    slices = view.find(EndpointSlice, IndexKey("EndpointSlice", SLICES_BY_SERVICE, key))
    ports = {port.port for each in slices for port in each.ports if port.name in names}
    if not ports or (url.port or _HTTP) in ports:
        return ""
    found = ", ".join(map(str, sorted(ports)))
    return (
        "mirrored requests and the filter ExternalAuth fail: "
        f"gateways accept HTTP on port {found} according to {front}, but gateway_api.loopback is {loopback}; "
        "correct its port"
    )


def _is_http(port: ServicePort) -> bool:
    return port.protocol == "TCP" and (port.port == _HTTP or port.app_protocol == "http" or port.name == "http")
