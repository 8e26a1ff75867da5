"""Ingresses of ingress-nginx report the records of their hosts, which the hosts own."""

from __future__ import annotations

from typing import Any

from apisix_ingress.gateway.sync.observer import APPLIED, PENDING, RecordState
from apisix_ingress.model.condition import synced
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.names import nginx_name
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.world import Report, World
from apisix_ingress.wiring.status_trigger import StatusTrigger
from providers.status.conditions import Conditions
from tests.fakes.cluster import FakeCluster
from tests.unit.providers.nginx.test_host import in_namespace, registry_of, world_of
from tests.unit.translation.nginx.objects import SERVICE, ingress
from translation.nginx.host import _part
from translation.nginx.options import host_key
from translation.nginx.servers import Location
from translation.safety.faults import UNSAFE

HOST = "shop.test"
FIRST, SECOND = ObjectKey("Ingress", "first", "one"), ObjectKey("Ingress", "second", "two")
REJECTED = RecordState("rejected", "additional properties forbidden")


def settled(*items: Any) -> World:
    """Return a world in which some Ingresses and their host are translated."""
    world = world_of(*(in_namespace(SERVICE, name) for name in ("first", "second")), *items)
    registry = registry_of(world)
    for item in items:
        registry.enqueue(item.meta.key)
    registry.enqueue(host_key(HOST))
    registry.settle()
    return world


def two_ingresses() -> World:
    return settled(
        in_namespace(ingress("one", ("/a", "Prefix"), age=2), "first"),
        in_namespace(ingress("two", ("/b", "Exact"), age=1), "second"),
    )


def route_of(world: World, type_: Any, path: str) -> RecordKey:
    """Return a route of a location."""
    name = nginx_name(HOST, _part(Location(path, type_), ""))
    return next(key for key, record in world.desired.of_owner(host_key(HOST)).items() if record.name.startswith(name))


def test_an_ingress_reports_the_rejection_of_a_record_of_its_path_and_no_other_one_does() -> None:
    world = two_ingresses()
    cluster = FakeCluster(states={(key := route_of(world, "Prefix", "/a/")): REJECTED})
    conditions = Conditions(world, [cluster])
    failed, other = conditions.of(FIRST), conditions.of(SECOND)
    assert failed is not None
    assert (failed.status, [cause.reason for cause in failed.causes]) == ("False", ["GatewayRejected"])
    assert failed.message == f"{key}: additional properties forbidden"
    assert other == synced(0)


def test_every_ingress_reports_records_of_the_host_as_a_whole() -> None:
    world = two_ingresses()
    cluster = FakeCluster(states={route_of(world, "Prefix", "/"): REJECTED})
    found = [Conditions(world, [cluster]).of(owner) for owner in (FIRST, SECOND)]
    assert [each.status for each in found if each] == ["False", "False"]


def test_an_ingress_is_not_synced_while_a_record_of_its_path_is_pending() -> None:
    world = two_ingresses()
    key = route_of(world, "Exact", "/b")
    conditions = Conditions(world, [FakeCluster(states={key: PENDING})])
    assert (conditions.of(FIRST), conditions.of(SECOND)) == (synced(0), None)
    assert conditions.take_waiting(key) == (SECOND,)


class Woken:
    """Collects the objects whose status is to be checked."""

    def __init__(self) -> None:
        self.keys: dict[ObjectKey, bool] = {}

    def wake(self, key: ObjectKey, *, urgent: bool = False) -> None:
        self.keys[key] = urgent

    def taken(self) -> dict[ObjectKey, bool]:
        """Return the Ingresses, and forget them."""
        found = {key: urgent for key, urgent in self.keys.items() if key.kind == "Ingress"}
        self.keys.clear()
        return found


def test_ingresses_of_a_host_are_checked_when_one_of_its_records_is_rejected_or_accepted_again() -> None:
    world, woken = two_ingresses(), Woken()
    key = route_of(world, "Prefix", "/a/")
    trigger = StatusTrigger(Conditions(world, [FakeCluster()]), woken)
    found = []
    for state in (PENDING, APPLIED, REJECTED, REJECTED, APPLIED, APPLIED):
        trigger.outcome("default", key, state)
        found.append(woken.taken())
    both = {FIRST: False, SECOND: False}
    assert found == [{}, {}, dict.fromkeys(both, True), {}, both, {}]


def report(world: World, *problems: Problem) -> None:
    """Replace the report of the host."""
    world.reports[host_key(HOST)] = Report(0, problems)


def test_an_ingress_reports_that_a_route_of_its_path_is_closed_and_no_other_one_does() -> None:
    world = two_ingresses()
    name = world.desired.of_owner(host_key(HOST))[route_of(world, "Prefix", "/a/")].name
    closed = Problem(UNSAFE, f"route {name}: vars are too many", severity="degraded")
    report(world, closed, Problem("PluginTwice", "a warning", severity="warning"))
    conditions = Conditions(world, [FakeCluster()])
    failed, other = conditions.of(FIRST), conditions.of(SECOND)
    assert failed is not None
    assert (failed.status, failed.message) == ("False", closed.message)
    assert other == synced(0)


def test_every_ingress_reports_that_its_host_cannot_be_translated() -> None:
    world = two_ingresses()
    report(world, Problem("TooLarge", "generates more than 32 MiB of records"))
    found = [Conditions(world, [FakeCluster()]).of(owner) for owner in (FIRST, SECOND)]
    assert [each.message for each in found if each] == ["generates more than 32 MiB of records"] * 2


def test_ingresses_of_a_host_are_checked_when_it_has_problems_and_when_it_has_none_any_more() -> None:
    world, woken = two_ingresses(), Woken()
    trigger = StatusTrigger(Conditions(world, [FakeCluster()]), woken)
    found = []
    for problems in ((), (Problem("TooLarge", "is too large"),), ()):
        report(world, *problems)
        trigger.reported(host_key(HOST))
        found.append(woken.taken())
    assert found == [{}, {FIRST: True, SECOND: True}, {FIRST: False, SECOND: False}]
