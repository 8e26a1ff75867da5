"""One pass from objects to records without a cluster and without a gateway: the output of `translate`.

It runs the stores and providers of the controller.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.comparison.adoption import fitting
from apisix_ingress.kube.manifests.loader import LoadResult
from apisix_ingress.kube.manifests.unknown_fields import remedy
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import RECORD_KINDS, ObjectKey, RecordKey
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import WITHOUT_ID, Record
from apisix_ingress.model.secrets.fields import is_private_key
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.state.desired import Desired
from apisix_ingress.state.ids.adopted_ids import AdoptedIds
from apisix_ingress.state.world import World
from crds import KINDS
from providers.core.deps import ChangeSink
from providers.core.registry import Registry, resources
from translation.core.options import Options
from translation.serving import why_left_out

HIDDEN = "[private key hidden: --show-secrets]"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The records of the objects, and the problems of each object."""

    records: tuple[Record, ...]
    problems: tuple[tuple[ObjectKey, Problem], ...]
    left_out: Mapping[ObjectKey, str]
    """Objects that are not served, and why."""
    owners: Mapping[RecordKey, ObjectKey]
    """The owner of each record; if there are several, the one that wins."""
    world: World = field(repr=False)
    """The stores, desired records and reports behind it."""

    @property
    def wanted(self) -> Desired:
        """The records in the form a plan uses, and which other records have to stay."""
        return self.world.desired

    def bodies(self) -> dict[RecordKey, FrozenJson]:
        """Return the bodies of the records by key."""
        return {record.key: record.body for record in self.records}


def settle(objects: Iterable[KubeObject], options: Options) -> Outcome:
    """Translate objects until nothing changes; objects of unknown kinds are ignored."""
    world = World(resources(options), wide_ids=options.record_ids == "wide")
    registry = Registry(world, options, ChangeSink(), clock=MonotonicClock(), rng=random.Random(0))
    _fill(world, objects)
    registry.settle()
    wanted = world.desired.keys()
    owners = {key: owner for key in wanted for owner in world.desired.owners_of(key)[:1]}
    return Outcome(_records(world), _problems(world), dict(_left_out(world, options)), owners, world)


def overlaid(live: Iterable[KubeObject], given: Iterable[KubeObject]) -> tuple[KubeObject, ...]:
    """Return the objects of a cluster as they would be with the given ones applied."""
    objects = {item.meta.key: item for item in live}
    objects |= {item.meta.key: _aged(item, objects.get(item.meta.key)) for item in given}
    return tuple(objects.values())


def _aged(item: KubeObject, current: KubeObject | None) -> KubeObject:
    """Return an object with the age of its current version, which decides conflicts."""
    if current is None or not isinstance(item, CustomObject):
        return item
    return replace(item, meta=replace(item.meta, created=current.meta.created, uid=current.meta.uid))


def stored(objects: Iterable[KubeObject], options: Options) -> World:
    """Return the stores with some objects, without translating them."""
    world = World(resources(options))
    _fill(world, objects)
    return world


def _fill(world: World, objects: Iterable[KubeObject]) -> None:
    for item in objects:
        store = world.stores.get(item.meta.kind)
        if store is not None:
            store.set(item)


def follow_gateway(world: World, options: Options, cluster: str, held: Mapping[RecordKey, ObservedRecord]) -> bool:
    """Assign the ids that a gateway cluster has to names, like a controller; return whether any changed."""
    registry = Registry(world, options, ChangeSink(), clock=MonotonicClock(), rng=random.Random(0))
    world.ids.settle()
    before, names = world.ids.changes, {key: found.name for key, found in held.items()}
    fits = fitting(world.ids, world.desired, cluster, held)
    for _ in AdoptedIds(world.ids, names, written=lambda key: (), proven=set(), fits=fits).steps():
        pass
    registry.settle()
    return world.ids.changes != before


