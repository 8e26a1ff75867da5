"""Hosts that the operator assigns to namespaces."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.translation.hosts.owning import hosts, namespace, reported, route, settled, surroundings
from tests.unit.translation.objects import OPTIONS
from tests.unit.translation.settling import settle


def test_an_assigned_host_belongs_to_its_namespace_regardless_of_age() -> None:
    squatter, mine = route("evil", 1, "own.test", "a.own.test"), route("victim", 2, "own.test", "a.own.test")
    found = settled(squatter, mine, namespace("victim", "own.test,*.own.test"))
    assert (hosts(found, squatter), hosts(found, mine)) == ([], ["a.own.test", "own.test"])


def test_the_most_specific_assignment_counts_and_an_assigned_wildcard_may_cover_it() -> None:
    platform, team, other = (
        route("platform", 2, "*.test"),
        route("team", 1, "a.team.test"),
        route("b", 1, "b.team.test"),
    )
    given = [namespace("platform", "*.test"), namespace("team", "*.team.test")]
    found = settled(platform, team, other, *given)
    assert [hosts(found, each) for each in (platform, team, other)] == [["*.test"], ["a.team.test"], []]


def test_a_wildcard_over_an_assigned_name_is_skipped() -> None:
    wild = route("evil", 1, "*.test")
    found = settled(wild, namespace("victim", "own.test"))
    assert hosts(found, wild) == []
    assert "namespace victim has a name below it" in reported(found, wild)[0]


def test_a_host_may_be_assigned_to_several_namespaces() -> None:
    one, two = route("one", 1, "own.test"), route("two", 2, "own.test")
    found = settled(one, two, namespace("one", "own.test"), namespace("two", "own.test"))
    assert (hosts(found, one), hosts(found, two)) == (["own.test"], ["own.test"])


def test_with_assigned_hosts_only_those_can_be_used() -> None:
    options = replace(OPTIONS, host_ownership="assigned")
    mine, free = route("mine", 1, "a.own.test"), route("free", 1, "free.test", "a.own.test")
    found = settle(*surroundings([mine, free, namespace("mine", "*.own.test")]), options=options)
    assert (hosts(found, mine), reported(found, mine)) == (["a.own.test"], [])
    assert hosts(found, free) == []
    assert reported(found, free)[0] == (
        "spec.http[0].match.hosts[0]: host free.test is skipped: it is not assigned to any namespace; ask the "
        "operator to add free.test to the annotation apisix.apache.org/hosts of Namespace free"
    )
