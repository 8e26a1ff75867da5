"""The owners of a gateway cluster's records: managed ones without an object, those of others, and adoptable ones.

Documents for `orphans` and `adopt`. Only `take` writes, and only labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from apisix_ingress.diagnostics.collect.live_records import Snapshot
from apisix_ingress.diagnostics.reports.diff import Wanted, plan_of, table_of, used_records, withheld_deletes
from apisix_ingress.errors import ConfigError
from apisix_ingress.gateway.adminapi.client import AdminClient
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import RECORD_KINDS, ObjectKey, RecordKey
from apisix_ingress.model.names import owner_labels
from apisix_ingress.model.record_owner import origin
from apisix_ingress.model.records import SERVER_FIELDS, UNLABELLED, Record, references
from apisix_ingress.model.secrets.redaction import redact_text

_REFERENCES = {"service_id": "services", "group_id": "consumer_groups"}
"""Fields that refer to records of kinds which this program never writes."""


def orphans(wanted: Wanted, snapshot: Snapshot) -> JsonObject:
    """Return the records without an object.

    Returns:
        `orphans`: managed, without an object; `kept`: the same, but the object cannot be translated or a record that
        stays refers to them; `foreign`: of other owners, or of kinds without labels with an unknown owner;
        `dangling`: references to missing records.
    """
    table = table_of(wanted, snapshot)
    plan = plan_of(wanted, snapshot, table)
    used = used_records(plan, withheld_deletes(plan, wanted, table), wanted, snapshot, table)
    unwanted = {key for key in (*plan.deletes, *plan.held) if wanted.desired.get(key, snapshot.cluster) is None}
    kept = unwanted.intersection((*plan.held, *used))
    strangers = [key for key in sorted(snapshot.bodies) if table.get(key).applied is None]
    return {
        "cluster": snapshot.cluster,
        "url": snapshot.url,
        "orphans": [_shown(key, wanted, snapshot) for key in sorted(unwanted - kept)],
        "kept": [_shown(key, wanted, snapshot) for key in sorted(kept)],
        "foreign": [{**_shown(key, wanted, snapshot), "holder": snapshot.holder(key)} for key in strangers],
        "dangling": list(_dangling(wanted, snapshot)),
    }


def _shown(key: RecordKey, wanted: Wanted, snapshot: Snapshot) -> JsonObject:
    body = snapshot.bodies[key]
    owner: ObjectKey | None = wanted.owners.get(key) or origin(key, body)
    name = body.get("name") or body.get("username") or ""
    return {"record": str(key), "name": redact_text(str(name)), "owner": str(owner) if owner else ""}


def _dangling(wanted: Wanted, snapshot: Snapshot) -> Iterator[JsonObject]:
    for key, body in sorted(snapshot.bodies.items()):
        for target in dict.fromkeys(_named(key, body)):
            if target not in snapshot.bodies and target.kind not in snapshot.disabled:
                yield {**_shown(key, wanted, snapshot), "missing": str(target)}


def _named(key: RecordKey, body: FrozenJson) -> Iterator[RecordKey]:
    yield from references(key.kind, body)
    for field, kind in _REFERENCES.items():
        if (id_ := body.get(field)) is not None:
            named: Any = kind
            yield RecordKey(named, str(id_))


# Adopting.


def parse_keys(names: Iterable[str]) -> list[RecordKey]:
    """Return the records that arguments name as `routes/46eb0e41`.

    Raises:
        ConfigError: An argument has another form, or the kind is unknown.
    """
    found = []
    for name in names:
        kind, _, id_ = name.partition("/")
        known = next((each for each in RECORD_KINDS if each == kind), None)
        if known is None or not id_:
            raise ConfigError(
                f"{name}: write kind and id, such as routes/46eb0e41; kinds are {', '.join(RECORD_KINDS)}"
            )
        found.append(RecordKey(known, id_))
    return list(dict.fromkeys(found))


def adoptions(keys: Iterable[RecordKey], wanted: Wanted, snapshot: Snapshot) -> list[JsonObject]:
    """Return for each record the effect of adopting it: `act` adopt, nothing or refuse, and `why`.

    Raises:
        ConfigError: The gateway has no such record.
    """
    found = []
    for key in keys:
        if key not in snapshot.bodies:
            raise ConfigError(f"{key}: cluster {snapshot.cluster} has no such record; see `apisix-ingress orphans`")
        act, why = _adoption(key, wanted, snapshot)
        found.append({**_shown(key, wanted, snapshot), "act": act, "why": why})
    return found


def _adoption(key: RecordKey, wanted: Wanted, snapshot: Snapshot) -> tuple[str, str]:
    holder = snapshot.holder(key)
    record = wanted.desired.get(key, snapshot.cluster)
    if holder == snapshot.controller:
        return "nothing", "already managed"
    if holder:
        return "refuse", f"belongs to controller {holder}: stop that controller or change its class first"
    if record is None:
        return "refuse", "no object needs it, so the controller would delete it: add the manifests of its object"
    if key.kind in UNLABELLED:
        return "nothing", "its kind has no labels: the controller adopts it automatically because an object needs it"
    if key.kind == "consumers":
        return "refuse", "its credentials would have to be rewritten: delete it, and the controller creates its own"
    return "adopt", _afterwards(key, record, wanted, snapshot)


def _afterwards(key: RecordKey, record: Record, wanted: Wanted, snapshot: Snapshot) -> str:
    """Return what the controller does with a record once it is managed."""
    body = {**snapshot.bodies[key], "labels": _labels(key, snapshot)}
    if Record(key, record.name, body).digest in (record.digest, *snapshot.kept.get(key, ())):
        return f"it then equals the desired record of {wanted.owners[key]}"
    return f"the controller then overwrites it with the desired record of {wanted.owners[key]}"


async def take(backend: AdminClient, key: RecordKey, snapshot: Snapshot) -> None:
    """Write the controller's labels to a record, and keep the rest of it.

    Raises:
        GatewayError: It failed.
    """
    if key.kind != "stream_routes":
        await backend.label(key, owner_labels(snapshot.controller))
        return
    # Gateways cannot patch stream routes, but return all of their fields, so that they can be replaced.
    body = {name: value for name, value in snapshot.bodies[key].items() if name not in SERVER_FIELDS}
    await backend.put(Record(key, str(body.get("name") or ""), {**body, "labels": _labels(key, snapshot)}))


def _labels(key: RecordKey, snapshot: Snapshot) -> JsonObject:
    labels = snapshot.bodies[key].get("labels")
    return {**(labels if isinstance(labels, dict) else {}), **owner_labels(snapshot.controller)}
