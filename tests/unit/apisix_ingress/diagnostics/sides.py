"""Desired records and the content of a gateway, for tests of commands that compare the two."""

from collections.abc import Collection, Mapping
from typing import Any

from apisix_ingress.diagnostics.collect.live_records import Snapshot
from apisix_ingress.diagnostics.reports.diff import Wanted
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import owner_labels
from apisix_ingress.model.records import Record
from apisix_ingress.state.desired import Desired
from apisix_ingress.state.holds import Hold
from apisix_ingress.state.ids.id_table import IdTable
from tests.factories import make_claimant, make_key, make_record

OURS = {"labels": owner_labels("apisix-ingress")}


def our_record(name: str = "default_web_rule", **fields: Any) -> Record:
    """Return a record with the ownership labels; fields of its body by keyword, its kind as `kind`."""
    kind = fields.pop("kind", "routes")
    return make_record(name, kind=kind, body={**OURS, **fields})


def wanted(*records: Record, ledger: Collection[RecordKey] | None = None, holds: tuple[Hold, ...] = ()) -> Wanted:
    """Return the desired records of one object."""
    desired = Desired(IdTable(lambda read: None))
    desired.replace(make_claimant(), records)
    desired.hold(make_claimant("broken"), holds)
    return Wanted(desired, {record.key: make_key() for record in records}, ledger)


def snapshot(*records: Record, others: Mapping[RecordKey, JsonObject] | None = None, **fields: Any) -> Snapshot:
    """Return a cluster with these records, including the fields that a gateway adds."""
    stamp = {"create_time": 1, "update_time": 2}
    bodies = {record.key: {**record.body, **stamp} for record in records}
    return Snapshot("default", "http://gateway/admin", "apisix-ingress", {**bodies, **(others or {})}, **fields)
