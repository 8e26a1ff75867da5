"""Indexes of stores: their names, and the functions that return the values under which an object is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apisix_ingress.model import objects as kube
from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.ip_address import canonical_ip

IndexFunction = Callable[[Any], Iterable[str]]

SLICES_BY_SERVICE = "service"
"""Index of EndpointSlices: `namespace/service`."""

BY_ADDRESS = "address"
"""Index of Pods and Services: each of their IP addresses, in canonical form."""

DEFAULT_CLASS = "default"
"""Index of IngressClasses: `true` contains the ones with the default-class annotation."""

PLUGIN_INDEX = "plugin"
"""Index of ApisixGlobalRules: the names of the plugins that they enable."""

MATCHER_INDEX = "matcher"
"""Index of Ingresses and ApisixRoutes: the requests that their rules match (model.network.route_keys)."""

TLS_HOST_INDEX = "tls-host"
"""Index of Ingresses and ApisixTlses: the hosts of their certificates (model.network.tls_hosts)."""

HOST_INDEX = "host"
"""Index of Ingresses, ApisixRoutes and ApisixTlses: the hosts that they name (model.network.host_claims)."""

UNDER_INDEX = "under"
"""Index of the same kinds: the wildcards over the hosts that they name."""

LENT_INDEX = "lent"
"""Index of the same kinds: `namespace/host` for each host that an object names and lets other namespaces use."""

ASSIGNED_INDEX = "assigned"
"""Index of Namespaces: the hosts that are assigned to them."""

ASSIGNED_UNDER_INDEX = "assigned-under"
"""Index of Namespaces: the wildcards over the hosts that are assigned to them."""

NGINX_HOST_INDEX = "nginx-host"
"""Index of Ingresses: the ingress-nginx servers of their rules; `_` is the server of rules without a host."""

NGINX_SERVICE_INDEX = "nginx-service"
"""Index of Ingresses: `namespace/service` of each Service that their paths name."""

NGINX_CANARY_INDEX = "nginx-canary"
"""Index of Ingresses that may be canaries, by any prefix of the annotation: their servers, and `EVERY_SERVER`."""

EVERY_SERVER = "*"
"""Value of `NGINX_CANARY_INDEX` that all of them have."""

NGINX_AFFINITY_INDEX = "nginx-affinity"
"""Index of Ingresses that may ask for affinity: `namespace/service` of each Service that their paths name."""

NGINX_INDEXES = frozenset({NGINX_HOST_INDEX, NGINX_SERVICE_INDEX, NGINX_CANARY_INDEX, NGINX_AFFINITY_INDEX})
"""Indexes that only the ingress-nginx provider uses."""

OWNERSHIP_INDEXES = frozenset({HOST_INDEX, UNDER_INDEX, LENT_INDEX, ASSIGNED_INDEX, ASSIGNED_UNDER_INDEX})
"""Indexes that are used only with `host_ownership: namespace`."""

BY_PARENT = "parent"
"""Index of ListenerSets: `namespace/name` of the Gateway."""

BY_TARGET = "target"
"""Index of BackendTLSPolicies: `namespace/name` of each Service; of other policies: `group/kind/namespace/name`."""

BY_BACKEND = "backend"
"""Index of routes of the Gateway API: `namespace/name` of each Service that they name as a backend."""

BY_PROXY = "proxy"
"""Index of IngressClasses, GatewayClasses and Gateways: `namespace/name` of the GatewayProxy in their parameters."""

EVERY = "every"
"""Index of Gateways: all of them under the empty string."""

BY_FRONTEND = "frontend"
"""Index of Gateways: under the empty string, Gateways with settings for client certificates."""

GRANTS_BY_NAMESPACES = "namespaces"
"""Index of ReferenceGrants: `namespace/namespace that may refer to it`."""


def slice_service(item: kube.EndpointSlice) -> Iterable[str]:
    """Return the Service of an EndpointSlice."""
    return (f"{item.meta.namespace}/{item.service}",) if item.service else ()


def addresses(item: kube.Pod | kube.Service) -> Iterable[str]:
    """Return the IP addresses of a Pod or Service, in canonical form."""
    return map(canonical_ip, item.addresses)


def grant_namespaces(item: kube.ReferenceGrant) -> Iterable[str]:
    """Return which namespaces may refer to the namespace of a ReferenceGrant."""
    return (f"{item.meta.namespace}/{namespace}" for _, _, namespace in item.sources)


def default_class(item: kube.IngressClass) -> Iterable[str]:
    """Return `true` for a default IngressClass."""
    return ("true",) if item.is_default else ()


def enabled_plugins(item: kube.CustomObject) -> Iterable[str]:
    """Yield the names of the plugins that an ApisixGlobalRule enables."""
    plugins = item.spec.get("plugins")
    for plugin in plugins if isinstance(plugins, list) else ():
        name = plugin.get("name") if isinstance(plugin, dict) else None
        if isinstance(name, str) and plugin.get("enable") is not False:
            yield name


def parent_gateway(item: kube.CustomObject) -> Iterable[str]:
    """Return the Gateway of a ListenerSet."""
    parent = mapping_in(item.spec.get("parentRef"))
    return (f"{parent.get('namespace') or item.meta.namespace}/{parent.get('name')}",)


def target_services(item: kube.CustomObject) -> Iterable[str]:
    """Return the Services that a BackendTLSPolicy applies to."""
    targets = (mapping_in(each) for each in list_in(item.spec.get("targetRefs")))
    return [f"{item.meta.namespace}/{each.get('name')}" for each in targets if each.get("kind", "Service") == "Service"]


def backend_services(item: kube.CustomObject) -> Iterable[str]:
    """Return the Services that a route of the Gateway API names as backends."""
    rules = map(mapping_in, list_in(item.spec.get("rules")))
    backends = (mapping_in(each) for rule in rules for each in list_in(rule.get("backendRefs")))
    return dict.fromkeys(
        f"{each.get('namespace') or item.meta.namespace}/{each.get('name')}"
        for each in backends
        if each.get("kind", "Service") == "Service"
    )


def policy_targets(item: kube.CustomObject) -> Iterable[str]:
    """Return the objects that a policy applies to; they are in its namespace."""
    targets = (mapping_in(each) for each in list_in(item.spec.get("targetRefs")))
    named = ((f"{each.get('group') or ''}/{each.get('kind')}", each.get("name")) for each in targets)
    return dict.fromkeys(f"{kind}/{item.meta.namespace}/{name}" for kind, name in named)


def class_proxy(item: kube.IngressClass) -> Iterable[str]:
    """Return the GatewayProxy of an IngressClass."""
    return (item.proxy.place,) if item.proxy else ()


def gateway_proxy(item: kube.CustomObject) -> Iterable[str]:
    """Return the GatewayProxy of a Gateway or GatewayClass."""
    found = proxy_named(item)
    return (found.place,) if found else ()


def proxy_named(item: kube.CustomObject) -> ObjectKey | None:
    """Return the GatewayProxy that a Gateway or GatewayClass refers to."""
    owner = item.spec if item.meta.kind == "GatewayClass" else mapping_in(item.spec.get("infrastructure"))
    named = mapping_in(owner.get("parametersRef"))
    if (named.get("group"), named.get("kind")) != ("apisix.apache.org", "GatewayProxy"):
        return None
    return ObjectKey("GatewayProxy", str(named.get("namespace") or item.meta.namespace), str(named.get("name")))


def every(item: kube.CustomObject) -> Iterable[str]:
    """Return the single value that all objects of a kind have."""
    return ("",)


def frontends(item: kube.CustomObject) -> Iterable[str]:
    """Return the single value of Gateways that may verify clients."""
    listeners = (mapping_in(mapping_in(each).get("tls")) for each in list_in(item.spec.get("listeners")))
    verifies = mapping_in(item.spec.get("tls")).get("frontend") or any(
        each.get("frontendValidation") for each in listeners
    )
    return ("",) if verifies else ()


def nginx_hosts(item: kube.CustomObject) -> Iterable[str]:
    """Return the ingress-nginx servers that an Ingress contributes to."""
    rules = [rule for rule in list_in(item.spec.get("rules")) if isinstance(rule, dict)]
    hosts = [str(rule.get("host") or "").lower() or "_" for rule in rules]
    return dict.fromkeys([*hosts, *(["_"] if item.spec.get("defaultBackend") else [])])


def nginx_services(item: kube.CustomObject) -> Iterable[str]:
    """Return the Services that the paths of an Ingress name."""
    rules = [mapping_in(rule) for rule in list_in(item.spec.get("rules"))]
    paths = [mapping_in(path) for rule in rules for path in list_in(mapping_in(rule.get("http")).get("paths"))]
    backends = [item.spec.get("defaultBackend"), *(path.get("backend") for path in paths)]
    names = [mapping_in(mapping_in(backend).get("service")).get("name") for backend in backends]
    return dict.fromkeys(f"{item.meta.namespace}/{name}" for name in names if isinstance(name, str))


def nginx_affinities(item: kube.CustomObject) -> Iterable[str]:
    """Return the Services of an Ingress that may ask for affinity."""
    return nginx_services(item) if any(name.endswith("/affinity") for name in item.meta.annotations) else ()


def nginx_canaries(item: kube.CustomObject) -> Iterable[str]:
    """Return the ingress-nginx servers of an Ingress that may be a canary."""
    found = any(name.endswith("/canary") for name in item.meta.annotations)
    return (*nginx_hosts(item), EVERY_SERVER) if found else ()
