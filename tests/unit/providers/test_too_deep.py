"""Objects that are nested too deeply: their status reports it, and the previous version stays in effect."""

import random
from typing import Any

import pytest

from apisix_ingress.kube.informer.store_writer import StoreWriter
from apisix_ingress.kube.informer.watch_events import ReflectorObserver
from apisix_ingress.model.condition import Condition, aborted
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.gateway_api import GATEWAY_KINDS
from apisix_ingress.model.kinds.table import CUSTOM_GROUP, RESOURCES
from apisix_ingress.state.world import World
from providers.core.deps import ChangeSink
from providers.core.registry import Registry, resources
from providers.status.conditions import Conditions
from tests.fakes.clock import FakeClock
from translation.core.options import Options

KINDS = sorted(
    kind for kind, resource in RESOURCES.items() if resource.group == CUSTOM_GROUP and kind not in GATEWAY_KINDS
)
RULE = {"name": "r", "match": {"paths": ["/a"]}, "upstreams": [{"name": "one"}]}
GOOD: dict[str, JsonObject] = {
    "ApisixRoute": {"http": [RULE]},
    "ApisixUpstream": {"externalNodes": [{"type": "Domain", "name": "a.example.com"}]},
    "ApisixTls": {"hosts": ["a.example.com"], "secret": {"name": "none", "namespace": "default"}},
    "ApisixConsumer": {"authParameter": {"keyAuth": {"value": {"key": "canary"}}}},
    "ApisixConsumerGroup": {"plugins": [{"name": "cors", "enable": True}]},
    "ApisixSecretManager": {"type": "vault", "config": {}},
    "ApisixProto": {"content": "message Empty {}"},
    "ApisixPluginConfig": {"plugins": [{"name": "cors", "enable": True}]},
    "ApisixGlobalRule": {"plugins": [{"name": "cors", "enable": True}]},
    "ApisixClusterConfig": {"monitoring": {"prometheus": {"enable": True}}},
}
DEEP: Any = []
for _ in range(250):
    DEEP = [DEEP]


class DepthHarness:
    """The world, and how one object gets into it."""

    def __init__(self, kind: str) -> None:
        self.world = World(resources(Options()))
        self.registry = Registry(self.world, Options(), ChangeSink(), clock=FakeClock(), rng=random.Random(0))
        self.conditions = Conditions(self.world, [])
        resource = RESOURCES[kind]
        self.intake = StoreWriter(
            resource,
            self.world.stores[kind],
            observer=ReflectorObserver(),
            silent=lambda item: None,
            yield_every=1,
        )
        self.key = ObjectKey(kind, "default" if resource.namespaced else "", "default")

    def put(self, spec: JsonObject, generation: int, status: Any = None) -> Condition | None:
        _, namespace, name = self.key
        meta = {"name": name, "namespace": namespace, "uid": "u", "resourceVersion": str(generation)}
        item = self.intake.decode({"metadata": {**meta, "generation": generation}, "spec": spec, "status": status})
        assert item is not None
        self.intake.put(item)
        self.registry.settle()
        return self.conditions.of(self.key)

    @property
    def records(self) -> dict[RecordKey, bytes]:
        return {key: record.payload for key, record in self.world.desired.of_owner(self.key).items()}


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_generation_that_could_be_read_stays_in_effect(kind: str) -> None:
    harness = DepthHarness(kind)
    first = harness.put(GOOD[kind], 1)
    records = harness.records
    for generation in (2, 3):
        got = harness.put({**GOOD[kind], "x": DEEP}, generation)
        assert got is not None
        want = f"generation {generation} cannot be read (nested deeper than 200 levels): generation 1 stays in effect; "
        assert (got.status, got.generation, got.message[: len(want)]) == ("False", generation, want)
        assert harness.records == records
    fixed = harness.put(GOOD[kind], 4)
    assert first is not None
    assert fixed is not None
    assert (fixed.status, fixed.message) == (first.status, first.message)


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_that_never_was_read_keeps_what_gateways_have(kind: str) -> None:
    harness = DepthHarness(kind)
    message = (
        "generation 7 cannot be read (nested deeper than 200 levels): its records in the gateways stay as they are"
    )
    assert harness.put({**GOOD[kind], "x": DEEP}, 7) == aborted(7, f"{message}; flatten the object")
    assert harness.records == {}
    name = "default_default_r" if kind == "ApisixRoute" else "default_default"
    id_ = harness.world.ids.id_of("routes", name)
    is_held = harness.world.desired.is_held(RecordKey("routes", id_), name)
    assert is_held or kind in ("ApisixClusterConfig", "ApisixSecretManager")
    assert harness.put(GOOD[kind], 8) != aborted(7, f"{message}; flatten the object")


def test_a_status_that_is_too_deep_is_not_read() -> None:
    harness = DepthHarness("ApisixRoute")
    got = harness.put(GOOD["ApisixRoute"], 1, {"conditions": [DEEP]})
    assert got is not None
    assert "cannot be read" in got.message


def test_references_to_unread_objects_are_reported() -> None:
    """Its settings must not be treated as empty."""
    harness = DepthHarness("ApisixUpstream")
    harness.put({"scheme": "https", "x": DEEP}, 1)
    upstream = harness.world.stores["ApisixUpstream"].get(harness.key)
    assert upstream is not None
    from crds import SpecError, parse_spec

    with pytest.raises(SpecError, match="nested deeper"):
        parse_spec("ApisixUpstream", upstream.spec)
