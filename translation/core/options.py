"""Options: the settings that translations depend on, as one frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from apisix_ingress.model.formats.selector import Selector, parse_selector
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.names import DEFAULT_CONTROLLER, ConsumerNames
from apisix_ingress.model.network.internal_addresses import NOTHING_INTERNAL, InternalAddresses

ANY_CLASS = "apisix-and-all"
"""The configured class that means: Ingress of class `apisix`, custom resources of every class."""

DEFAULT_CLUSTERS = frozenset({"default"})
"""The gateway clusters where the settings name none."""


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of a translation.

    Attributes:
        ingress_class: The class that is ours (v1-behaviour.md §6.2), or `ANY_CLASS`.
        ingress_class_controller: `spec.controller` of IngressClasses that are ours by any name.
        controller_name: Stamped on records when it is not the default.
        endpoint_source: Which kind nodes are taken from.
        cross_namespace: Whether references to other namespaces need a ReferenceGrant.
        code_plugins: Whether plugins that run code of the user are let through.
        plugins: Whether users may have every plugin, or those that `translation.plugins.policy` allows.
        trusted_plugins: Plugins that are let through unreviewed.
        secret_references: Whether texts that the gateway replaces by secrets of its own are let through.
        external_addresses: Whether users may have requests sent to the gateway itself and the like.
        host_ownership: Whether a host belongs to one namespace, and others can't use it.
        consumer_names: How the username of a consumer is made of its namespace and name.
        record_ids: Whether new names get the ids of the 1.8 line, or wide ones.
        admin_addresses: Host and port of each Admin API, as `translation.addresses.policy` spells them.
        gateway_namespaces: Namespaces in which gateways run, as far as known: short names resolve there.
        internal: What the operator lists as internal, and the cluster domain.
        published_keys: Whether a cluster's admin key may be one that everybody knows.
        namespace_selector: Which namespaces count.
        plugin_metadata: The ConfigMap with plugin metadata; None: there is none.
        clusters: The names of the gateway clusters.
    """

    ingress_class: str = ANY_CLASS
    ingress_class_controller: str = "apisix.apache.org/apisix-ingress-controller"
    controller_name: str = DEFAULT_CONTROLLER
    endpoint_source: Literal["endpointslices", "endpoints"] = "endpointslices"
    cross_namespace: Literal["allow", "grant"] = "allow"
    code_plugins: Literal["allow", "refuse"] = "allow"
    plugins: Literal["all", "reviewed"] = "all"
    trusted_plugins: frozenset[str] = frozenset()
    secret_references: Literal["allow", "refuse"] = "allow"
    external_addresses: Literal["allow", "refuse-internal"] = "allow"
    host_ownership: Literal["shared", "namespace", "assigned"] = "shared"
    consumer_names: ConsumerNames = "compatible"
    record_ids: Literal["compatible", "wide"] = "compatible"
    admin_addresses: frozenset[tuple[str, int]] = frozenset()
    gateway_namespaces: frozenset[str] = frozenset()
    internal: InternalAddresses = NOTHING_INTERNAL
    published_keys: Literal["allow", "refuse"] = "allow"
    namespace_selector: Selector = field(default_factory=lambda: parse_selector(""))
    plugin_metadata: ObjectKey | None = None
    clusters: frozenset[str] = DEFAULT_CLUSTERS

    @property
    def guarded_ports(self) -> frozenset[int]:
        """Ports that the operator lists with a host, on other ports of which requests are allowed."""
        listed = (*self.internal.hosts.values(), *self.internal.below.values())
        return frozenset(port for ports in listed for port in ports if port is not None)

    @property
    def judges_addresses(self) -> bool:
        """Whether some address is refused at all."""
        return self.external_addresses != "allow" or not self.internal.is_empty

    @property
    def judges_plugins(self) -> bool:
        """Whether a setting may refuse plugins or what they hold."""
        return "refuse" in (self.code_plugins, self.secret_references) or self.plugins != "all"
