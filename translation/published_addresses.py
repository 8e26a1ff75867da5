"""The addresses that statuses publish: of a Service in front of gateways, or named by a GatewayProxy."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, Service
from apisix_ingress.state.view import View
from crds import SpecError
from crds.v1alpha1.extensions import GatewayProxySpec
from translation.gateway.parsing import spec_of


def load_balancer_addresses(service: Service | None) -> tuple[str, ...]:
    """Return the addresses of a Service in the order of 1.8; empty unless its load balancer has an address.

    External IPs are published only together with the addresses of the load balancer (v1-behaviour.md §7).
    """
    if service is None or service.type != "LoadBalancer" or not service.load_balancer:
        return ()
    return (*(ip or host for ip, host in service.load_balancer), *service.external_ips)


def proxy_addresses(proxy: ObjectKey, namespace: str, view: View) -> tuple[str, ...] | None:
    """Return the addresses that a GatewayProxy names; None if it names none, or is invalid.

    `statusAddress` takes precedence over `publishService`, as in 2.x.

    Args:
        proxy: The GatewayProxy.
        namespace: The namespace of the object whose status shows the addresses.
        view: The objects to read.
    """
    found = view.get(CustomObject, proxy)
    try:
        spec = spec_of(found, GatewayProxySpec) if found else GatewayProxySpec()
    except SpecError:
        return None
    if spec.status_address:
        return tuple(dict.fromkeys(spec.status_address))
    if not spec.publish_service:
        return None
    return load_balancer_addresses(view.get(Service, published_service(spec.publish_service, namespace)))


def published_service(named: str, namespace: str) -> ObjectKey:
    """Return the Service that `publishService` names; without a namespace, it is in that of the object, as in 2.x."""
    place, slash, name = named.rpartition("/")
    return ObjectKey("Service", place if slash else namespace, name)
