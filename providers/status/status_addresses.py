"""The addresses in the status of Ingresses and routes: the configured ones, or those of the gateways' Service.

A GatewayProxy of their class takes precedence over the settings.

`kube.status.writer` writes them and leaves addresses of other controllers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.network.ip_address import is_ip
from apisix_ingress.model.objects import CustomObject, Service
from apisix_ingress.state.world import World
from translation.published_addresses import load_balancer_addresses, proxy_addresses, published_service
from translation.targets import proxy_of_class

AUTO = "auto"
"""The setting to find the Service."""

PROXY = "GatewayProxy"


class Addresses:
    """Computes `status.loadBalancer.ingress` on demand.

    Args:
        world: Services, and the objects of this controller.
        publish_service: namespace/name of the Service in front of the gateways; `auto`: it is found; or empty.
        fixed: Addresses to publish instead.
        namespaces: Where the Service is searched for.
        leaves_alone: Ingresses whose status another controller writes.
    """

    def __init__(
        self,
        world: World,
        publish_service: str,
        fixed: Sequence[str],
        *,
        namespaces: Collection[str] = (),
        leaves_alone: Callable[[ObjectKey], bool] = lambda key: False,
    ) -> None:
        self._leaves_alone = leaves_alone
        self._world = world
        self._fixed = [entry(address) for address in fixed]
        namespace, _, name = publish_service.partition("/")
        self._service = ObjectKey("Service", namespace, name) if name and not fixed else None
        self._searched = frozenset(namespaces if publish_service == AUTO and not fixed else ())
        self._is_followed = False
        self._is_found = False

    def of(self, key: ObjectKey) -> list[JsonObject] | None:
        """Return the desired addresses of an object, or None to leave its status alone.

        The list is empty for an object of another controller. The status is left alone if no addresses are configured,
        and until every kind was listed, as a Service that is missing before that may still exist.
        """
        if not RESOURCES[key.kind].addressed or not self._world.synced:
            return None
        named = self._named(key)
        if named is None and not (self._fixed or self.service()):
            return None
        if self._leaves_alone(key):
            return None
        if key not in self._world.reports:
            return []
        return self.published() if named is None else named

    def _named(self, key: ObjectKey) -> list[JsonObject] | None:
        """Return the addresses that the GatewayProxy of an object's class names; None if it names none."""
        view = self._world.view()
        obj = view.get(CustomObject, key)
        proxy = proxy_of_class(obj, view) if obj else None
        found = proxy_addresses(proxy, key.namespace, view) if proxy else None
        return None if found is None else [entry(address) for address in found]

    def published(self) -> list[JsonObject]:
        """Return the addresses for the objects of this controller; empty until every kind was listed."""
        if self._fixed or not self._world.synced or (target := self.service()) is None:
            return self._fixed
        return published(self._world.stores["Service"].get(target))

    def service(self) -> ObjectKey | None:
        """Return the Service in front of the gateways, named or found; None if there is none."""
        if self._searched and not self._is_found:
            found = gateway_service(self._world.stores["Service"].values(), self._searched)
            self._service, self._is_found = found, self._is_followed
        return self._service

    def follow(self, wake: Callable[[ObjectKey], None]) -> None:
        """Call `wake` for every object of this controller with addresses when a Service with addresses changes."""

        def wake_all() -> None:
            for key in self._world.reports:
                if RESOURCES[key.kind].addressed or RESOURCES[key.kind].status == "document":
                    wake(key)

        def changed(read: Read) -> None:
            before = self._service
            if isinstance(read, ObjectKey) and read.kind == "Service" and read.namespace in self._searched:
                self._is_found = False
            if read == before or (not self._is_found and self._world.synced and self.service() != before):
                wake_all()

        def named_changed(read: Read) -> None:
            if self._is_named(read):
                wake_all()

        if self._service or self._searched:
            self._is_followed = True
            self._world.listen(changed)
        self._world.listen(named_changed)

    def _is_named(self, read: Read) -> bool:
        """Return whether something is a Service that a GatewayProxy publishes."""
        if not isinstance(read, ObjectKey) or read.kind != "Service" or PROXY not in self._world.stores:
            return False
        named = (str(each.spec.get("publishService") or "") for each in self._world.stores[PROXY].values())
        return any(published_service(each, read.namespace) == read for each in named)


def gateway_service(services: Iterable[Service], namespaces: Collection[str]) -> ObjectKey | None:
    """Return the LoadBalancer Service in some namespaces; if there are several, the only one named `…gateway`."""
    found = [each.meta.key for each in services if each.type == "LoadBalancer" and each.meta.namespace in namespaces]
    if len(found) > 1:
        found = [key for key in found if key.name.endswith("gateway")]
    return found[0] if len(found) == 1 else None


def published(service: Service | None) -> list[JsonObject]:
    """Return the addresses of a Service as entries of a status."""
    return [entry(address) for address in load_balancer_addresses(service)]


def entry(address: str) -> JsonObject:
    """Return an address in the form of an Ingress status."""
    return {"ip": address} if is_ip(address) else {"hostname": address}
