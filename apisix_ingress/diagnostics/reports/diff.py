"""What a sync would write to a gateway cluster, as a document: the sync engine's own plan, with both bodies.

Nothing is sent. The document is what `diff -o json` prints; secrets are masked before values are compared for display.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from apisix_ingress.diagnostics.collect.live_records import Snapshot
from apisix_ingress.gateway.sync.plan import Plan, decide, explained, unusual
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import Secret
from apisix_ingress.model.record_owner import origin
from apisix_ingress.model.records import UNLABELLED, comparable, references
from apisix_ingress.model.secrets.fields import Place, hides_item, place_of
from apisix_ingress.model.secrets.redaction import masked as without_secrets
from apisix_ingress.model.secrets.redaction import redact_text
from apisix_ingress.model.secrets.value_mask import ValueMask, secret_values
from apisix_ingress.state.desired import Desired

HIDDEN = "[hidden]"
DIFFERS = "[hidden, differs]"
"""Shown for a desired secret that differs from the gateway's."""

SWEEP = (
    "bulk delete held back: this process has not seen the objects of unusually many records; if the"
    " objects were removed on purpose, delete the records through the Admin API"
)
FOREIGN = "the id belongs to a record of another owner: adopt it with `apisix-ingress adopt`, or delete it"
KEPT = "its object cannot be translated, so its records stay"
USED = "{} stays and refers to it"
NO_LEDGER = (
    "only the ledger at the API server knows which global rules and plugin metadata are managed: unneeded ones"
    " are not listed here"
)
DISABLED = "the gateway does not serve this kind"
ALONE = (
    "compared as if these files were the whole cluster, because there are no API server credentials; {}"
    " left out: pass --kubeconfig FILE to compare with the cluster, or --prune to delete them as well"
)

