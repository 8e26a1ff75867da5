"""Two objects whose rules match the same requests: which one wins, what the others report, and what queues them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.route_keys import MOST_MATCHERS
from apisix_ingress.state.store import TOP
from apisix_ingress.state.world import World
from tests.unit.translation.objects import OPTIONS, fill, get, make, reported, service, world
from tests.unit.translation.settling import prepare, settle
from translation.route import translate_route


def route(
    name: str, day: int, *, namespace: str = "default", spec: Mapping[str, Any] | None = None, **match: Any
) -> JsonObject:
    """Return an ApisixRoute of one rule, created on a day of January."""
    match = {"hosts": ["a.com"], "paths": ["/x"]} | match
    rule = {"name": "r", "match": match, "backends": [{"serviceName": "web", "servicePort": 80}], **(spec or {})}
    return born(make("ApisixRoute", name, namespace=namespace, spec={"http": [rule]}), day)


def ingress(
    name: str,
    day: int,
    *paths: tuple[str, str],
    namespace: str = "default",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> JsonObject:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    items = [{"path": path, "pathType": kind, "backend": backend} for path, kind in paths]
    rules = [{"host": "a.com", "http": {"paths": items}}]
    spec = {"ingressClassName": "apisix", **({"rules": rules} if items else {}), **spec}
    return born(make("Ingress", name, namespace=namespace, spec=spec, annotations=annotations), day)


def born(raw: JsonObject, day: int) -> JsonObject:
    return {**raw, "metadata": {**raw["metadata"], "creationTimestamp": f"2026-01-{day:02}T00:00:00Z"}}


def settled(*objects: JsonObject) -> World:
    namespaces = {raw["metadata"]["namespace"] for raw in objects}
    return settle(*(service(namespace=namespace) for namespace in namespaces), *objects)


def key(raw: JsonObject) -> ObjectKey:
    return ObjectKey(raw["kind"], raw["metadata"]["namespace"], raw["metadata"]["name"])


def priorities(found: World, raw: JsonObject) -> list[int]:
    """Return the priorities of the routes of an object, by name of the route."""
    records = found.desired.of_owner(key(raw)).values()
    return [record.body.get("priority", 0) for record in sorted(records, key=lambda record: record.name)]


def codes(found: World, raw: JsonObject) -> list[str]:
    return [f"{item.severity} {item.code} {item.path}" for item in found.reports[key(raw)].problems]


CONFLICT = "degraded Conflicted spec.http[0]"


def test_a_newer_object_loses_to_the_older_one_and_is_reported() -> None:
    old, new = route("z", 1), route("a", 2)
    found = settled(new, old)
    assert (priorities(found, old), codes(found, old)) == ([0], [])
    assert (priorities(found, new), codes(found, new)) == ([-1], [CONFLICT])
    (problem,) = found.reports[key(new)].problems
    assert problem.message == (
        "host/path conflict: requests for a.com and /x go to ApisixRoute default/z, which is older; "
        "remove one of them, or change its host, path or method"
    )


def test_of_a_winner_in_another_namespace_only_the_namespace_is_reported() -> None:
    old, new = ingress("secret-project", 1, ("/x", "Exact"), namespace="theirs"), route("a", 2, namespace="mine")
    found = settled(new, old)
    problem, shared = found.reports[key(new)].problems
    assert "an Ingress in namespace theirs" in problem.message
    assert "secret-project" not in f"{problem} {shared}"
    assert codes(found, old) == ["warning HostShared "]


@pytest.mark.parametrize(
    ("second", "why"),
    [(1, "neither is older"), (None, "which is older is not known")],
    ids=["same second", "manifests"],
)
def test_a_message_says_older_only_if_the_ages_are_known(second: int | None, why: str) -> None:
    first, behind = route("a", 1), route("b", 1)
    if second is None:
        for each in (first, behind):
            del each["metadata"]["creationTimestamp"]
    (problem,) = settled(behind, first).reports[key(behind)].problems
    who = f"ApisixRoute default/a, which comes first by namespace and name ({why}); "
    assert who in problem.message


def test_objects_of_one_age_are_ordered_by_namespace_then_name() -> None:
    first, second, third = (
        route("b", 1, namespace="a"),
        ingress("c", 1, ("/x", "Exact"), namespace="a"),
        route("a", 1),
    )
    found = settled(third, second, first)
    assert [priorities(found, item) for item in (first, second, third)] == [[0], [-1], [-2]]


def test_a_third_object_loses_to_both_and_names_the_first() -> None:
    items = [route(name, day) for name, day in (("c", 1), ("b", 2), ("a", 3))]
    found = settled(*items)
    assert [priorities(found, item) for item in items] == [[0], [-1], [-2]]
    assert "ApisixRoute default/c," in found.reports[key(items[2])].problems[0].message


SAME: Sequence[tuple[JsonObject, JsonObject]] = [
    (route("o", 1, hosts=["A.COM"]), route("n", 2)),
    (route("o", 1, hosts=["[2001:DB8:0::1]"]), route("n", 2, hosts=["[2001:db8::1]"])),
    (route("o", 1, hosts=["b.com", "a.com"], paths=["/y", "/x"]), route("n", 2)),
    (route("o", 1), route("n", 2, hosts=["b.com", "a.com"], paths=["/y", "/x"])),
    (route("o", 1, hosts=[]), route("n", 2, hosts=[])),
    (route("o", 1, methods=["GET", "PUT"]), route("n", 2, methods=["PUT", "GET", "PUT"])),
    (route("o", 1, remoteAddrs=["10.0.0.1", "::1"]), route("n", 2, remoteAddrs=["::1", "10.0.0.1"])),
    (route("o", 1, spec={"priority": 5}), route("n", 2, spec={"priority": 5, "websocket": True})),
    (route("o", 1, filter_func="function(vars) end"), route("n", 2, filter_func="function(vars) end")),
    (
        route("o", 1, exprs=[{"subject": {"scope": "Header", "name": "X-A"}, "op": "In", "set": ["1", "2"]}]),
        route("n", 2, exprs=[{"subject": {"scope": "Header", "name": "x_a"}, "op": "In", "set": ["2", "1"]}]),
    ),
    (
        route("o", 1, exprs=[{"subject": {"scope": "Path", "name": "a"}, "op": "Equal", "value": "1", "set": None}]),
        route("n", 2, exprs=[{"subject": {"scope": "Path"}, "op": "Equal", "value": "1"}]),
    ),
    (ingress("o", 1, ("/x", "Prefix")), ingress("n", 2, ("/x/", "Prefix"))),
    (ingress("o", 1, ("/x", "Prefix")), route("n", 2, paths=["/x/*"])),
    (ingress("o", 1, ("/", "Prefix")), route("n", 2, paths=["/*"])),
    (ingress("o", 1, ("/x", "ImplementationSpecific")), ingress("n", 2, ("/x", "Exact"))),
    (route("o", 1), ingress("n", 2, ("/x", "Exact"))),
    (ingress("o", 1, ("/x", "Exact")), ingress("n", 2, ("/x", "Exact"), ("/x", "Prefix"))),
    (route("o", 1, paths=["/" + "x" * 5000]), route("n", 2, paths=["/" + "x" * 5000])),
    (
        ingress("o", 1, defaultBackend={"service": {"name": "web", "port": {"number": 80}}}),
        ingress("n", 2, defaultBackend={"service": {"name": "web", "port": {"number": 80}}}),
    ),
    (
        ingress("o", 1, ("/a.*", "ImplementationSpecific"), annotations={"k8s.apisix.apache.org/use-regex": "true"}),
        route(
            "n",
            2,
            paths=["/*"],
            exprs=[{"subject": {"scope": "Path"}, "op": "RegexMatch", "value": "/a.*"}],
            spec={"priority": 100},
        ),
    ),
]

DIFFERENT: Sequence[tuple[JsonObject, JsonObject]] = [
    (route("o", 1), route("n", 2, hosts=["b.com"])),
    (route("o", 1), route("n", 2, hosts=[])),
    (route("o", 1, hosts=["*.com"]), route("n", 2)),
    (route("o", 1), route("n", 2, paths=["/x/*"])),
    (route("o", 1), route("n", 2, paths=["/X"])),
    (route("o", 1), route("n", 2, paths=["/" + "x" * 5000])),
    (route("o", 1), route("n", 2, methods=["GET"])),
    (route("o", 1), route("n", 2, remoteAddrs=["10.0.0.1"])),
    (route("o", 1), route("n", 2, filter_func="function(vars) end")),
    (route("o", 1), route("n", 2, spec={"priority": 1})),
    (route("o", 1), route("n", 2, exprs=[{"subject": {"scope": "Query", "name": "a"}, "op": "Equal", "value": "1"}])),
    (
        route("o", 1, exprs=[{"subject": {"scope": "Query", "name": "A"}, "op": "Equal", "value": "1"}]),
        route("n", 2, exprs=[{"subject": {"scope": "Query", "name": "a"}, "op": "Equal", "value": "1"}]),
    ),
    (ingress("o", 1, ("/x", "Exact")), ingress("n", 2, ("/x", "Prefix"))),
    (ingress("o", 1, ("/x", "Prefix")), ingress("n", 2, ("/xy", "Prefix"))),
]


@pytest.mark.parametrize(("old", "new"), SAME)
def test_same_requests_are_found_however_they_are_written(old: JsonObject, new: JsonObject) -> None:
    found = settled(new, old)
    assert codes(found, old) == []
    assert [line.split()[:2] for line in codes(found, new)] == [["degraded", "Conflicted"]]
    alone = settled(new)
    lowered = [one - 1 for one in priorities(alone, new)]
    # Of an Ingress whose paths share a text the one that is taken loses its own priority, too.
    assert priorities(found, new) in (lowered, [-1, 0], [0, -1])


@pytest.mark.parametrize(("old", "new"), DIFFERENT)
def test_whatever_distinguishes_requests_makes_no_conflict(old: JsonObject, new: JsonObject) -> None:
    found = settled(new, old)
    assert (codes(found, old), codes(found, new)) == ([], [])
    assert priorities(found, new) == priorities(settled(new), new)


def test_rules_of_one_object_do_not_conflict_with_each_other() -> None:
    raw = route("a", 1)
    raw["spec"]["http"].append({**raw["spec"]["http"][0], "name": "s"})
    found = settled(raw)
    assert (priorities(found, raw), codes(found, raw)) == ([0, 0], [])


def test_only_the_conflicting_rule_gets_a_lower_priority() -> None:
    new = route("n", 2)
    new["spec"]["http"].append({**new["spec"]["http"][0], "name": "s", "match": {"hosts": ["a.com"], "paths": ["/y"]}})
    found = settled(new, route("o", 1))
    assert (priorities(found, new), codes(found, new)) == ([-1, 0], [CONFLICT])


def test_several_conflicting_paths_are_reported_once() -> None:
    found = settled(route("o", 1, paths=["/x", "/y", "/z"]), route("n", 2, paths=["/z", "/y", "/x"]))
    (problem,) = found.reports[ObjectKey("ApisixRoute", "default", "n")].problems
    assert problem.message.startswith(
        "host/path conflict: requests for a.com and /x and 2 more go to ApisixRoute default/o,"
    )


def test_object_that_cannot_be_translated_keeps_its_place() -> None:
    old = route("o", 1, spec={"backends": [{"serviceName": "missing", "servicePort": 80}]})
    found = settled(old, route("n", 2))
    assert found.desired.of_owner(key(old)) == {}
    assert codes(found, route("n", 2)) == [CONFLICT]


def test_objects_of_another_class_or_namespace_claim_nothing() -> None:
    old, new = ingress("o", 1, ("/x", "Exact"), ingressClassName="nginx"), route("n", 2)
    assert codes(settled(old, new), new) == []


@pytest.mark.parametrize("spec", [None, {}, {"http": 5}, {"http": [5, {"match": 5}, {"match": {"paths": 7}}]}])
@pytest.mark.parametrize("kind", ["ApisixRoute", "Ingress"])
def test_an_invalid_spec_takes_no_requests(kind: str, spec: Any) -> None:
    new = route("n", 2)
    rules = {"rules": [5, {"http": {"paths": [7, {"path": 5}]}}], "ingressClassName": "apisix"}
    old = born(make(kind, "o", spec=rules if kind == "Ingress" else spec), 1)
    assert codes(settled(old, new), new) == []


def test_the_next_object_takes_over_until_the_winner_returns() -> None:
    old, new = route("o", 1), route("n", 2)
    found, loop = prepare(service(), old, new)
    loop.settle()
    assert priorities(found, new) == [-1]
    found.stores["ApisixRoute"].delete(key(old))
    loop.settle()
    assert (priorities(found, new), codes(found, new)) == ([0], [])
    fill(found, [old])
    loop.settle()
    assert (priorities(found, new), codes(found, new)) == ([-1], [CONFLICT])


@pytest.mark.parametrize(
    "changed",
    [
        route("o", 1, paths=["/other"]),
        route("o", 1, spec={"priority": 7}),
        route("o", 3),
    ],
)
def test_the_next_object_takes_over_when_the_winner_no_longer_claims_the_key(changed: JsonObject) -> None:
    new = route("n", 2)
    found, loop = prepare(service(), route("o", 1), new)
    loop.settle()
    fill(found, [changed])
    loop.settle()
    assert (priorities(found, new), codes(found, new)) == ([0], [])


def test_the_next_object_takes_over_when_the_winner_leaves_the_class() -> None:
    old, new = ingress("o", 1, ("/x", "Exact")), ingress("n", 2, ("/x", "Exact"))
    found, loop = prepare(service(), old, new)
    loop.settle()
    assert priorities(found, new) == [-1]
    fill(found, [ingress("o", 1, ("/x", "Exact"), ingressClassName="nginx")])
    loop.settle()
    assert priorities(found, new) == [0]


def test_only_the_first_of_many_rivals_are_examined() -> None:
    many = [route(f"r{index:03}", 1) for index in range(100)]
    found, loop = prepare(service(), *many)
    loop.settle()
    assert [priorities(found, item) for item in many] == [[-min(index, TOP)] for index in range(100)]
    for provider in loop.providers.values():
        assert provider.queue.take() is None
    fill(found, [route("r999", 1)])
    woken = []
    while (owner := loop.providers["ApisixRoute"].queue.take()) is not None:
        woken.append(owner.name)
        loop.providers["ApisixRoute"].queue.done(owner)
    assert woken == ["r999"]


def test_rivals_behind_many_of_another_class_are_found() -> None:
    options = replace(OPTIONS, ingress_class="ours")
    many = [route(f"r{index:03}", 1) for index in range(40)]
    for raw in many[:39]:
        raw["spec"]["ingressClassName"] = "theirs" if raw is not many[30] else "ours"
    many[39]["spec"]["ingressClassName"] = "ours"
    found, loop = prepare(service(), *many, options=options)
    loop.settle()
    assert priorities(found, many[39]) == [-1]
    found.stores["ApisixRoute"].delete(key(many[30]))
    loop.settle()
    assert priorities(found, many[39]) == [0]


def test_more_pairs_of_host_and_path_than_can_be_kept_are_refused() -> None:
    hosts, paths = [f"h{index}.com" for index in range(201)], [f"/{index}" for index in range(100)]
    raw = route("o", 1, hosts=hosts, paths=paths)
    found = world(service(), raw)
    item = get(found, "ApisixRoute", "o")
    assert reported(translate_route(item, found.view(), OPTIONS)) == ["error TooManyPaths spec"]
    assert found.stores["ApisixRoute"].by_index("matcher", "h0.com\n/0\n") == ()
    fitting = route("o", 1, hosts=hosts[:200], paths=paths)
    assert len(hosts[:200]) * len(paths) == MOST_MATCHERS
    assert codes(settled(fitting), fitting) == []
