"""An offline controller for golden tests: objects in, records and problems out, through the product's providers.

Only the gateway is simulated: a mapping that keeps held and needed records.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.state.world import World
from providers.core.deps import ChangeSink
from providers.core.registry import Registry, resources
from tests.relisting import relist
from translation.core.options import Options

CLUSTER = "default"


@dataclass(frozen=True)
class Outcome:
    """The final content of a gateway, and the problems of objects."""

    records: Mapping[RecordKey, Record]
    problems: Mapping[ObjectKey, tuple[Problem, ...]]
    """Every translated object, with its problems."""


def settle(objects: Iterable[JsonObject], options: Options) -> Outcome:
    """Return the outcome of a new controller with an empty gateway for some objects."""
    return Driver(options).apply(objects)


class Driver:
    """A controller with memory, for objects that change."""

    def __init__(self, options: Options) -> None:
        self._resources = {resource.kind: resource for resource in resources(options)}
        self._world = World(self._resources.values())
        self._registry = Registry(self._world, options, ChangeSink(), clock=MonotonicClock(), rng=random.Random(0))
        self._gateway: dict[RecordKey, Record] = {}

    @property
    def world(self) -> World:
        """The memory of the controller."""
        return self._world

    def apply(self, objects: Iterable[JsonObject]) -> Outcome:
        """Update the state to these objects, and the gateway to their records."""
        found: dict[str, list[KubeObject]] = {kind: [] for kind in self._resources}
        for raw in objects:
            if raw["kind"] in found:
                found[raw["kind"]].append(self._resources[raw["kind"]].decode(raw))
        for kind, items in found.items():
            relist(self._world.stores[kind], items)
        self._registry.settle()
        self._sync()
        problems = {owner: report.problems for owner, report in self._world.reports.items()}
        return Outcome(dict(self._gateway), problems)

    def _sync(self) -> None:
        """Write desired records; delete others unless they are held or a remaining record refers to them."""
        desired = self._world.desired
        wanted = desired.records(CLUSTER)
        for key, record in wanted.items():
            if key in self._gateway or not record.existing_only:
                self._gateway[key] = record
        stay = {key for key, record in self._gateway.items() if key in wanted or desired.is_held(key, record.name)}
        for key in tuple(stay):
            stay |= self._gateway[key].refs
        self._gateway = {key: record for key, record in self._gateway.items() if key in stay}
