"""Hosts of ingress-nginx: translated when an Ingress that names the host, or anything it refers to, changes."""

from __future__ import annotations

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.indexes import NGINX_HOST_INDEX
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.state.view import View
from providers.core.base import Provider
from providers.core.offload import LARGE, is_large
from translation.core.outcome import NOT_SERVED, Outcome
from translation.nginx.host import translate_host

MANY = 8
"""Number of Ingresses of a host above which it is translated in a thread."""


class NginxHostProvider(Provider[CustomObject]):
    """Owns the routes and the certificate of each host that Ingresses of ingress-nginx name; claims upstreams.

    The owner is a host, not an object: all Ingresses of a host are translated together, and an edit of an Ingress
    affects only the hosts that it names. In queues, a host takes the turn of the namespace of its oldest Ingress.
    """

    kind = "NginxHost"

    def evaluate(self, key: ObjectKey, item: CustomObject | None, view: View) -> Outcome:
        """Return the records of a host."""
        if self._options.nginx is None:
            return NOT_SERVED
        return translate_host(key.name, view, self._options, self._options.nginx)

    def takes_long(self, key: ObjectKey) -> bool:
        """Return whether a host has many Ingresses or a large one."""
        named = self._world.stores["Ingress"].by_index(NGINX_HOST_INDEX, key.name)
        return len(named) > MANY or any(is_large(item) or _has_long_annotations(item) for item in named)

    def publish(self, key: ObjectKey, item: CustomObject | None, outcome: Outcome) -> None:
        """Publish an outcome in the turn of a namespace, and its canaries for other hosts."""
        if namespace := self.namespace_of(key):  # Without one, the former namespace pays for the deletes.
            self._world.desired.assign(key, namespace)
        super().publish(key, item, outcome)
        if outcome is NOT_SERVED:
            self._world.desired.assign(key, "")
            self._world.budget.assign(key, "")
        self._world.nginx_canaries.replace(key.name, outcome.canaries)

    def namespace_of(self, key: ObjectKey) -> str:
        """Return the namespace that holds a host, else that of the oldest Ingress that names it; empty if none does."""
        if holder := self._world.host_holders.holder(key.name):
            return holder
        named = self._world.stores["Ingress"].by_index(NGINX_HOST_INDEX, key.name)
        oldest = min(named, key=lambda item: (item.meta.created, item.meta.key), default=None)
        return oldest.meta.namespace if oldest else ""

    def translate(self, item: CustomObject, view: View) -> Outcome:
        """Never called: a host is not an object; `evaluate` finds its Ingresses by its name."""
        raise NotImplementedError


def _has_long_annotations(item: KubeObject) -> bool:
    """Return whether an Ingress has long annotations, which each of its paths may repeat."""
    return sum(map(len, item.meta.annotations.values())) > LARGE
