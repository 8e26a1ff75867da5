"""Conflicting objects of several tenants: their age, their class, and their manifest."""

from __future__ import annotations

from dataclasses import dataclass

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from tests.unit.translation.objects import make

TENANTS = ("red", "green", "blue")
HOSTS = ("a.com", "b.com", "*.com")
SHUFFLES = 50


@dataclass(frozen=True, kw_only=True)
class Wanting:
    """An object with its age and hosts; a foreign one is an Ingress of another class."""

    namespace: str
    name: str
    kind: str
    day: int
    hosts: tuple[str, ...]
    foreign: bool

    @property
    def age(self) -> tuple[int, str, str, str]:
        """The older of two is the smaller one."""
        return (self.day, self.namespace, self.name, self.kind)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.kind, self.namespace, self.name)

    def with_spec(self, spec: JsonObject) -> JsonObject:
        """Return the manifest; that of an Ingress has a class."""
        if self.kind == "Ingress":
            spec = {"ingressClassName": "nginx" if self.foreign else "apisix", **spec}
        raw = make(self.kind, self.name, namespace=self.namespace, spec=spec)
        raw["metadata"]["creationTimestamp"] = f"2026-01-{self.day:02}T00:00:00Z"
        return raw
