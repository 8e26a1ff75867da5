"""Status documents of the Gateway API: written once gateways have confirmed, and what is said if they refuse."""

from __future__ import annotations

from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.model.assessment import Assessment, ParentState, Verdict
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.world import Report, World
from providers.core.conditions import Conditions
from providers.core.gateway_status import GatewayStatus
from providers.core.status_addresses import Addresses
from tests.factories import make_record
from tests.fakes.cluster import FakeCluster

GATEWAY = ObjectKey("Gateway", "default", "gw")
ROUTE = ObjectKey("HTTPRoute", "default", "app")
GOOD = Verdict("Accepted", True, "Accepted")
ASSESSMENTS = {
    GATEWAY: Assessment((GOOD, Verdict("Programmed", True, "Programmed"))),
    ROUTE: Assessment(parents=(ParentState({"name": "gw"}, (GOOD,)),)),
}
RECORD = make_record("one")


def change(key: ObjectKey, state: RecordState | None = None, *, addresses: tuple[str, ...] = ()) -> JsonObject:
    """Return what is written for an object with one record in a state."""
    world = World([RESOURCES["Service"]])
    world.desired.replace(Claimant("", key), [RECORD])
    world.reports[key] = Report(2, (), ASSESSMENTS[key])
    cluster = FakeCluster(states={RECORD.key: state} if state else {})
    status = GatewayStatus(world, Conditions(world, [cluster]), Addresses(world, "", addresses), controller="ours")
    return status.change(key, {}, "now")


def reasons(conditions: list[JsonObject]) -> dict[str, str]:
    return {each["type"]: f"{each['status']}/{each['reason']}" for each in conditions}


def test_a_gateway_is_programmed_once_its_records_are_there() -> None:
    got = change(GATEWAY, addresses=("192.0.2.1", "gw.example.org"))
    assert reasons(got["conditions"]) == {"Accepted": "True/Accepted", "Programmed": "True/Programmed"}
    assert [each["type"] for each in got["addresses"]] == ["IPAddress", "Hostname"]


def test_nothing_is_written_while_a_record_is_on_its_way() -> None:
    assert change(GATEWAY, RecordState("pending")) == {}


def test_a_gateway_whose_record_is_refused_is_not_programmed() -> None:
    got = change(GATEWAY, RecordState("rejected", "no such field"))
    assert reasons(got["conditions"]) == {"Accepted": "True/Accepted", "Programmed": "False/Pending"}
    assert "no such field" in got["conditions"][1]["message"]


def test_a_route_whose_record_is_refused_is_not_accepted() -> None:
    (parent,) = change(ROUTE, RecordState("rejected", "no such field"))["parents"]
    assert reasons(parent["conditions"]) == {"Accepted": "False/UnsupportedValue"}


def test_a_gateway_that_does_not_answer_changes_no_route() -> None:
    assert change(ROUTE, RecordState("waiting", "refused", is_away=True)) == {}


def test_what_was_written_goes_once_an_object_is_no_longer_ours() -> None:
    world = World([RESOURCES["Service"]])
    status = GatewayStatus(world, Conditions(world, []), Addresses(world, "", ()), controller="ours")
    assert status.change(ROUTE, {"parents": [{"controllerName": "ours"}]}, "now") == {"parents": []}
    world.reports[ROUTE] = Report(1)
    assert status.change(ROUTE, {"parents": [{"controllerName": "ours"}]}, "now") == {}
