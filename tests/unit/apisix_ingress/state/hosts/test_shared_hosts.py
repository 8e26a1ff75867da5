"""Namespaces that publish routes for one host: each of their objects reports it, in any order of events."""

from __future__ import annotations

import random

import pytest

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.hosts.shared_hosts import SharedHosts

HOSTS = ("a.x.test", "b.x.test", "*.x.test", "*.test", "c.a.x.test")


def key(namespace: str, name: str = "web") -> ObjectKey:
    return ObjectKey("ApisixRoute", namespace, name)


def test_both_are_notified_of_one_host() -> None:
    found = SharedHosts()
    assert found.replace(key("red"), (), {"a.test"}) == frozenset()
    assert found.replace(key("blue"), (), {"a.test"}) == {key("red")}
    want = "host a.test is also used in namespace {}: routes there and here may match the same requests"
    assert found.notes(key("red"), {"a.test"}) == (want.format("blue"),)
    assert found.notes(key("blue"), {"a.test"}) == (want.format("red"),)
    assert found.replace(key("green"), (), {"a.test"}) == {key("red"), key("blue")}
    assert found.notes(key("red"), {"a.test"}) == (want.replace("namespace {}", "other namespaces"),)


def test_both_are_notified_of_a_name_below_a_wildcard_in_either_order() -> None:
    for first, second in (("*.x.test", "a.x.test"), ("a.x.test", "*.x.test")):
        found = SharedHosts()
        found.replace(key("red"), (), {first})
        assert found.replace(key("blue"), (), {second}) == {key("red")}
        notes = {host: found.notes(key(space), {host}) for space, host in (("red", first), ("blue", second))}
        below, above = ("red", "blue") if first == "a.x.test" else ("blue", "red")
        assert notes["a.x.test"] == (
            f"host a.x.test is also matched by *.x.test in namespace {above}: requests for a.x.test are routed here",
        )
        assert notes["*.x.test"] == (
            f"hosts below *.x.test are used in namespace {below}: requests for these hosts are routed there",
        )


def test_objects_of_one_namespace_are_not_reported() -> None:
    found = SharedHosts()
    found.replace(key("red"), (), {"a.test", "*.test"})
    assert found.replace(key("red", "other"), (), {"a.test"}) == frozenset()
    assert found.notes(key("red"), {"a.test", "*.test"}) == ()


def test_deleted_objects_are_forgotten() -> None:
    found = SharedHosts()
    for space in ("red", "blue"):
        found.replace(key(space), (), HOSTS)
    assert found.replace(key("blue"), HOSTS, ()) == {key("red")}
    assert found.notes(key("red"), HOSTS) == ()
    found.replace(key("red"), HOSTS, ())
    assert (found._users._found, found._below._found) == ({}, {})


@pytest.mark.parametrize("number", range(30))
def test_owners_with_changed_notes_are_returned_in_any_order_of_events(number: int) -> None:
    seed = random.Random(number)
    owners = [key(space, name) for space in ("red", "blue", "green", "grey") for name in "ab"]
    found = SharedHosts()
    there: dict[ObjectKey, frozenset[str]] = dict.fromkeys(owners, frozenset())
    for _ in range(60):
        owner = seed.choice(owners)
        before = {each: found.notes(each, hosts) for each, hosts in there.items()}
        after = frozenset(seed.sample(HOSTS, seed.randint(0, 2)))
        reported = found.replace(owner, there[owner], after)
        there[owner] = after
        changed = {each for each, hosts in there.items() if found.notes(each, hosts) != before[each]}
        assert changed <= reported | {owner}
        fresh = SharedHosts()
        for each in seed.sample(owners, len(owners)):
            fresh.replace(each, (), there[each])
        assert all(fresh.notes(each, hosts) == found.notes(each, hosts) for each, hosts in there.items())
