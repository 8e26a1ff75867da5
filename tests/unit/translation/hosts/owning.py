"""Objects with hosts, and their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.world import World
from tests.unit.translation.objects import OPTIONS, make, pem, secret, service
from tests.unit.translation.settling import settle

STRICT = replace(OPTIONS, host_ownership="namespace")


def born(raw: JsonObject, day: int) -> JsonObject:
    return {**raw, "metadata": {**raw["metadata"], "creationTimestamp": f"2026-01-{day:02}T00:00:00Z"}}


def route(
    namespace: str,
    day: int,
    *hosts: str,
    name: str = "web",
    annotations: Mapping[str, str] | None = None,
    **rule: Any,
) -> JsonObject:
    match = {"hosts": [*hosts], "paths": ["/*"]}
    item = {"name": "r", "match": match, "backends": [{"serviceName": "web", "servicePort": 80}], **rule}
    spec = {"http": [item]}
    return born(make("ApisixRoute", name, namespace=namespace, spec=spec, annotations=annotations), day)


def namespace(name: str, hosts: str) -> JsonObject:
    raw = make("Namespace", name, annotations={"apisix.apache.org/hosts": hosts, "other": "text"})
    del raw["metadata"]["namespace"]
    return raw


def surroundings(objects: Sequence[JsonObject]) -> list[JsonObject]:
    found = dict.fromkeys(raw["metadata"].get("namespace", "default") for raw in objects)
    pairs = [secret("pair", namespace=each, tls__crt=pem().certificate, tls__key=pem().key) for each in found]
    return [*(service(namespace=each) for each in found), *pairs, *objects]


def settled(*objects: JsonObject) -> World:
    return settle(*surroundings(objects), options=STRICT)


def key(raw: JsonObject) -> ObjectKey:
    return ObjectKey(raw["kind"], raw["metadata"]["namespace"], raw["metadata"]["name"])


def hosts(found: World, raw: JsonObject) -> list[str]:
    """Return the published hosts of an object."""
    got: list[str] = []
    for record in found.desired.of_owner(key(raw)).values():
        body = record.body
        got += [body["host"]] if "host" in body else body.get("hosts") or body.get("snis") or [body.get("sni", "")]
    return sorted(got)


def reported(found: World, raw: JsonObject) -> list[str]:
    return [str(problem) for problem in found.reports[key(raw)].problems if problem.severity != "warning"]
