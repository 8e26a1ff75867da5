"""What happens to the records that 2.x has left in a gateway."""

from typing import Any, cast

import pytest

from apisix_ingress.diagnostics.reports.replacement import carry_out, replacement
from apisix_ingress.errors import GatewayRejected
from apisix_ingress.gateway.adminapi.client import AdminClient
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from tests.unit.apisix_ingress.diagnostics.sides import our_record, snapshot, wanted


def of_2x(**body: object) -> JsonObject:
    """Return a record of 2.x for an object that this controller does not serve."""
    labels = {"manager-by": "apisix-ingress-controller", "k8s/kind": "ApisixRoute", "k8s/namespace": "default"}
    return {"labels": {**labels, "k8s/name": "gone"}, **body}


def test_records_of_every_kind_are_listed() -> None:
    kinds = ("routes", "stream_routes", "plugin_configs", "consumers", "consumer_groups", "ssls", "services")
    others = {RecordKey(kind, "1"): of_2x() for kind in kinds}  # type: ignore[arg-type]  # kinds that are only read
    found = replacement(wanted(our_record()), snapshot(our_record(), others=others))
    assert {(str(step.key), step.act) for step in found} == {
        *((f"{kind}/1", "keep") for kind in kinds if kind != "services"),
        ("services/1", "delete"),
    }


def test_records_of_others_are_left_out() -> None:
    others = {RecordKey("routes", "1"): {"labels": {"manager-by": "apisix-ingress-controller"}}}
    assert replacement(wanted(our_record()), snapshot(our_record(), others=others)) == []


class Backend:
    """Records requests; a gateway that rejects the records of this controller if it is asked to."""

    def __init__(self, *, rejects: bool = False) -> None:
        self.requests: list[tuple[str, str, Any]] = []
        self.rejects = rejects

    async def put(self, record: Record) -> None:
        self.requests.append(("put", str(record.key), record.body["plugins"]))
        if self.rejects and "labels" in record.body:
            raise GatewayRejected(400, "rejected")

    async def delete(self, key: RecordKey) -> None:
        self.requests.append(("delete", str(key), None))


LIST: JsonObject = {"ip-restriction": {"whitelist": ["10.0.0.1"]}}
IDS: JsonObject = {"request-id": {}}
OLD: dict[RecordKey, JsonObject] = {
    RecordKey("global_rules", "ip-restriction"): {"plugins": LIST},
    RecordKey("global_rules", "request-id"): {"plugins": IDS},
}


async def test_a_global_rule_is_replaced_before_anything_else_is_deleted() -> None:
    """Requests would pass without its protection until the controller has written the new one."""
    rule = our_record("global", kind="global_rules", plugins={**LIST, **IDS})
    sides = wanted(rule), snapshot(our_record(), others=OLD)
    backend = Backend()

    await carry_out(cast("AdminClient", backend), replacement(*sides), *sides)

    assert backend.requests == [
        *(("delete", str(key), None) for key in OLD),
        ("put", str(rule.key), {**LIST, **IDS}),
    ]


async def test_former_global_rules_return_if_the_new_one_is_rejected() -> None:
    rule = our_record("global", kind="global_rules", plugins={**LIST, **IDS})
    sides = wanted(rule), snapshot(our_record(), others=OLD)
    backend = Backend(rejects=True)

    with pytest.raises(GatewayRejected):
        await carry_out(cast("AdminClient", backend), replacement(*sides), *sides)

    assert backend.requests[3:] == [("put", str(key), body["plugins"]) for key, body in OLD.items()]