REJECTED_ELSEWHERE = (
    "records of objects that are not in the manifests and that the gateway rejects: {}; list them without -f"
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The desired content of the gateway.

    Attributes:
        desired: The records.
        owners: The owner of each.
        ledger: The managed records without labels; None if unknown.
        known: The objects that were read, if records of others must be left out; None: every record is compared.
        given: The objects of manifests that are laid over those of the API server; None: there are none.
    """

    desired: Desired
    owners: Mapping[RecordKey, ObjectKey]
    ledger: Collection[RecordKey] | None = None
    known: Collection[ObjectKey] | None = None
    given: Collection[ObjectKey] | None = None

    def is_of_others(self, key: RecordKey) -> bool:
        """Return whether a record belongs to an object that is not in the manifests; hosts may belong to both."""
        owner = self.owners.get(key)
        return self.given is not None and owner is not None and owner.kind in RESOURCES and owner not in self.given


def difference(wanted: Wanted, snapshot: Snapshot) -> JsonObject:
    """Return what a sync would write, in its order.

    Returns:
        `cluster`, `url`, `version`, `changes` (each with `act`, `record`, `name`, `owner`, `why`, `before`, `after`),
        `counts` by act, `unchanged` and `notes`.
    """
    table = table_of(wanted, snapshot)
    compared = compared_records(wanted, snapshot, table)
    found = plan_of(wanted, snapshot, table)
    elsewhere = {key for key in found.upserts if key in snapshot.rejected and wanted.is_of_others(key)}
    changes = list(_changes(found, wanted, snapshot, table, left_out=elsewhere))
    acts = [change["act"] for change in changes]
    touched = {*found.upserts, *found.deletes, *found.held, *found.refused}
    return {
        "cluster": snapshot.cluster,
        "url": snapshot.url,
        "version": snapshot.version,
        "changes": changes,
        "counts": {act: acts.count(act) for act in dict.fromkeys(acts)},
        "unchanged": len((table.records() & compared) - touched),
        "notes": [
            *_notes(found, wanted, snapshot, left_out=len(table.records() - compared)),
            *([REJECTED_ELSEWHERE.format(len(elsewhere))] if elsewhere else []),
        ],
    }


def plan_of(wanted: Wanted, snapshot: Snapshot, table: RecordTable) -> Plan:
    """Return the engine's plan for the compared records of a cluster."""
    keys = compared_records(wanted, snapshot, table)
    wanted_at = partial(wanted.desired.get, cluster=snapshot.cluster)
    return Plan.of(((key, decide(key, wanted_at, table, wanted.desired.is_held)) for key in keys), wanted_at)


def compared_records(wanted: Wanted, snapshot: Snapshot, table: RecordTable) -> frozenset[RecordKey]:
    """Return the records to compare: the desired ones, and those in the gateway whose objects were read."""
    there, known = table.records(), wanted.known
    if known is not None:
        there = {key for key in there if origin(key, snapshot.bodies[key]) in known}
    return frozenset(there).union(wanted.desired.keys())


def table_of(wanted: Wanted, snapshot: Snapshot) -> RecordTable:
    """Return the gateway's records as the engine takes them over.

    Managed ones, and desired ones of kinds without labels.
    """
    listing = snapshot.listing(wanted.ledger or ())
    unclaimed = (key for key in listing.unclaimed if wanted.desired.get(key, snapshot.cluster) is not None)
    table = RecordTable()
    for key, found in {**listing.owned, **{key: listing.unclaimed[key] for key in unclaimed}}.items():
        table.found(table.slot(key), found)
    for key in listing.foreign:
        table.foreign(table.slot(key))
    return table


def _changes(
    found: Plan, wanted: Wanted, snapshot: Snapshot, table: RecordTable, *, left_out: Collection[RecordKey]
) -> Iterator[JsonObject]:
    withheld = withheld_deletes(found, wanted, table)
    used = used_records(found, withheld, wanted, snapshot, table)
    for key in (key for key in found.upserts if key not in left_out):
        act = "update" if table.get(key).applied is not None else "create"
        if key in snapshot.rejected:
            yield _change("reject", key, wanted, snapshot, snapshot.rejected[key])
        else:
            yield _change(act, key, wanted, snapshot, DISABLED if key.kind in snapshot.disabled else "")
    for key in found.deletes:
        if key in withheld:
            yield _change("hold", key, wanted, snapshot, SWEEP)
        elif key in used:
            yield _change("keep", key, wanted, snapshot, USED.format(used[key]))
        else:
            yield _change("delete", key, wanted, snapshot)
    for key in sorted(found.held):
        yield _change("keep", key, wanted, snapshot, KEPT)
    for key in sorted(found.refused):
        yield _change("refuse", key, wanted, snapshot, FOREIGN)


def withheld_deletes(found: Plan, wanted: Wanted, table: RecordTable) -> frozenset[RecordKey]:
    """Return the deletes of a plan that the engine holds back because they are unusually many."""
    return unusual(found.deletes, explained(found.deletes, table, wanted.desired.is_refused), len(table.records()))


def used_records(
    found: Plan, withheld: Collection[RecordKey], wanted: Wanted, snapshot: Snapshot, table: RecordTable
) -> dict[RecordKey, RecordKey]:
    """Return the deletes that are not sent: record → a record that stays and refers to it.

    The engine waits for its own records. The gateway checks those of other clients.
    """
    others = _other_referrers(snapshot, table)
    written = {key: record for key in found.upserts if (record := wanted.desired.get(key, snapshot.cluster))}
    gone = set(found.deletes).difference(withheld)
    used: dict[RecordKey, RecordKey] = {}
    for key in found.deletes:
        ours = (each for each in table.referrers(key) if each not in gone)
        ours = (each for each in ours if each not in written or key in written[each].refs)
        if (referrer := min((*others.get(key, ()), *ours), default=None)) is not None:
            used[key] = referrer
            gone.discard(key)
    return used


def _other_referrers(snapshot: Snapshot, table: RecordTable) -> dict[RecordKey, list[RecordKey]]:
    """Return the records of other clients because of which the gateway rejects a delete: record → its referrers.

    It checks no stream routes, and the plugins of every kind (APISIX 3.18, admin/upstreams.lua).
    """
    found: dict[RecordKey, list[RecordKey]] = {}
    for key, body in snapshot.bodies.items():
        if key.kind != "stream_routes" and table.get(key).applied is None:
            for target in references("routes", body):
                found.setdefault(target, []).append(key)
    return found


def _change(act: str, key: RecordKey, wanted: Wanted, snapshot: Snapshot, why: str = "") -> JsonObject:
    record = wanted.desired.get(key, snapshot.cluster)
    there = snapshot.bodies.get(key)
    secrets = record.secrets if record else ()
    before, after = masked(key.kind, there, record.body if record else None, key.id, secrets)
    owner = wanted.owners.get(key) or (origin(key, there) if there else None)
    name = redact_text(record.name if record else str((there or {}).get("name") or ""))
    return {
        "act": act,
        "record": str(key),
        "name": name,
        "owner": str(owner) if owner else "",
        "why": why,
        "before": before,
        "after": after,
    }


def _notes(found: Plan, wanted: Wanted, snapshot: Snapshot, *, left_out: int) -> Iterator[str]:
    if wanted.known is not None:
        one = left_out == 1
        yield ALONE.format("1 record of another object is" if one else f"{left_out} records of other objects are")
    if wanted.ledger is None and wanted.known is None and any(key.kind in UNLABELLED for key in snapshot.bodies):
        yield NO_LEDGER
    for kind in sorted({key.kind for key in found.upserts} & snapshot.disabled):
        yield f"{kind}: {DISABLED}, so these records are not written; enable it there or remove their objects"


# Masking.


def masked(
    kind: RecordKind,
    before: FrozenJson | None,
    after: FrozenJson | None,
    id_: str = "",
    secrets: Iterable[Secret] = (),
) -> tuple[JsonObject | None, JsonObject | None]:
    """Return both bodies as they are compared, with secrets masked; a desired secret that differs is marked.

    Args:
        kind: Their kind.
        before: The gateway's body.
        after: The desired body.
        id_: Their id.
        secrets: The Secrets that the desired body was generated from.
    """
    left, right = (_compared(kind, body) for body in (before, after))
    if values := [*secret_values(secrets)]:
        left, right = _without_values(left, right, ValueMask(values))
    shown: tuple[Any, Any] = _pair(left, right, place_of(kind, id_))
    return shown


def _without_values(left: Any, right: Any, values: ValueMask) -> tuple[Any, Any]:
    """Return both bodies without plugin values from Secrets; the gateway may have earlier ones in these plugins."""
    plugins = right.get("plugins") if isinstance(right, dict) else None
    if not isinstance(plugins, dict):
        return left, right
    theirs = left.get("plugins") if isinstance(left, dict) else None
    known = theirs if isinstance(theirs, dict) else {}
    named = [name for name, config in plugins.items() if _is_secret(config, values)]
    pairs = {name: _both_hidden(known.get(name), plugins[name], values) for name in named}
    if known:
        left = {**left, "plugins": {**known, **{name: pairs[name][0] for name in named if name in known}}}
    return left, {**right, "plugins": {**plugins, **{name: pairs[name][1] for name in named}}}


def _is_secret(value: Any, values: ValueMask) -> bool:
    """Return whether a value is or contains a value of a Secret."""
    if isinstance(value, dict | list):
        return any(_is_secret(item, values) for item in (value.values() if isinstance(value, dict) else value))
    return bool(values(value) != value)


def _both_hidden(left: Any, right: Any, values: ValueMask) -> tuple[Any, Any]:
    """Return two versions of a configuration without secrets: of the gateway's, only what the desired one has, too."""
    if isinstance(right, dict) and (left is None or isinstance(left, dict)):
        one = left or {}
        pairs = {name: _both_hidden(one.get(name), right.get(name), values) for name in {**one, **right}}
        before = {name: pairs[name][0] for name in one}
        return None if left is None else before, {name: pairs[name][1] for name in right}
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        both = [_both_hidden(one, other, values) for one, other in zip(left, right, strict=True)]
        return [one for one, _ in both], [other for _, other in both]
    if _is_secret(right, values):
        return _hidden(left, right)
    return left if left is None or left == right else HIDDEN, right


def _compared(kind: RecordKind, body: FrozenJson | None) -> Any:
    if body is None:
        return None
    try:
        return json.loads(comparable(kind, body)) or {}
    except (TypeError, RecursionError):
        return {"id": body.get("id"), "desc": "[nested too deeply to be shown]"}


def _pair(left: Any, right: Any, place: Place) -> tuple[Any, Any]:
    """Return two values side by side, masked; a missing side stays None."""
    if isinstance(left, dict) or isinstance(right, dict):
        return _mappings(left, right, place)
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        places = [(place.item(left, index), place.item(right, index)) for index in range(len(left))]
        if all(here == there for here, there in places):
            pairs = [_item(left, right, index, here) for index, (here, _) in enumerate(places)]
            return [one for one, _ in pairs], [other for _, other in pairs]
    return _alone(left, right, place)


def _mappings(left: Any, right: Any, place: Place) -> tuple[Any, Any]:
    one, other = left if isinstance(left, dict) else {}, right if isinstance(right, dict) else {}
    shown: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for name in {**one, **other}:
        values = _field(name, one, other, place)
        for side, value, body in zip(shown, values, (one, other), strict=True):
            if name in body:
                side[without_secrets(name)] = value
    return (
        shown[0] if isinstance(left, dict) else _alone(left, None, place)[0],
        shown[1] if isinstance(right, dict) else _alone(None, right, place)[1],
    )


def _field(name: str, one: FrozenJson, other: FrozenJson, place: Place) -> tuple[Any, Any]:
    left, right = one.get(name), other.get(name)
    if place.hides(name, left, one) or place.hides(name, right, other):
        return _hidden(left, right)
    here, there = place.under(name, one or other), place.under(name, other or one)
    if here == there:
        return _pair(left, right, here)
    # They belong to two plugins, each with secrets of its own.
    return _alone(left, None, here)[0], _alone(None, right, there)[1]


def _item(one: list[Any], other: list[Any], index: int, place: Place) -> tuple[Any, Any]:
    left, right = one[index], other[index]
    if hides_item(one, index) or hides_item(other, index):
        return _hidden(left, right)
    return _pair(left, right, place)


def _hidden(left: Any, right: Any) -> tuple[Any, Any]:
    both = left is not None and right is not None
    return left and HIDDEN, right and (DIFFERS if both and left != right else HIDDEN)


def _alone(left: Any, right: Any, place: Place) -> tuple[Any, Any]:
    """Return two values without common parts, with secrets in them masked."""
    one, other = (without_secrets([value], place, mark=HIDDEN)[0] for value in (left, right))
    return one, DIFFERS if left != right and one == other and other is not None else other
