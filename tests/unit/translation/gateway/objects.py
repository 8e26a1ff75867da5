"""Objects of the Gateway API for tests."""

from __future__ import annotations

from typing import Any

from apisix_ingress.model.assessment import Assessment
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.world import World
from tests.unit.translation.objects import make

CONTROLLER = "apisix.apache.org/apisix-ingress-controller"
CLASS = make("GatewayClass", "apisix", namespace="", spec={"controllerName": CONTROLLER})


def listener(name: str = "http", port: int = 80, protocol: str = "HTTP", **rest: Any) -> JsonObject:
    return {"name": name, "port": port, "protocol": protocol, **rest}


def secure(name: str = "https", *secrets: str, port: int = 443, **rest: Any) -> JsonObject:
    """Return an HTTPS listener; a reference to a Secret is its name, or namespace/name."""
    refs = [
        dict(zip(("namespace", "name"), each.split("/"), strict=True)) if "/" in each else {"name": each}
        for each in secrets
    ]
    return listener(name, port, "HTTPS", tls={"certificateRefs": refs}, **rest)


def gateway(*listeners: JsonObject, name: str = "gw", **spec: Any) -> JsonObject:
    return make(
        "Gateway", name, spec={"gatewayClassName": "apisix", "listeners": list(listeners or [listener()]), **spec}
    )


def route(
    *rules: JsonObject, kind: str = "HTTPRoute", name: str = "app", namespace: str = "default", **spec: Any
) -> JsonObject:
    parents = {"parentRefs": [{"name": "gw"}]}
    return make(kind, name, namespace=namespace, spec={**parents, **({"rules": list(rules)} if rules else {}), **spec})


def rule(*filters: JsonObject, service: str = "web", **rest: Any) -> JsonObject:
    return {"backendRefs": [{"name": service, "port": 80}], "filters": list(filters), **rest}


def set_of(*listeners: JsonObject, name: str = "set", namespace: str = "default", **parent: Any) -> JsonObject:
    reference = {"name": "gw", "namespace": "default", **parent}
    return make("ListenerSet", name, namespace=namespace, spec={"parentRef": reference, "listeners": list(listeners)})


def assessed(found: World, kind: str, name: str, namespace: str = "default") -> Assessment:
    report = found.reports[ObjectKey(kind, namespace, name)]
    assert report.assessment is not None
    return report.assessment


def verdicts(found: World, kind: str, name: str, namespace: str = "default") -> dict[str, str]:
    """Return type → reason of the conditions of an object, with a leading `!` if the condition is False."""
    return reported(assessed(found, kind, name, namespace).verdicts)


def of_listeners(found: World, kind: str = "Gateway", name: str = "gw") -> dict[str, dict[str, str]]:
    return {each.name: reported(each.verdicts) for each in assessed(found, kind, name).listeners}


def of_parents(
    found: World, kind: str = "HTTPRoute", name: str = "app", namespace: str = "default"
) -> list[dict[str, str]]:
    return [reported(each.verdicts) for each in assessed(found, kind, name, namespace).parents]


def reported(verdicts: Any) -> dict[str, str]:
    return {each.type: each.reason if each.holds else f"!{each.reason}" for each in verdicts}
