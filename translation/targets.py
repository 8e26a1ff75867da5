"""Targets: the gateways that a GatewayProxy of 2.x describes. They serve the objects of its class or Gateway.

An object without a GatewayProxy belongs to the gateway clusters of the settings. GatewayProxies with the same URL
describe the same gateways, also a cluster of the settings with this URL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from apisix_ingress.model.admin_address import HEADER_VALUE, check_admin_url
from apisix_ingress.model.json import mapping_in
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import BY_PROXY, DEFAULT_CLASS, SLICES_BY_SERVICE, proxy_named
from apisix_ingress.model.objects import CustomObject, EndpointSlice, IngressClass, KubeObject, Secret, Service
from apisix_ingress.model.target import STANDALONE, Target
from apisix_ingress.state.view import View
from crds import SpecError
from crds.v1alpha1.extensions import ControlPlane, GatewayProxySpec, ProxyService
from translation.core.options import Options
from translation.core.outcome import Published
from translation.core.scope import written_class
from translation.gateway.parsing import spec_of

_ADMIN_PATH = "/apisix/admin"
_SETTINGS: frozenset[ObjectKey | None] = frozenset({None})


class InvalidTarget(ValueError):
    """A GatewayProxy does not describe gateways that can be used; the text names the field and the remedy."""


def proxies_of(obj: KubeObject | None, outcome: Published, view: View) -> frozenset[ObjectKey | None]:
    """Return the GatewayProxies whose gateways serve an object; None stands for the clusters of the settings."""
    if not isinstance(obj, CustomObject):
        return _SETTINGS
    if outcome.attached:
        return frozenset(_of_gateway(listener.owner, view) for listener in outcome.attached)
    match obj.meta.kind:
        case "Gateway" | "ListenerSet":
            return frozenset({_of_gateway(obj.meta.key, view)})
        case "Consumer":
            named = mapping_in(obj.spec.get("gatewayRef"))
            namespace, name = str(named.get("namespace") or obj.meta.namespace), str(named.get("name"))
            return frozenset({_of_gateway(ObjectKey("Gateway", namespace, name), view)})
        case _:
            return frozenset({proxy_of_class(obj, view)})


def clusters_of(obj: KubeObject | None, outcome: Published, view: View, options: Options) -> frozenset[str] | None:
    """Return the gateway clusters of an object's records; None: those of the settings.

    Raises:
        InvalidTarget: A GatewayProxy of the object cannot be used.
    """
    proxies = proxies_of(obj, outcome, view)
    if proxies == _SETTINGS:
        return None
    return united((_cluster(each, view, options) for each in proxies), options)


def united(found: Iterable[frozenset[str] | None], options: Options) -> frozenset[str] | None:
    """Return all clusters of several objects; None: those of the settings."""
    known = set(found)
    if known <= {None}:
        return None
    return frozenset().union(*(options.clusters if each is None else each for each in known))


def cluster_of(target: Target, options: Options) -> str:
    """Return the name of the gateway cluster of a target: that of the settings with the same URL, if there is one."""
    return next((options.cluster_urls[url] for url in target.urls if url in options.cluster_urls), target.name)


def _cluster(proxy: ObjectKey | None, view: View, options: Options) -> frozenset[str] | None:
    """Return the cluster of a GatewayProxy; one that describes no gateways has only parameters."""
    target = target_in(proxy, view) if proxy is not None else None
    return frozenset({cluster_of(target, options)}) if target is not None else None


def is_used(proxy: ObjectKey, view: View) -> bool:
    """Return whether a class or a Gateway refers to a GatewayProxy."""
    kinds = (("IngressClass", IngressClass), ("Gateway", CustomObject), ("GatewayClass", CustomObject))
    return any(view.find(model, IndexKey(kind, BY_PROXY, proxy.place)) for kind, model in kinds)


def target_in(proxy: ObjectKey, view: View) -> Target | None:
    """Return the gateways of a GatewayProxy; None if it exists and describes none.

    Raises:
        InvalidTarget: It does not exist, or a field or an object that it names cannot be used.
    """
    found = view.get(CustomObject, proxy)
    if found is None:
        raise InvalidTarget(f"{proxy} does not exist; create it or remove the reference")
    try:
        provider = spec_of(found, GatewayProxySpec).provider
    except SpecError as error:
        raise InvalidTarget(f"{proxy}: {error}") from None
    if provider is None or provider.control_plane is None:
        return None
    plane = provider.control_plane
    try:
        urls, mode = _urls(plane, proxy, view), plane.mode or "apisix"
        name = urls[0] if urls and (plane.service is None or mode != STANDALONE) else _of_service(plane, proxy)
        return Target(name, mode, urls, _key(plane, proxy, view), plane.tls_verify)
    except ValueError as error:
        raise InvalidTarget(f"{proxy}: spec.provider.controlPlane.{error}") from None


def proxy_of_class(obj: CustomObject, view: View) -> ObjectKey | None:
    """Return the GatewayProxy of the IngressClass of an object."""
    if name := written_class(obj):
        found = view.get(IngressClass, ObjectKey("IngressClass", "", name))
        return found.proxy if found else None
    if obj.meta.kind != "Ingress":
        return None
    defaults = view.find(IngressClass, IndexKey("IngressClass", DEFAULT_CLASS, "true"))
    return next((each.proxy for each in defaults), None)


def _of_gateway(key: ObjectKey, view: View) -> ObjectKey | None:
    found = view.get(CustomObject, key)
    if found is None:
        return None
    if key.kind == "ListenerSet":
        parent = mapping_in(found.spec.get("parentRef"))
        namespace = str(parent.get("namespace") or key.namespace)
        return _of_gateway(ObjectKey("Gateway", namespace, str(parent.get("name"))), view)
    if named := proxy_named(found):
        return named
    of_class = view.get(CustomObject, ObjectKey("GatewayClass", "", str(found.spec.get("gatewayClassName"))))
    return proxy_named(of_class) if of_class else None


def _urls(plane: ControlPlane, proxy: ObjectKey, view: View) -> tuple[str, ...]:
    if bool(plane.endpoints) == bool(plane.service):
        raise ValueError("endpoints: set either endpoints or service")
    if plane.service is None:
        return tuple(_checked(url, f"endpoints[{index}]") for index, url in enumerate(plane.endpoints))
    key = ObjectKey("Service", proxy.namespace, plane.service.name)
    service = view.get(Service, key)
    if service is None:
        raise ValueError(f"service: {key} does not exist; create it or correct the name")
    if plane.mode != STANDALONE:
        host = service.external_name or f"{key.name}.{key.namespace}.svc"
        return (f"http://{host}:{plane.service.port or 80}{_ADMIN_PATH}",)
    return tuple(sorted({f"http://{each}{_ADMIN_PATH}" for each in _addresses(service, plane.service, view)}))


def _of_service(plane: ControlPlane, proxy: ObjectKey) -> str:
    """Return the name of gateways whose addresses change."""
    return f"{proxy.namespace}/{plane.service.name}:{plane.service.port}" if plane.service else proxy.place


def _addresses(service: Service, wanted: ProxyService, view: View) -> Iterator[str]:
    """Yield host and port of every Pod of a Service, ready or not, unless it is being terminated."""
    name = next((port.name for port in service.ports if port.port == wanted.port), None)
    for each in view.find(EndpointSlice, IndexKey("EndpointSlice", SLICES_BY_SERVICE, service.meta.key.place)):
        ports = [port.port for port in each.ports if port.name == name]
        for endpoint in each.endpoints:
            if not endpoint.terminating:
                for address in endpoint.addresses:
                    host = f"[{address}]" if ":" in address else address
                    yield from (f"{host}:{port}" for port in ports)


def _checked(url: str, field: str) -> str:
    try:
        found = check_admin_url(url)
    except ValueError as error:
        raise ValueError(f"{field} {error}") from None
    return (found if urlsplit(found).path else found + _ADMIN_PATH).replace(".svc.cluster.local:", ".svc:")


def _key(plane: ControlPlane, proxy: ObjectKey, view: View) -> str:
    where, given = "auth.adminKey", plane.auth.admin_key
    named = given.value_from.secret_key_ref if given.value_from else None
    if bool(given.value) == bool(named):
        raise ValueError(f"{where}: set either value or valueFrom.secretKeyRef")
    if named is None:
        key = given.value
    else:
        where = f"{where}.valueFrom.secretKeyRef"
        secret = view.get(Secret, ObjectKey("Secret", proxy.namespace, named.name))
        if secret is None or named.key not in secret.data:
            raise ValueError(f"{where}: Secret {named.name} does not exist, or has no key {named.key}")
        key = secret.data[named.key].decode("utf-8", "replace").strip()
    if not key or not HEADER_VALUE.fits(key):
        raise ValueError(f"{where}: the key is empty, or has a character that is invalid in an HTTP header")
    return key
