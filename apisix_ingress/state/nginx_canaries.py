"""The canaries of ingress-nginx at each host, as objects that the translations of all hosts read.

A canary takes its share at every host that uses the same backend. Each host therefore publishes its canaries by
backend, instead of reading those of every other host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from apisix_ingress.model.json import mapping_in
from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.store import Store

NGINX_CANARY = "NginxCanary"
"""Internal kind: a canary Ingress at one host. `spec.shares` has the backends there of which it takes a share."""

BY_BACKEND = "nginx-canary-backend"
"""Index of these objects: each backend of which they take a share."""


class NginxCanaries:
    """The canaries at each host.

    Args:
        listener: Called with each read whose result changed.
    """

    def __init__(self, listener: Callable[[Read], None]) -> None:
        self.store: Store[CustomObject] = Store(
            NGINX_CANARY, listener, {BY_BACKEND: _backends}, frozenset({BY_BACKEND})
        )
        self.store.synced = True
        self._of: dict[str, frozenset[ObjectKey]] = {}

    def replace(self, host: str, canaries: Iterable[CustomObject]) -> None:
        """Replace the canaries at a host."""
        after = {item.meta.key: item for item in canaries}
        for key in self._of.pop(host, frozenset()) - after.keys():
            self.store.delete(key)
        for item in after.values():
            self.store.set(item)
        if after:
            self._of[host] = frozenset(after)


def _backends(item: CustomObject) -> Iterable[str]:
    return mapping_in(item.spec.get("shares"))
