"""Objects that manifests refer to and that are not among the files: they are assumed, so that the rest is checked.

A repository often has only the routes of an application: the Gateway, its class, and sometimes the Services are in
another one. Without them, routes would not be checked at all, or every reference would be a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.gateway_api import GATEWAY_GROUP
from apisix_ingress.model.objects import CustomObject, IngressClass, KubeObject, Meta, Service, ServicePort
from apisix_ingress.model.problem import Problem
from translation.core.options import Options

_CLUSTER_IP = "10.96.0.1"
_FIRST_PORT = 80
_PROTOCOLS = {"TCPRoute": "TCP", "UDPRoute": "UDP", "TLSRoute": "TLS"}
_PORTS = {"HTTP": 80, "TLS": 443, "TCP": 9000, "UDP": 9001}
_PARENTS = "spec.parentRefs"
_ALL = {"namespaces": {"from": "All"}}


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is assumed.

    Attributes:
        objects: Services, Gateways and classes that objects of the files refer to.
        notes: Object of the files → the field and the reason why a part of it was not checked.
        gateways: The Gateways and GatewayClasses among `objects`.
        services: The namespaces of which the files contain Services; None: every Service is known.
        absent: Kinds of which the files contain no object, so that a missing one may exist in the cluster.
    """

    objects: tuple[KubeObject, ...] = ()
    notes: Mapping[ObjectKey, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    gateways: frozenset[ObjectKey] = frozenset()
    services: frozenset[str] | None = None
    absent: frozenset[str] = frozenset()

    def excuses(self, item: KubeObject, problem: Problem) -> bool:
        """Return whether a problem of an object exists only because something is not among the files."""
        if kind := _missing_kind(problem):
            return kind in self.absent
        if problem.code == "InvalidParameters" and "GatewayProxy" not in problem.message:
            return any(path == "spec.gatewayClassName" for path, _ in self.notes.get(item.meta.key, ()))
        if problem.code == "ServiceNotFound":
            return self.services is not None and item.meta.namespace not in self.services
        return problem.path.startswith(_PARENTS) and any(key in self.gateways for key in _gateways(item))

    def excuse(self, item: KubeObject, problem: Problem) -> str:
        """Return why such a problem may be no mistake: the text of a note, empty if another note says it."""
        if kind := _missing_kind(problem):
            return f"the files contain no {_OFTEN_ELSEWHERE[kind]}"
        return _without_services(item.meta.namespace) if problem.code == "ServiceNotFound" else ""


NOTHING = Assumed()


def assume(objects: Iterable[KubeObject], options: Options) -> Assumed:
    """Return what the objects of files refer to and the files do not contain."""
    items = tuple(objects)
    draft = _Draft({item.meta.key for item in items}, options)
    spaces = {item.meta.namespace for item in items if isinstance(item, Service)}
    for item in items:
        if isinstance(item, CustomObject):
            draft.add_services(item, spaces)
            draft.add_gateways(item)
            draft.note_targets(item)
    for item in items:
        if isinstance(item, CustomObject) and item.meta.kind == "Gateway":
            draft.add_class(item)
    return draft.finish(frozenset(spaces), frozenset(_OFTEN_ELSEWHERE) - {item.meta.kind for item in items})


class _Draft:
    """Collects what is assumed."""

    def __init__(self, known: set[ObjectKey], options: Options) -> None:
        self._known = known
        self._controller = options.ingress_class_controller
        self._nginx = options.nginx
        self._services: dict[ObjectKey, dict[int | str | None, None]] = {}
        self._listeners: dict[ObjectKey, dict[tuple[str, int, str], None]] = {}
        self._classes: set[str] = set()
        self._notes: dict[ObjectKey, dict[tuple[str, str], None]] = {}

    def add_services(self, item: CustomObject, spaces: set[str]) -> None:
        """Add the Services of namespaces of which the files contain no Service."""
        for path, namespace, name, port in _service_references(item.spec, "spec", item.meta.namespace):
            if namespace not in spaces:
                self._services.setdefault(ObjectKey("Service", namespace, name), {})[port] = None
                self._note(item, path, _without_services(namespace))

    def add_gateways(self, item: CustomObject) -> None:
        """Add the Gateways that a route, ListenerSet or Consumer names."""
        for key, reference in _gateways(item).items():
            if key not in self._known:
                port = reference.get("port")
                listener = (str(reference.get("sectionName") or ""), port if isinstance(port, int) else 0)
                self._listeners.setdefault(key, {})[*listener, _PROTOCOLS.get(item.meta.kind, "HTTP")] = None
                path = "spec.parentRef" if "parentRef" in item.spec else _PARENTS
                self._note(item, path, f"{key} is not among the files: its listeners may not accept the object")

    def note_targets(self, policy: CustomObject) -> None:
        """Note the objects that a policy names and that are not among the files."""
        for index, target in enumerate(map(mapping_in, list_in(policy.spec.get("targetRefs")))):
            key = ObjectKey(str(target.get("kind")), policy.meta.namespace, str(target.get("name")))
            if key not in self._known:
                why = f"{key} is not among the files: the policy was not checked with it"
                self._note(policy, f"spec.targetRefs[{index}]", why)

    def add_class(self, gateway: CustomObject) -> None:
        """Add the class of a Gateway."""
        name = gateway.spec.get("gatewayClassName")
        if isinstance(name, str) and ObjectKey("GatewayClass", "", name) not in self._known:
            self._classes.add(name)
            why = f"GatewayClass {name} is not among the files: it may belong to another controller"
            self._note(gateway, "spec.gatewayClassName", why)

    def finish(self, spaces: frozenset[str], absent: frozenset[str]) -> Assumed:
        """Return what was collected."""
        services: list[KubeObject] = [_service(key, ports) for key, ports in sorted(self._services.items())]
        classes = {*self._classes, *([_CLASS] if self._listeners else ())}
        if self._nginx and ObjectKey("IngressClass", "", self._nginx.ingress_class) not in self._known:
            name = self._nginx.ingress_class
            services.append(IngressClass(Meta("IngressClass", "", name), self._nginx.controller_class))
        gateways = [*map(self._class, sorted(classes)), *map(self._gateway, sorted(self._listeners))]
        return Assumed(
            (*services, *gateways),
            {key: tuple(notes) for key, notes in self._notes.items()},
            frozenset(item.meta.key for item in gateways),
            spaces,
            absent,
        )

    def _note(self, item: CustomObject, path: str, why: str) -> None:
        self._notes.setdefault(item.meta.key, {})[path, why] = None

    def _class(self, name: str) -> KubeObject:
        return CustomObject(Meta("GatewayClass", "", name), {"controllerName": self._controller}, {})

    def _gateway(self, key: ObjectKey) -> KubeObject:
        named = [_listener(*each) for each in self._listeners[key]]
        listeners = list({each["name"]: each for each in named}.values())
        spec = {"gatewayClassName": _CLASS, "listeners": listeners, "allowedListeners": _ALL}
        return CustomObject(Meta(*key), spec, {})


_CLASS = "assumed-by-lint"


_OFTEN_ELSEWHERE = {"Secret": "Secrets", "ConfigMap": "ConfigMaps", "GatewayProxy": "GatewayProxies"}
"""Kinds whose objects are often created elsewhere, such as the certificate of a listener, with the plural."""


def _missing_kind(problem: Problem) -> str:
    """Return the kind of an object that may be missing only among the files; empty for any other problem."""
    if problem.code == "SecretNotFound":
        return "Secret"
    if problem.code not in _NAMING or "does not exist" not in problem.message:
        return "ConfigMap" if "NoValidCACertificate" in problem.message else ""
    return next((kind for kind in _OFTEN_ELSEWHERE if f"{kind} " in problem.message), "")


_NAMING = ("InvalidParameters", "ListenerNotReady", "Pending", "UnsupportedPolicy", "UnsupportedProtocol")
"""Codes whose messages name the missing object."""


def _without_services(namespace: str) -> str:
    return f"the files contain no Services of namespace {namespace}"


def _listener(name: str, port: int, protocol: str) -> dict[str, Any]:
    return {
        "name": name or f"{protocol}-{port}".lower(),
        "port": port or _PORTS[protocol],
        "protocol": protocol,
        "allowedRoutes": _ALL,
    }


def _service(key: ObjectKey, ports: Iterable[int | str | None]) -> Service:
    """Return a Service with the ports that are referred to, by number or name."""
    numbers = {port for port in ports if isinstance(port, int)}
    names = sorted(port for port in ports if isinstance(port, str))
    free = (number for number in range(_FIRST_PORT, 2**16) if number not in numbers)
    found = [ServicePort(number) for number in sorted(numbers)]
    found += [ServicePort(number, name) for name, number in zip(names, free, strict=False)]
    return Service(Meta(*key), cluster_ip=_CLUSTER_IP, ports=tuple(found))


def _gateways(item: KubeObject) -> Mapping[ObjectKey, Mapping[str, Any]]:
    """Return the Gateways that a route, ListenerSet or Consumer names, each with its reference."""
    if not isinstance(item, CustomObject):
        return {}
    spec = item.spec
    references = [*list_in(spec.get("parentRefs")), spec.get("parentRef"), spec.get("gatewayRef")]
    found = {}
    for each in map(mapping_in, references):
        name, namespace = each.get("name"), each.get("namespace") or item.meta.namespace
        is_gateway = (each.get("group") or GATEWAY_GROUP, each.get("kind") or "Gateway") == (GATEWAY_GROUP, "Gateway")
        if is_gateway and isinstance(name, str) and isinstance(namespace, str):
            found[ObjectKey("Gateway", namespace, name)] = each
    return found


_Reference = tuple[str, str, str, int | str | None]
"""Field, namespace, name and port."""


def _service_references(value: object, path: str, namespace: str) -> Iterator[_Reference]:
    """Yield the references to Services anywhere in a spec, in the forms of all kinds."""
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _service_references(each, f"{path}[{index}]", namespace)
    if not isinstance(value, dict):
        return
    if found := _reference(value, path, namespace):
        yield found
    for name, each in value.items():
        yield from _service_references(each, f"{path}.{name}", namespace)


def _reference(value: Mapping[str, Any], path: str, namespace: str) -> _Reference | None:
    service = value.get("service")
    if isinstance(value.get("serviceName"), str):
        name, port = value["serviceName"], value.get("servicePort")
        namespace = value.get("serviceNamespace") or namespace
    elif isinstance(service, dict):  # the backend of an Ingress
        number = mapping_in(service.get("port"))
        name, port = service.get("name"), number.get("number") or number.get("name")
    elif path.rpartition(".")[2].partition("[")[0] in ("backendRefs", "backendRef"):
        if value.get("group") or value.get("kind", "Service") != "Service":
            return None
        name, port, namespace = value.get("name"), value.get("port"), value.get("namespace") or namespace
    else:
        return None
    if isinstance(name, str) and isinstance(port, int | str | None) and isinstance(namespace, str):
        return path, namespace, name, port
    return None
