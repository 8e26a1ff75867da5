"""Tenants that match the same requests: the winner depends on the state, never on the order of events."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import Pod
from apisix_ingress.state.store import TOP, Store
from apisix_ingress.state.view import TrackingView
from apisix_ingress.state.world import World
from tests.factories import make_pod
from tests.property.isolation.tenants import HOSTS, SHUFFLES, TENANTS, Wanting
from tests.unit.translation.objects import service
from tests.unit.translation.settling import prepare


@dataclass(frozen=True, kw_only=True)
class Wish(Wanting):
    """An object with one rule: its match and its age."""

    paths: tuple[str, ...]
    methods: tuple[str, ...]
    priority: int

    def takes(self) -> set[tuple[str, str, tuple[str, ...], int]]:
        """The reference: an Ingress takes paths exactly, without other conditions."""
        ingress = self.kind == "Ingress"
        rest = ((), 0) if ingress else (tuple(sorted(self.methods)), self.priority)
        hosts = self.hosts[:1] if ingress else self.hosts
        return {(host, path, *rest) for host in hosts for path in self.paths}


def older(wish: Wish, wishes: Iterable[Wish]) -> list[Wish]:
    """Return the objects that win over one, in order."""
    rivals = (other for other in wishes if other.age < wish.age and not other.foreign)
    return sorted((other for other in rivals if other.takes() & wish.takes()), key=lambda other: other.age)


def manifest(wish: Wish) -> JsonObject:
    if wish.kind == "Ingress":
        target = {"service": {"name": "web", "port": {"number": 80}}}
        paths = [{"path": path, "pathType": "Exact", "backend": target} for path in wish.paths]
        return wish.with_spec({"rules": [{"host": wish.hosts[0], "http": {"paths": paths}}]})
    backend = {"serviceName": "web", "servicePort": 80}
    match = {"hosts": [*wish.hosts], "paths": [*wish.paths], "methods": [*wish.methods]}
    rule = {"name": "r", "match": match, "priority": wish.priority, "backends": [backend]}
    return wish.with_spec({"http": [rule]})


def wish_of(seed: random.Random, number: int) -> Wish:
    kind = seed.choice(("Ingress", "ApisixRoute"))
    return Wish(
        namespace=seed.choice(TENANTS),
        name=f"o{number}",
        kind=kind,
        day=seed.randint(1, 4),
        hosts=tuple(seed.sample(HOSTS, seed.randint(1, 2))),
        paths=tuple(seed.sample(("/x", "/y"), seed.randint(1, 2))),
        methods=tuple(seed.choice(((), (), ("GET",), ("GET", "PUT"), ("PUT", "GET")))),
        priority=seed.choice((0, 0, 0, 3)),
        foreign=kind == "Ingress" and seed.random() < 0.2,
    )


def reported_for(found: World, wish: Wish) -> list[str]:
    """Return the problems of an object, except hosts that other namespaces use too."""
    report = found.reports.get(wish.key)
    return [str(problem) for problem in report.problems if problem.code != "HostShared"] if report else []


def check(found: World, wishes: Iterable[Wish]) -> None:
    wishes = tuple(wishes)
    for wish in wishes:
        records = found.desired.of_owner(wish.key).values()
        got = {record.body.get("priority", 0) for record in records}
        reported = reported_for(found, wish)
        if wish.foreign:
            assert (got, reported) == (set(), [])
            continue
        front = older(wish, wishes)
        if wish.kind == "ApisixRoute":
            assert got == {wish.priority - len(front)}
        else:
            assert min(got) == -max(len([o for o in front if one in o.takes()]) for one in wish.takes())
        assert bool(reported) == bool(front)
        for other in (other for other in front if other.namespace != wish.namespace):
            assert not any(f"/{other.name}," in text for text in reported)
        if front and front[0].namespace != wish.namespace and wish.kind == "ApisixRoute":
            assert [f"in namespace {front[0].namespace}," in text for text in reported] == [True]


@pytest.mark.parametrize("number", range(SHUFFLES))
def test_order_of_events_changes_nothing(number: int) -> None:
    seed = random.Random(number)
    wishes = [wish_of(seed, index) for index in range(9)]
    services = [service(namespace=tenant) for tenant in TENANTS]
    found, loop = prepare(*services)
    there: dict[ObjectKey, Wish] = {}
    # Every pod is created, and some are deleted and re-created in any order; checked from time to time.
    events = [*wishes, *seed.sample(wishes, 4), *seed.sample(wishes, 4)]
    seed.shuffle(events)
    for wish in [*events, *wishes]:
        store = found.stores[wish.kind]
        if wish.key in there and seed.random() < 0.5:
            store.delete(wish.key)
            del there[wish.key]
        else:
            store.set(RESOURCES[wish.kind].decode(manifest(wish)))
            there[wish.key] = wish
        if seed.random() < 0.4:
            loop.settle()
            check(found, there.values())
    loop.settle()
    check(found, there.values())


def ranked() -> tuple[Store[Pod], set[object]]:
    heard: set[object] = set()
    return Store("Pod", heard.add, {"all": lambda pod: ["x"]}, frozenset({"all"})), heard


DAYS = st.lists(st.tuples(st.integers(0, 2 * TOP), st.integers(0, 9)), max_size=60)


@given(before=DAYS, change=st.tuples(st.integers(0, 2 * TOP), st.integers(0, 9)), seen=st.integers(0, 2 * TOP + 1))
@settings(max_examples=300, deadline=None)
def test_readers_of_the_first_members_are_notified_of_their_changes(
    before: list[tuple[int, int]], change: tuple[int, int], seen: int
) -> None:
    store, heard = ranked()
    for name, day in before:
        _apply(store, name, day)
    want = sorted(store.values(), key=lambda pod: pod.meta.age)
    assert list(store.oldest(IndexKey(store.kind, "all", "x"))) == want
    view = _view(store)
    first = _first(view, seen)
    heard.clear()
    _apply(store, *change)
    if _first(_view(store), seen) != first:
        assert heard & set(view.reads)


def _view(store: Store[Pod]) -> TrackingView:
    empty = World(())
    return TrackingView({"Pod": store}, empty.ids, empty.claims, empty.host_holders)


def _apply(store: Store[Pod], name: int, day: int) -> None:
    """Store a pod that was created on a day; day 0 deletes it."""
    pod = make_pod(f"p{name:02}")
    if not day:
        store.delete(pod.meta.key)
        return
    store.set(Pod(type(pod.meta)("Pod", "default", f"p{name:02}", created=f"2026-01-{day:02}T00:00:00Z")))


def _first(view: TrackingView, seen: int) -> list[Pod]:
    """Return the result of a reader that stops after some members, or at the end."""
    found: list[Pod] = []
    for pod in view.oldest(Pod, IndexKey("Pod", "all", "x")) if seen else ():
        found.append(pod)
        if len(found) == seen:
            break
    return found
