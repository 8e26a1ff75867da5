"""An offline controller for golden tests: objects in, records and problems out, through the product's translators.

It stands where the providers and the sync engine stand in the product: translations are repeated until nothing wakes
another one, and a gateway is a mapping that keeps what is held or still needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, Read, RecordKey
from apisix_ingress.model.kube import KubeObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.model.resources import RESOURCES
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.view import TrackingView
from apisix_ingress.state.world import World
from translation.context import Options
from translation.ingress import translate_ingress
from translation.ownership import is_ours
from translation.plugin_config import translate_plugin_config
from translation.result import NOTHING, Translation
from translation.route import translate_route
from translation.service import translate_service
from translation.upstream import translate_upstream

TRANSLATORS: Mapping[str, Callable[[Any, TrackingView, Options], Translation]] = {
    "ApisixRoute": translate_route,
    "ApisixUpstream": translate_upstream,
    "ApisixPluginConfig": translate_plugin_config,
    "Ingress": translate_ingress,
}

CLUSTER = "default"


@dataclass(frozen=True)
class Outcome:
    """What a gateway has once everything has settled, and what is wrong with whom."""

    records: Mapping[RecordKey, Record]
    problems: Mapping[ObjectKey, tuple[Problem, ...]]
    """Every object of ours that was translated, with its problems."""


def settle(objects: Iterable[JsonObject], options: Options) -> Outcome:
    """Return what a fresh controller with an empty gateway makes of some objects."""
    return Driver(options).apply(objects)


class Driver:
    """A controller with memory, for objects that change."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._world = World(RESOURCES.values())
        self._world.listen(self._changed)
        self._queue: dict[ObjectKey, None] = {}
        self._problems: dict[ObjectKey, tuple[Problem, ...]] = {}
        self._gateway: dict[RecordKey, Record] = {}

    def apply(self, objects: Iterable[JsonObject]) -> Outcome:
        """Make the world equal to these objects, and the gateway equal to what they ask for."""
        found: dict[str, list[KubeObject]] = {kind: [] for kind in RESOURCES}
        for raw in objects:
            if raw["kind"] in found:
                found[raw["kind"]].append(RESOURCES[raw["kind"]].decode(raw))
        for kind, items in found.items():
            self._world.stores[kind].replace(items)
        for _ in range(10_000):
            if not self._queue:
                break
            self._reconcile(next(iter(self._queue)))
        else:
            raise RuntimeError("translations keep waking each other")
        self._sync()
        return Outcome(dict(self._gateway), dict(self._problems))

    def _changed(self, read: Read) -> None:
        owners = [*self._world.dependents.of(read), *([read] if isinstance(read, ObjectKey) else [])]
        self._queue.update(dict.fromkeys(owner for owner in owners if owner.kind in (*TRANSLATORS, "Service")))

    def _reconcile(self, key: ObjectKey) -> None:
        del self._queue[key]
        item = self._world.stores[key.kind].get(key)
        view = self._world.view()
        translation = self._translate(key, item, view)
        self._world.dependents.record(key, view.reads)
        if translation is None:
            self._problems.pop(key, None)
        else:
            self._problems[key] = translation.problems
        self._apply(Claimant(item.meta.created if item else "", key), translation or NOTHING)

    def _translate(self, key: ObjectKey, item: Any, view: TrackingView) -> Translation | None:
        if key.kind == "Service":
            return translate_service(key, item, view, self._options) if view.claims_on(key) else None
        if item is None or not is_ours(item, view, self._options):
            return None
        return TRANSLATORS[key.kind](item, view, self._options)

    def _apply(self, claimant: Claimant, translation: Translation) -> None:
        world, owner = self._world, claimant.owner
        claims = translation.claims
        if translation.failed:
            world.desired.hold(owner, translation.holds)
            if any(not claim.weak for claim in world.claims.claims_of(owner)):
                return
            claims = tuple(replace(claim, weak=True) for claim in claims)
        else:
            world.desired.hold(owner, ())
            world.desired.replace(claimant, translation.published(world.desired.of_owner(owner)))
        self._queue.update(dict.fromkeys(world.claims.replace(claimant, claims)))

    def _sync(self) -> None:
        """Write what is wanted; delete what is not, unless it is held or a record that stays names it."""
        desired = self._world.desired
        wanted = desired.records(CLUSTER)
        for key, record in wanted.items():
            if key in self._gateway or not record.existing_only:
                self._gateway[key] = record
        stay = {key for key, record in self._gateway.items() if key in wanted or desired.is_held(key, record.name)}
        for key in tuple(stay):
            stay |= self._gateway[key].refs
        self._gateway = {key: record for key, record in self._gateway.items() if key in stay}
