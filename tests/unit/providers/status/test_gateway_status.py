"""Status documents of the Gateway API: written once gateways have confirmed, or rejected, the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.model.assessment import Assessment, ParentState, Verdict
from apisix_ingress.model.formats.selector import parse_selector
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject, KubeObject, Meta, Namespace
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.world import Report, World
from providers.status.conditions import Conditions
from providers.status.gateway_status import GatewayStatus
from providers.status.status_addresses import Addresses
from tests.factories import make_record
from tests.fakes.cluster import FakeCluster
from tests.unit.translation.objects import service, slice_of
from tests.unit.translation.objects import world as some_world
from translation.core.options import Options

GATEWAY = ObjectKey("Gateway", "default", "gw")
ROUTE = ObjectKey("HTTPRoute", "default", "app")
GOOD = Verdict("Accepted", True, "Accepted")
ASSESSMENTS = {
    GATEWAY: Assessment((GOOD, Verdict("Programmed", True, "Programmed"))),
    ROUTE: Assessment(parents=(ParentState({"name": "gw"}, (GOOD,)),)),
}
RECORD = make_record("one")


def change(key: ObjectKey, state: RecordState | None = None, *, addresses: tuple[str, ...] = ()) -> JsonObject:
    """Return the status written for an object with one record in a state."""
    world = World([RESOURCES["Service"]])
    world.desired.replace(Claimant("", key), [RECORD])
    world.reports[key] = Report(2, (), ASSESSMENTS[key])
    cluster = FakeCluster(states={RECORD.key: state} if state else {})
    status = GatewayStatus(world, Conditions(world, [cluster]), Addresses(world, "", addresses), Options())
    return status.change(key, {}, "now")


def reasons(conditions: list[JsonObject]) -> dict[str, str]:
    return {each["type"]: f"{each['status']}/{each['reason']}" for each in conditions}


def test_a_gateway_is_programmed_once_its_records_are_there() -> None:
    got = change(GATEWAY, addresses=("192.0.2.1", "gw.example.org"))
    assert reasons(got["conditions"]) == {"Accepted": "True/Accepted", "Programmed": "True/Programmed"}
    assert [each["type"] for each in got["addresses"]] == ["IPAddress", "Hostname"]


def test_a_gateway_that_cannot_reach_itself_reports_it() -> None:
    front = service(ports=[{"port": 80, "name": "http"}])
    world = some_world(front, slice_of(["10.1.0.1"], port=8000, port_name="http"))
    world.reports[GATEWAY] = Report(2, (), ASSESSMENTS[GATEWAY])
    addresses = Addresses(world, "default/web", ())
    status = GatewayStatus(world, Conditions(world, [FakeCluster(states={})]), addresses, Options())
    got = {each["type"]: each for each in status.change(GATEWAY, {}, "now")["conditions"]}
    assert (got["Programmed"]["status"], got["Accepted"]["message"]) == ("True", "")
    assert "gateways accept HTTP on port 8000" in got["Programmed"]["message"]


def test_nothing_is_written_before_the_version_of_gateways_is_known() -> None:
    world = World([RESOURCES["Service"]])
    world.reports[GATEWAY] = Report(2, (), replace(ASSESSMENTS[GATEWAY], is_pending=True))
    status = GatewayStatus(world, Conditions(world, [FakeCluster(states={})]), Addresses(world, "", ()), Options())
    assert status.change(GATEWAY, {}, "now") == {}


def test_no_status_is_written_while_a_record_is_in_flight() -> None:
    assert change(GATEWAY, RecordState("pending")) == {}


def test_a_gateway_with_a_rejected_record_is_not_programmed() -> None:
    got = change(GATEWAY, RecordState("rejected", "no such field"))
    assert reasons(got["conditions"]) == {"Accepted": "True/Accepted", "Programmed": "False/Pending"}
    assert "no such field" in got["conditions"][1]["message"]


def test_a_route_with_a_rejected_record_is_not_accepted() -> None:
    (parent,) = change(ROUTE, RecordState("rejected", "no such field"))["parents"]
    assert reasons(parent["conditions"]) == {"Accepted": "False/UnsupportedValue"}


def test_a_gateway_that_does_not_respond_changes_no_route() -> None:
    assert change(ROUTE, RecordState("waiting", "refused", is_away=True)) == {}


def released(*objects: KubeObject, selector: str = "", refs: Sequence[JsonObject] = ({"name": "gw"},)) -> JsonObject:
    """Return the status written for a route without a report, with entries of this and another controller."""
    world = World(RESOURCES.values())
    for item in objects:
        world.stores[item.meta.kind].set(item)
    options = Options(namespace_selector=parse_selector(selector))
    status = GatewayStatus(world, Conditions(world, []), Addresses(world, "", ()), options)
    ours = [{"parentRef": ref, "controllerName": CONTROLLER} for ref in refs]
    return status.change(ROUTE, {"parents": [*ours, OTHER]}, "now")


CONTROLLER = Options().ingress_class_controller
OTHER = {"parentRef": {"name": "gw"}, "controllerName": "example.org/other"}
LABELLED = Namespace(Meta("Namespace", "", "default", labels={"team": "a"}))
STRANGER = Namespace(Meta("Namespace", "", "far", labels={"team": "b"}))


def custom(kind: str, name: str, namespace: str = "default", **spec: Any) -> CustomObject:
    return CustomObject(Meta(kind, namespace, name), spec)


HTTP_ROUTE = custom("HTTPRoute", "app", parentRefs=[{"name": "gw"}])


def test_the_status_is_removed_from_objects_of_other_controllers() -> None:
    assert released(HTTP_ROUTE) == {"parents": [OTHER]}
    assert released(LABELLED, HTTP_ROUTE, selector="team=a") == {"parents": [OTHER]}


def test_nothing_is_deleted_before_every_object_is_translated() -> None:
    gateway = custom("Gateway", "gw", gatewayClassName="apisix")
    assert released(HTTP_ROUTE, gateway, custom("GatewayClass", "apisix", "", controllerName=CONTROLLER)) == {}
    assert released() == {}


def test_an_installation_for_other_namespaces_leaves_the_entries_of_this_one() -> None:
    assert released(LABELLED, HTTP_ROUTE, selector="team=b") == {}
    assert released(HTTP_ROUTE, selector="team=a") == {}


def test_entries_for_gateways_of_another_installation_stay() -> None:
    far, entry = {"name": "gw", "namespace": "far"}, {"kind": "ListenerSet", "name": "set"}
    listeners = custom("ListenerSet", "set", parentRef={"name": "gw", "namespace": "far"})
    got = released(LABELLED, STRANGER, HTTP_ROUTE, listeners, selector="team=a", refs=[far, entry, {"name": "gw"}])
    assert [each["parentRef"] for each in got["parents"]] == [far, entry, {"name": "gw"}]
    assert [each["controllerName"] for each in got["parents"]] == [CONTROLLER, CONTROLLER, "example.org/other"]


def test_entries_of_a_policy_go_once_it_was_translated() -> None:
    world, key = World(RESOURCES.values()), ObjectKey("HTTPRoutePolicy", "default", "p")
    world.stores[key.kind].set(custom(key.kind, key.name))
    status = GatewayStatus(world, Conditions(world, []), Addresses(world, "", ()), Options())
    before = {"ancestors": [{"ancestorRef": {"name": "gw"}, "controllerName": CONTROLLER}]}
    assert status.change(key, before, "now") == {}
    world.dependents.record(key, {ROUTE: None})
    assert status.change(key, before, "now") == {"ancestors": []}


def test_an_object_without_an_assessment_gets_no_status() -> None:
    world = World([RESOURCES["Service"]])
    world.reports[ROUTE] = Report(1)
    status = GatewayStatus(world, Conditions(world, []), Addresses(world, "", ()), Options())
    assert status.change(ROUTE, {"parents": [OTHER]}, "now") == {}