def document(outcome: Outcome, loaded: LoadResult, *, show_secrets: bool = False) -> JsonObject:
    """Return the document that `translate -o json` prints: bodies as sent, lists sorted by id.

    Args:
        outcome: Records, and problems of objects.
        loaded: Problems of the files; such a problem has no object, its path is the file.
        show_secrets: Include private keys.
    """
    records: dict[str, list[JsonObject]] = {kind: [] for kind in sorted(RECORD_KINDS)}
    for record in sorted(outcome.records, key=lambda item: item.key):
        body = dict(record.body) if show_secrets else _without_private_keys(record.body)
        records[record.key.kind].append({"id": record.key.id, **body} if _is_nameless(record) else body)
    of_files = [_shown("", "ManifestInvalid", error.file, error.message) for error in loaded.errors]
    of_files += [_shown("", "KindNotRead", error.file, error.message) for error in loaded.unread]
    found = (*outcome.problems, *misspelt(outcome, loaded))
    of_objects = [_shown(str(owner), item.code, item.path, item.message) for owner, item in found]
    return {"records": records, "problems": [*of_files, *of_objects]}


def complaints(outcome: Outcome, loaded: LoadResult) -> Iterator[str]:
    """Yield a line for each problem of the document."""
    for error in (*loaded.errors, *loaded.unread):
        yield f"error: {error}"
    for owner, problem in (*outcome.problems, *misspelt(outcome, loaded)):
        yield f"{problem.severity}: {owner}: {problem}"


def warnings(outcome: Outcome, loaded: LoadResult) -> Iterator[str]:
    """Yield a line for each item that has no record and is not a problem."""
    for path in loaded.empty:
        yield f"warning: no objects in {path}"
    for name, count in sorted(loaded.ignored.items()):
        advice = remedy(*name.rsplit("/", 1))
        objects = f"{count} object{'s' if count > 1 else ''} skipped"
        yield f"warning: {name} is not a supported kind: {objects}{f'; {advice}' if advice else ''}"
    for owner, why in outcome.left_out.items():
        yield f"warning: {owner}: skipped: {why}"


def misspelt(outcome: Outcome, loaded: LoadResult) -> Iterator[tuple[ObjectKey, Problem]]:
    """Yield a problem for each field without effect; CRDs of other controllers may have other fields."""
    for each in loaded.unknown:
        if each.key not in outcome.left_out or each.key.kind not in KINDS:
            yield each.key, Problem("UnknownField", each.message, each.path, "warning")


def _left_out(world: World, options: Options) -> Iterator[tuple[ObjectKey, str]]:
    view = world.view()
    for store in world.stores.values():
        for item in store.values():
            if isinstance(item, CustomObject) and (why := why_left_out(item, view, options)):
                yield item.meta.key, why


def _records(world: World) -> tuple[Record, ...]:
    """Return every record that wins its key, once per distinct body."""
    desired, wanted = world.desired, world.desired.keys()
    winners = (desired.of_owner(owner)[key] for key in wanted for owner in desired.owners_of(key)[:1])
    return tuple(record for record in winners if not record.existing_only)


def _problems(world: World) -> tuple[tuple[ObjectKey, Problem], ...]:
    return tuple((owner, problem) for owner, report in sorted(world.reports.items()) for problem in report.problems)


def _is_nameless(record: Record) -> bool:
    """Whether the body does not contain the id of the record."""
    return record.key.kind in WITHOUT_ID


def _shown(owner: str, code: str, path: str, message: str) -> JsonObject:
    return {"object": owner, "code": code, "path": path, "message": message}


def _without_private_keys(body: FrozenJson) -> JsonObject:
    return {
        name: HIDDEN if value and is_private_key(name, body) else _without_inner_keys(value)
        for name, value in body.items()
    }


def _without_inner_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return _without_private_keys(value)
    if isinstance(value, list):
        return [_without_inner_keys(item) for item in value]
    return HIDDEN if isinstance(value, str) and " PRIVATE KEY-----" in value else value
