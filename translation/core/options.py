"""Options: the settings that translations depend on, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from apisix_ingress.model.formats.selector import Selector, parse_selector
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.names import DEFAULT_CONTROLLER, ConsumerNames
from apisix_ingress.model.network.internal_addresses import NOTHING_INTERNAL, InternalAddresses
from translation.nginx.options import NginxOptions

ANY_CLASS = "apisix-and-all"
"""The configured class that means: Ingress of class `apisix`, custom resources of every class."""

DEFAULT_CLUSTERS = frozenset({"default"})
"""The gateway clusters if the settings list none."""


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of a translation.

    Attributes:
        ingress_class: The class to serve (v1-behaviour.md §6.2), or `ANY_CLASS`.
        ingress_class_controller: `spec.controller` of further IngressClasses to serve, whatever their names.
        controller_name: Stamped on records when it is not the default.
        endpoint_source: The kind that nodes are read from.
        cross_namespace: Whether references to other namespaces need a ReferenceGrant.
        code_plugins: Whether plugins that run code of the user are permitted.
        plugins: Whether users may use every plugin, or only the ones that `translation.plugins.policy` permits.
        trusted_plugins: Plugins that are permitted without a review.
        secret_references: Whether strings that the gateway replaces with its own secrets are permitted.
        external_addresses: Whether users may send requests to the gateway itself and other internal addresses.
        host_ownership: Whether a host belongs to one namespace, so that others cannot use it.
        consumer_names: How the username of a consumer is derived from its namespace and name.
        record_ids: Whether new names get the ids of 1.8, or wide ones.
        admin_addresses: Host and port of each Admin API, in the notation of `translation.addresses.policy`.
        gateway_namespaces: Namespaces in which gateways run, as far as known: short names resolve there.
        internal: The operator's list of internal addresses, and the cluster domain.
        published_keys: Whether the admin key of a cluster may be a published one.
        namespace_selector: The namespaces to serve.
        secret_selector: Label selector of the Secrets that are read; empty: all of them.
        secrets: Whether all of these Secrets are read, or only the ones with a reference in an object.
        plugin_metadata: The ConfigMap with plugin metadata; None if not configured.
        clusters: The names of the gateway clusters.
        cluster_urls: URL of an Admin API → the gateway cluster of the settings.
        gateway_proxies: Whether a GatewayProxy may describe gateways.
        gateway_api: Whether kinds of the Gateway API are read.
        gateway_addresses: The pool from which each Gateway gets its own address; empty: they share all addresses.
        gateway_experimental: Whether experimental fields of routes are served.
        published_addresses: Fixed addresses at which gateways are reached.
        listener_ports: Port of a listener → port on which gateways listen; without an entry the scheme is matched.
        loopback: The address at which a gateway reaches itself.
        nginx: How Ingresses of ingress-nginx are served; None if they are not.
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
    secret_selector: str = ""
    secrets: Literal["all", "referenced"] = "all"
    plugin_metadata: ObjectKey | None = None
    clusters: frozenset[str] = DEFAULT_CLUSTERS
    cluster_urls: Mapping[str, str] = field(default_factory=lambda: {"http://127.0.0.1:9180/apisix/admin": "default"})
    gateway_proxies: bool = True
    gateway_api: bool = True
    gateway_addresses: tuple[str, ...] = ()
    gateway_experimental: bool = False
    published_addresses: frozenset[str] = frozenset()
    listener_ports: Mapping[int, int] = field(default_factory=dict)
    loopback: str = "http://127.0.0.1:9080"
    nginx: NginxOptions | None = None

    @property
    def guarded_ports(self) -> frozenset[int]:
        """Ports that the operator lists with a host; requests to other ports of that host are permitted."""
        listed = (*self.internal.hosts.values(), *self.internal.below.values())
        return frozenset(port for ports in listed for port in ports if port is not None)

    @property
    def judges_addresses(self) -> bool:
        """Whether any address is rejected."""
        return self.external_addresses != "allow" or not self.internal.is_empty

    @property
    def judges_plugins(self) -> bool:
        """Whether a setting may reject plugins or their contents."""
        return "refuse" in (self.code_plugins, self.secret_references) or self.plugins != "all"
