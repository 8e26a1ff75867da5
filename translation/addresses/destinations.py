"""What a host is in the Kubernetes cluster, and whether objects of a namespace may send requests there.

A name of the cluster domain, and an address of a Service or Pod in another namespace, are references to that namespace
and need a ReferenceGrant like any other reference. A Service of the object's own namespace is followed to its
destination. Everything read here is recorded, so that an address is checked again when its owner changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import BY_ADDRESS
from apisix_ingress.model.network.cluster_dns import ClusterName, cluster_name
from apisix_ingress.model.network.ip_address import IpAddress, canonical_ip
from apisix_ingress.model.objects import Endpoint, EndpointSlice, Namespace, Pod, Service
from apisix_ingress.state.view import View
from translation.addresses.host_policy import judged, refusal, refused, refused_pod
from translation.core.context import MOST_FOLLOWED, Context, Trail
from translation.core.grants import Destination
from translation.core.options import Options
from translation.upstreams.endpoints import listed_endpoints

NEEDS_GRANT = "which needs a ReferenceGrant there"
_ADDRESS = f"an address in another namespace, {NEEDS_GRANT}"
_NAME = f"a name in another namespace, {NEEDS_GRANT}"
_API_SERVER = "the API server"
_NOTHING = "a name of the cluster domain that belongs to neither a Service nor a Pod; write <service>.<namespace>.svc"

_KUBERNETES = ObjectKey("Service", "default", "kubernetes")

_LONGEST_CHAIN = 8
"""Maximum length of a chain of ExternalName Services; resolvers do not follow longer ones either."""


def objection(scope: Context, host: str) -> str:
    """Return what a rejected host is, or an empty string; `host_policy` checks its notation."""
    if scope.options.external_addresses == "allow":
        return ""
    return _host(scope, host, 0)


def is_in_cluster(scope: Context, host: str) -> bool:
    """Return whether a host is a name of the cluster domain, if the settings require that check."""
    found = judged(host)
    asks = scope.options.external_addresses != "allow" and not found.addresses
    return asks and _meant(scope.view, scope.options, found.name) is not None


def are_open(destinations: Iterable[Destination], view: View, options: Options) -> bool:
    """Return whether hosts that were permitted are still permitted for the objects that name them."""
    trail = Trail()
    for kind, namespace, host in sorted(destinations):
        scope = Context(kind, namespace, view, options)
        scope.trail = trail
        if objection(scope, host):
            return False
    return True


def service_objection(scope: Context, service: ObjectKey) -> str:
    """Return what is wrong with the destination of a Service, checked for its own namespace; empty if permitted."""
    if scope.options.external_addresses == "allow":
        return ""
    return _service(scope, service, 0)


def endpoint_objection(scope: Context, endpoint: Endpoint, address: str, port: int) -> str:
    """Return what a rejected endpoint address is; empty if it may be a node of its Service."""
    what = refused(scope.options, address, port)
    if not what and scope.options.external_addresses == "allow":
        return ""
    if has_own_pod(scope.view, scope.namespace, endpoint, address):
        return what if what and refused_pod(scope.options, address, port) else ""
    return what or objection(scope, address)


def has_own_pod(view: View, namespace: str, endpoint: Endpoint, address: str) -> bool:
    """Return whether a Pod of a namespace has the address of an endpoint.

    The Pod that it names, or any if it names none.
    """
    if endpoint.pod:
        pod = view.get(Pod, ObjectKey("Pod", namespace, endpoint.pod))
        return pod is not None and (
            address in pod.addresses or canonical_ip(address) in map(canonical_ip, pod.addresses)
        )
    return bool(pods_at(view, namespace, address))


def pods_at(view: View, namespace: str, address: str) -> tuple[Pod, ...]:
    """Return the Pods of a namespace that have an address; several can on a host network."""
    found = view.find(Pod, IndexKey("Pod", BY_ADDRESS, canonical_ip(address)))
    return tuple(pod for pod in found if pod.meta.namespace == namespace)


def _host(scope: Context, host: str, depth: int) -> str:
    found = judged(host)
    return _addresses(scope, found.addresses, depth) if found.addresses else _name(scope, found.name, depth)


def _name(scope: Context, name: str, depth: int) -> str:
    found = _meant(scope.view, scope.options, name)
    if found is None:
        return ""
    key = ObjectKey("Service", found.namespace, found.service)
    if not found.namespace or (not found.service and not found.address):
        return _NOTHING
    if key == _KUBERNETES:
        return _API_SERVER
    if scope.refuses(key):
        return _NAME
    if found.service:
        return _objection_to(key, _service(scope, key, depth))
    # The resolver may return any address that the name contains, whether or not a Pod has it.
    refusing = refusal(scope.options, found.address, None)
    return refusing.what if refusing else _host(scope, found.address, depth)


def _meant(view: View, options: Options, name: str) -> ClusterName | None:
    """Return what a name refers to in the cluster; a short name only if the object exists."""
    found = cluster_name(name, options.internal.domain)
    if found is None or found.is_sure:
        return found
    exists = view.get(Namespace, ObjectKey("Namespace", "", found.namespace)) is not None
    # A name of three labels, like those of Pods of a headless Service, may also be a public name.
    if exists and (name.count(".") == 1 or _has_service(view, found.namespace, found.service)):
        return found
    # In the namespace of the gateway the name of the Service suffices: <pod>.<service>.
    label = found.namespace
    there = (space for space in sorted(options.gateway_namespaces) if _has_service(view, space, label))
    return next((ClusterName(space, label) for space in there), None)


def _has_service(view: View, namespace: str, name: str) -> bool:
    return view.get(Service, ObjectKey("Service", namespace, name)) is not None


def _addresses(scope: Context, addresses: Iterable[IpAddress], depth: int) -> str:
    found = (_address(scope, str(address), depth) for address in addresses)
    return next(filter(None, found), "")


def _address(scope: Context, address: str, depth: int) -> str:
    pods = scope.view.find(Pod, IndexKey("Pod", BY_ADDRESS, address))
    if any(pod.meta.namespace == scope.namespace for pod in pods):
        return ""
    services = scope.view.find(Service, IndexKey("Service", BY_ADDRESS, address))
    keys = [service.meta.key for service in services]
    if _KUBERNETES in keys or address in _api_servers(scope):
        return _API_SERVER
    own = [key for key in keys if key.namespace == scope.namespace]
    # A Pod does not show which Services select it: only a grant for all Services covers it.
    others = dict.fromkeys((*keys, *(ObjectKey("Service", pod.meta.namespace, "") for pod in pods)))
    if not own and any(scope.refuses(key) for key in others):
        return _ADDRESS
    return next(filter(None, (_objection_to(key, _service(scope, key, depth)) for key in own or keys)), "")


def _api_servers(scope: Context) -> Iterator[str]:
    """Yield the addresses of API servers, from the object that they maintain."""
    key = ObjectKey("EndpointSlice", _KUBERNETES.namespace, _KUBERNETES.name)
    found = scope.view.get(EndpointSlice, key)
    for endpoint in found.endpoints if found else ():
        yield from endpoint.addresses


def _service(scope: Context, key: ObjectKey, depth: int) -> str:
    """Return what is wrong with the destination of a Service, checked for its own namespace.

    A cycle has no destination.
    """
    trail = scope.trail
    if key in trail.open:
        trail.cycles += 1
        return ""
    if key in trail.found:
        return trail.found[key]
    cycles = trail.cycles
    trail.open.add(key)
    what = _led(scope.within(key.kind, key.namespace), key, depth)
    trail.open.remove(key)
    # Services in a cycle were not followed to the end, except the one where the cycle was entered.
    if what or cycles == trail.cycles or not trail.open:
        trail.found[key] = what
    return what


def _led(scope: Context, key: ObjectKey, depth: int) -> str:
    service = scope.view.get(Service, key)
    if service is None:
        return ""
    if depth >= _LONGEST_CHAIN:
        return f"through more than {_LONGEST_CHAIN} other Services"
    if service.type == "ExternalName":
        return _onward(scope, service.external_name, depth)
    for endpoints, *_ in listed_endpoints(scope.view, scope.options, key):
        for endpoint in endpoints:
            for address in endpoint.addresses:
                if has_own_pod(scope.view, scope.namespace, endpoint, address):
                    continue
                if what := _onward(scope, address, depth):
                    return what
    return ""


def _onward(scope: Context, host: str, depth: int) -> str:
    trail = scope.trail
    trail.left -= 1
    if trail.left < 0:
        return f"to too many addresses: more than {MOST_FOLLOWED} that do not belong to Pods of its namespace"
    refusing = refusal(scope.options, host, None)
    what = refusing.what if refusing else _host(scope, host, depth + 1)
    return f"to {what}" if what else ""


def _objection_to(key: ObjectKey, objection: str) -> str:
    return f"{key}, which leads {objection}" if objection else ""
