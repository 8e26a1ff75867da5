"""Replaces the records of apisix-ingress-controller 2.x, once this controller has written its own for their objects.

Records of 2.x have the kind, namespace and name of their object in their labels, except upstreams, which belong to the
service with their id or in their labels (api7/adc, libs/backend-apisix), and global rules, which have no labels; their
id is the name of their plugin. Only `carry_out` writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

from apisix_ingress.diagnostics.collect.live_records import Snapshot
from apisix_ingress.diagnostics.reports.diff import Wanted
from apisix_ingress.errors import GatewayError, GatewayRejected
from apisix_ingress.gateway.adminapi.client import AdminClient
from apisix_ingress.model.json import FrozenJson, JsonObject, mapping_in
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.records import UPSERT_RANK, Record
from apisix_ingress.model.secrets.redaction import redact_text

_MANAGER, _MANAGED_BY = "manager-by", "apisix-ingress-controller"
_KIND, _NAMESPACE, _NAME = "k8s/kind", "k8s/namespace", "k8s/name"
_SERVICE = "__ADC_UPSTREAM_SERVICE_ID"
_ORDER = (
    *("routes", "stream_routes", "global_rules", "consumers", "consumer_groups"),
    *("plugin_configs", "plugin_metadata", "services", "upstreams", "ssls"),
)
"""Every kind, in the order of deletes: gateways reject the delete of a record that another one refers to."""


Verdict = tuple[Literal["replace", "delete", "keep"], str]
"""What happens to a record, and why."""


class Replacement(NamedTuple):
    """What happens to a record of 2.x, and why."""

    key: RecordKey
    act: Literal["replace", "delete", "keep"]
    why: str


def replacement(wanted: Wanted, snapshot: Snapshot) -> list[Replacement]:
    """Return what happens to each record of 2.x, in the order of requests."""
    found = dict(_judged(wanted, snapshot))
    gone = {key for key, (act, _) in found.items() if act != "keep"}
    found |= _services(snapshot, gone)
    found |= _upstreams(snapshot, found)
    acts = ("replace", "delete", "keep")
    keys = sorted(found, key=lambda key: (acts.index(found[key][0]), _ORDER.index(key.kind), key))
    return [Replacement(key, *found[key]) for key in keys]


async def carry_out(backend: AdminClient, steps: Sequence[Replacement], wanted: Wanted, snapshot: Snapshot) -> None:
    """Replace and delete records as planned.

    Raises:
        GatewayError: A request failed; those before it are done.
    """
    replaced, deleted = ([step.key for step in steps if step.act == act] for act in ("replace", "delete"))
    for key in sorted(replaced, key=lambda each: UPSERT_RANK[each.kind]):
        if (record := wanted.desired.get(key, snapshot.cluster)) is not None:
            await backend.put(record)
    rules = ((key, _rule_with(key.id, wanted, snapshot)) for key in deleted if key.kind == "global_rules")
    successors = {key: rule for key, rule in rules if rule is not None}
    for rule in {each.key: each for each in successors.values()}.values():
        former = [key for key, successor in successors.items() if successor.key == rule.key]
        await _take_over(backend, former, rule, snapshot)
    for key in deleted:
        if key not in successors:
            await _delete(backend, key)


async def _take_over(backend: AdminClient, former: Sequence[RecordKey], rule: Record, snapshot: Snapshot) -> None:
    """Replace global rules by one with their plugins; gateways accept it once no other rule has one of them.

    Requests pass without the plugins for two requests of the Admin API. The former rules return if the new one fails.
    """
    try:
        for key in former:
            await _delete(backend, key)
        await backend.put(rule)
    except GatewayError:
        for key in former:
            await backend.put(Record(key, key.id, {"plugins": snapshot.bodies[key]["plugins"]}))
        raise


def shown(step: Replacement, snapshot: Snapshot) -> JsonObject:
    """Return a step as an item of the document."""
    body = snapshot.bodies[step.key]
    owner, name = _object_of(body), body.get("name") or body.get("username") or ""
    return {
        "record": str(step.key),
        "name": redact_text(str(name)),
        "owner": str(owner) if owner else "",
        "act": step.act,
        "why": step.why,
    }


@retry(
    # A gateway learns from etcd that nothing refers to a record any more; until then it rejects the delete.
    retry=retry_if_exception_type(GatewayRejected),
    stop=stop_after_attempt(5),
    wait=wait_fixed(0.3),
    reraise=True,
)
async def _delete(backend: AdminClient, key: RecordKey) -> None:
    await backend.delete(key)


def _judged(wanted: Wanted, snapshot: Snapshot) -> Iterator[tuple[RecordKey, Verdict]]:
    """Yield the records of 2.x other than services and upstreams."""
    behind = _behind(wanted, snapshot)
    for key, body in snapshot.bodies.items():
        owner = _object_of(body)
        record = wanted.desired.get(key, snapshot.cluster)
        if key.kind == "global_rules" and record is None and _is_of_plugin(key, body):
            if rule := _rule_with(key.id, wanted, snapshot):
                yield key, ("delete", f"{rule.key} of this controller has the same plugin")
        elif owner is None or key.kind in ("services", "upstreams"):
            continue
        elif record is not None:
            yield key, _overwriting(record, wanted, snapshot)
        elif owner not in behind:
            yield key, ("keep", f"{owner} does not exist, or this controller does not serve it")
        elif missing := behind[owner]:
            yield key, ("keep", f"{missing[0]} of {owner} is not written yet: start the controller first")
        else:
            yield key, ("delete", f"the records of {owner} are written")


def _behind(wanted: Wanted, snapshot: Snapshot) -> Mapping[ObjectKey, list[RecordKey]]:
    """Return for each object the desired records that are neither in the gateway nor to be overwritten now."""
    found: dict[ObjectKey, list[RecordKey]] = {}
    for key, owner in wanted.owners.items():
        missing = found.setdefault(owner, [])
        record = wanted.desired.get(key, snapshot.cluster)
        if record is not None and (key not in snapshot.bodies or _is_blocked(record, snapshot)):
            missing.append(key)
    return found


def _overwriting(record: Record, wanted: Wanted, snapshot: Snapshot) -> Verdict:
    if missing := _missing(record, snapshot):
        return "keep", f"its new version needs {missing[0]}, which is not written yet: start the controller first"
    return "replace", f"{wanted.owners[record.key]} needs a record with the same ID"


def _is_blocked(record: Record, snapshot: Snapshot) -> bool:
    """Return whether a record of 2.x has the ID of a record, and cannot be overwritten yet."""
    return _object_of(snapshot.bodies[record.key]) is not None and bool(_missing(record, snapshot))


def _missing(record: Record, snapshot: Snapshot) -> list[RecordKey]:
    return sorted(ref for ref in record.refs if ref not in snapshot.bodies)


def _services(snapshot: Snapshot, gone: Collection[RecordKey]) -> Iterator[tuple[RecordKey, Verdict]]:
    used = {str(body.get("service_id")) for key, body in snapshot.bodies.items() if key not in gone}
    for key, body in _of_kind("services", snapshot):
        if _object_of(body) is not None:
            yield key, ("keep", "a route that stays uses it") if key.id in used else ("delete", "no route uses it")


def _upstreams(snapshot: Snapshot, found: Mapping[RecordKey, Verdict]) -> Iterator[tuple[RecordKey, Verdict]]:
    acts = {key.id: found[key][0] for key, _ in _of_kind("services", snapshot) if key in found}
    for key, body in _of_kind("upstreams", snapshot):
        if act := acts.get(str(mapping_in(body.get("labels")).get(_SERVICE, key.id))):
            yield key, (act, "it belongs to a service of 2.x")


def _of_kind(kind: str, snapshot: Snapshot) -> Iterator[tuple[RecordKey, FrozenJson]]:
    return ((key, body) for key, body in snapshot.bodies.items() if key.kind == kind)


def _object_of(body: FrozenJson) -> ObjectKey | None:
    """Return the object of a record of 2.x; None if another controller created it."""
    labels = mapping_in(body.get("labels"))
    if labels.get(_MANAGER) != _MANAGED_BY or _KIND not in labels:
        return None
    return ObjectKey(*(str(labels.get(name, "")) for name in (_KIND, _NAMESPACE, _NAME)))


def _is_of_plugin(key: RecordKey, body: FrozenJson) -> bool:
    return list(mapping_in(body.get("plugins"))) == [key.id] and not body.get("labels")


def _rule_with(plugin: str, wanted: Wanted, snapshot: Snapshot) -> Record | None:
    """Return the global rule of this controller with a plugin."""
    for key in wanted.owners:
        record = wanted.desired.get(key, snapshot.cluster) if key.kind == "global_rules" else None
        if record is not None and plugin in mapping_in(record.body.get("plugins")):
            return record
    return None
