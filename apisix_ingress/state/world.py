"""The whole state that translations read and write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from apisix_ingress.model.assessment import Assessment
from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.kinds.resource import DERIVED_PROVIDERS, Resource
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.attachments import Attachments
from apisix_ingress.state.claims import Claims
from apisix_ingress.state.dependents import Dependents
from apisix_ingress.state.desired import Desired
from apisix_ingress.state.gateway_versions import GATEWAY_VERSION, OLDEST, GatewayVersions
from apisix_ingress.state.hosts.host_holders import HostHolders
from apisix_ingress.state.hosts.shared_hosts import SharedHosts
from apisix_ingress.state.ids.id_table import IdTable
from apisix_ingress.state.namespace_budget import NamespaceBudget
from apisix_ingress.state.nginx_canaries import NGINX_CANARY, NginxCanaries
from apisix_ingress.state.store import Store
from apisix_ingress.state.view import DetachedView, TrackingView


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an object's last translation, and the generation it translated."""

    generation: int
    problems: tuple[Problem, ...] = ()
    assessment: Assessment | None = None
    """Of an object of the Gateway API."""


class World:
    """Stores, dependents, claims, desired records and reports.

    Args:
        resources: The kinds to read; each has a store.
        wide_ids: Whether new names always get wide ids.
    """

    def __init__(self, resources: Iterable[Resource], *, wide_ids: bool = False) -> None:
        self._listeners: tuple[Callable[[Read], None], ...] = ()
        self.ids = IdTable(self._notify, compatible=not wide_ids)
        self.dependents = Dependents(self.ids.forget)
        self.claims = Claims()
        self.attachments = Attachments()
        self.neighbours = SharedHosts()
        self.host_holders = HostHolders(self._notify)
        self.desired = Desired(self.ids)
        self.budget = NamespaceBudget()
        self.reports: dict[ObjectKey, Report] = {}
        """By owner, for objects that this controller handles."""
        self.stores: dict[str, Store[Any]] = {
            resource.kind: Store(resource.kind, self._notify, resource.indexes, resource.ranked)
            for resource in resources
        }
        for kind in DERIVED_PROVIDERS:
            self.stores[kind] = Store(kind, self._notify)
            self.stores[kind].synced = True
        self.gateway_versions = GatewayVersions(self._notify)
        self.stores[GATEWAY_VERSION] = self.gateway_versions.store
        self.nginx_canaries = NginxCanaries(self._notify)
        self.stores[NGINX_CANARY] = self.nginx_canaries.store

    def learn_version(self, cluster: str, server: str) -> bool:
        """Store the version that a gateway cluster reports; return whether a translation depends on the difference."""
        readers = self.dependents.of(OLDEST)
        return self.gateway_versions.learn(cluster, server) and bool(readers)

    def listen(self, listener: Callable[[Read], None]) -> None:
        """Add a listener for changed reads."""
        self._listeners = (*self._listeners, listener)

    def view(self) -> TrackingView:
        """Return a new view that records its reads."""
        return TrackingView(self.stores, self.ids, self.claims, self.host_holders)

    def detached_view(self) -> DetachedView:
        """Return a new view for a translation in a thread."""
        return DetachedView(self.stores, self.ids, self.claims, self.host_holders)

    @property
    def synced(self) -> bool:
        """Whether every store has been complete once."""
        return all(store.synced for store in self.stores.values())

    def _notify(self, read: Read) -> None:
        for listener in self._listeners:
            listener(read)
