"""What happens to the records that 2.x has left in a gateway."""

from apisix_ingress.diagnostics.reports.replacement import replacement
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey
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
