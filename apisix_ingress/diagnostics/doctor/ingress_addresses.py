"""Whether Ingresses show an address: without one, Argo CD waits for them and ExternalDNS creates no names."""

from __future__ import annotations

from apisix_ingress.diagnostics.collect.inventory import Inventory
from apisix_ingress.diagnostics.doctor.check import Check, ok, skip, warn
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import Service
from apisix_ingress.settings.sections import StatusSettings
from providers.status.status_addresses import AUTO, gateway_service, published

_NAME = "ingress-address"
_FIX = "set kubernetes.status.publish_service to the Service of the gateways, or kubernetes.status.addresses"


def check_addresses(inventory: Inventory, settings: StatusSettings) -> Check:
    """Return whether the ADDRESS of Ingresses is filled in, and what to do otherwise."""
    if not any(item.meta.kind == "Ingress" for item in inventory.ours()):
        return skip(_NAME, "there are no Ingresses")
    if not settings.enabled:
        return warn(_NAME, "the ADDRESS of Ingresses is empty: kubernetes.status.enabled is false", "enable it")
    if settings.addresses:
        return ok(_NAME, f"Ingresses show {', '.join(settings.addresses)}")
    if not settings.publish_service:
        return warn(_NAME, "the ADDRESS of Ingresses is empty: no Service is published", _FIX)
    return _of_service(inventory, settings.publish_service)


def front_service(inventory: Inventory, wanted: str) -> ObjectKey | None:
    """Return the Service in front of the gateways, by the setting `publish_service`; None if it is unknown."""
    if wanted != AUTO:
        return _named(wanted) if wanted else None
    services = inventory.world.stores["Service"].values()
    return gateway_service(services, inventory.options.gateway_namespaces)


def _of_service(inventory: Inventory, wanted: str) -> Check:
    services = inventory.world.stores["Service"]
    namespaces = inventory.options.gateway_namespaces
    found = front_service(inventory, wanted)
    if found is None:
        where = f"in namespace {', '.join(sorted(namespaces))}" if namespaces else "(the Admin API is not a Service)"
        return warn(_NAME, f"the ADDRESS of Ingresses is empty: no single LoadBalancer Service was found {where}", _FIX)
    service = services.get(found)
    if not isinstance(service, Service):
        return warn(_NAME, f"the ADDRESS of Ingresses is empty: {found} does not exist", _FIX)
    if addresses := published(service):
        return ok(_NAME, f"Ingresses show {', '.join(str(*each.values()) for each in addresses)} of {found}")
    return warn(_NAME, f"the ADDRESS of Ingresses is empty: {found} has no load balancer address", _FIX)


def _named(text: str) -> ObjectKey:
    namespace, _, name = text.partition("/")
    return ObjectKey("Service", namespace, name)
