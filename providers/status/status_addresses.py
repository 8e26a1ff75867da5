"""The addresses in the status of an Ingress: the configured ones, or the addresses of the gateways' Service.

`kube.status.writer` writes them and leaves addresses of other controllers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.network.ip_address import is_ip
from apisix_ingress.model.objects import Service
from apisix_ingress.state.world import World


class Addresses:
    """Computes `status.loadBalancer.ingress` on demand.

    Args:
        world: Services, and the Ingresses of this controller.
        publish_service: namespace/name of the Service in front of the gateways, or empty.
        fixed: Addresses to publish instead.
        leaves_alone: Ingresses whose status another controller writes.
    """

    def __init__(
        self,
        world: World,
        publish_service: str,
        fixed: Sequence[str],
        *,
        leaves_alone: Callable[[ObjectKey], bool] = lambda key: False,
    ) -> None:
        self._leaves_alone = leaves_alone
        self._world = world
        self._fixed = [entry(address) for address in fixed]
        namespace, _, name = publish_service.partition("/")
        self._service = ObjectKey("Service", namespace, name) if name and not fixed else None

    def of(self, key: ObjectKey) -> list[JsonObject] | None:
        """Return the desired addresses of an Ingress, or None to leave its status alone.

        The list is empty for an Ingress of another controller. The status is left alone if no addresses are configured,
        and until every kind was listed, as a Service that is missing before that may still exist.
        """
        if RESOURCES[key.kind].status != "addresses" or not (self._fixed or self._service) or not self._world.synced:
            return None
        if self._leaves_alone(key):
            return None
        return self.published() if key in self._world.reports else []

    def published(self) -> list[JsonObject]:
        """Return the addresses for the Ingresses of this controller; empty until every kind was listed."""
        if self._fixed or not (self._service and self._world.synced):
            return self._fixed
        return published(self._world.stores["Service"].get(self._service))

    def follow(self, wake: Callable[[ObjectKey], None]) -> None:
        """Call `wake` for every Ingress of this controller when the Service changes."""

        def changed(read: Read) -> None:
            if read == self._service:
                for key in self._world.reports:
                    if RESOURCES[key.kind].status in ("addresses", "document"):
                        wake(key)

        if self._service:
            self._world.listen(changed)


def published(service: Service | None) -> list[JsonObject]:
    """Return the addresses of a Service in the order of 1.8; empty unless its load balancer has an address.

    External IPs are published only together with the addresses of the load balancer (v1-behaviour.md §7).
    """
    if service is None or service.type != "LoadBalancer" or not service.load_balancer:
        return []
    return [entry(address) for address in (*(ip or host for ip, host in service.load_balancer), *service.external_ips)]


def entry(address: str) -> JsonObject:
    """Return an address in the form of an Ingress status."""
    return {"ip": address} if is_ip(address) else {"hostname": address}
