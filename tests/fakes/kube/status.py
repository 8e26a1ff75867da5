"""Inputs of a status writer in tests."""

from dataclasses import dataclass, field

from apisix_ingress.kube.status.interface import Load
from apisix_ingress.model.condition import Condition
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey


@dataclass
class Wanted:
    """The conditions that objects should have, and the load of the gateways."""

    conditions: dict[ObjectKey, Condition] = field(default_factory=dict)
    load: Load = "idle"
    balancer: list[JsonObject] | None = None
    documents: dict[ObjectKey, JsonObject] = field(default_factory=dict)

    def condition(self, key: ObjectKey) -> Condition | None:
        return self.conditions.get(key)

    def addresses(self, key: ObjectKey) -> list[JsonObject] | None:
        return self.balancer

    def document(self, key: ObjectKey, status: FrozenJson, now: str) -> JsonObject:
        return dict(self.documents.get(key, {}))
