"""State compared with simple models: in any order of events, the result is the same, and nothing stale is kept."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from apisix_ingress.model.keys import IndexKey, ObjectKey, Read, RecordKey
from apisix_ingress.model.kinds.indexes import SLICES_BY_SERVICE
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.names import short_id
from apisix_ingress.model.objects import CustomObject, EndpointSlice
from apisix_ingress.model.records import Record
from apisix_ingress.state.claims import Claimant, Claims, UpstreamClaim, UpstreamOverrides
from apisix_ingress.state.dependents import Dependents
from apisix_ingress.state.desired import Desired
from apisix_ingress.state.holds import Hold
from apisix_ingress.state.ids.id_table import IdTable, id_read
from apisix_ingress.state.store import Store
from tests.factories import COLLIDING, make_claim, make_endpoint, make_key, make_record, make_slice
from tests.relisting import relist
from tests.unit.providers.harness import ProviderHarness, make_route

NAMES = (*COLLIDING, "lone")
BORN = {name: Claimant(str(9 - number), make_key(f"o{number}")) for number, name in enumerate(NAMES)}
"""Name → its owner: the last one is the oldest."""
OWNERS = tuple(make_key(name) for name in "abc")

slices = st.builds(
    lambda name, service, address: make_slice(name, service=service, endpoints=[make_endpoint(address)]),
    st.sampled_from("abcd"),
    st.sampled_from(["", "web", "api"]),
    st.sampled_from(["10.0.0.1", "10.0.0.2"]),
)
store_steps = st.one_of(
    st.tuples(st.just("set"), slices),
    st.tuples(st.just("delete"), slices),
    st.tuples(st.just("replace"), st.lists(slices, max_size=5, unique_by=lambda item: item.meta.name)),
)
claimants = st.builds(Claimant, st.sampled_from(["1", "2", "3"]), st.sampled_from(OWNERS))
claim_values = st.builds(
    lambda service, port, scheme, weak: make_claim(
        service, port=port, weak=weak, overrides=UpstreamOverrides(scheme=scheme) if scheme else None
    ),
    st.sampled_from(["web", "api"]),
    st.sampled_from([80, 81]),
    st.sampled_from(["", "https", "grpc"]),
    st.booleans(),
)
records = st.builds(
    lambda name, uri, clusters: make_record(name, body={"uri": uri}, clusters=clusters),
    st.sampled_from(["x", "y", "z"]),
    st.sampled_from(["/a", "/b"]),
    st.sampled_from([None, frozenset({"east"}), frozenset({"west"})]),
)


def _index_values(items: Iterable[EndpointSlice]) -> set[IndexKey]:
    return {IndexKey("EndpointSlice", SLICES_BY_SERVICE, f"default/{item.service}") for item in items if item.service}


def _apply(model: dict[ObjectKey, EndpointSlice], step: tuple[str, EndpointSlice | list[EndpointSlice]]) -> None:
    verb, argument = step
    if isinstance(argument, list):
        model.clear()
        model.update({item.meta.key: item for item in argument})
    elif verb == "set":
        model[argument.meta.key] = argument
    else:
        model.pop(argument.meta.key, None)


def _drive(store: Store[EndpointSlice], step: tuple[str, EndpointSlice | list[EndpointSlice]]) -> None:
    verb, argument = step
    if isinstance(argument, list):
        relist(store, argument)
    elif verb == "set":
        store.set(argument)
    else:
        store.delete(argument.meta.key)


@given(st.lists(store_steps, max_size=12))
def test_a_store_is_a_dict_that_reports_each_difference_once(
    steps: list[tuple[str, EndpointSlice | list[EndpointSlice]]],
) -> None:
    heard: list[Read] = []
    store: Store[EndpointSlice] = Store("EndpointSlice", heard.append, RESOURCES["EndpointSlice"].indexes)
    model: dict[ObjectKey, EndpointSlice] = {}
    for step in steps:
        heard.clear()
        before = dict(model)
        _apply(model, step)
        _drive(store, step)
        changed = {key for key in {*before, *model} if before.get(key) != model.get(key)}
        assert {key: store.get(key) for key in store.keys()} == model  # noqa: SIM118 - a store is not a mapping
        assert sorted(read for read in heard if isinstance(read, ObjectKey)) == sorted(changed)
        touched = [item[key] for item in (before, model) for key in changed if key in item]
        assert {read for read in heard if isinstance(read, IndexKey)} == _index_values(touched)
        for service in ("web", "api"):
            want = [item for _, item in sorted(model.items()) if item.service == service]
            assert list(store.by_index(SLICES_BY_SERVICE, f"default/{service}")) == want
        assert set(store._indexed) == _index_values(model.values())


@given(
    st.lists(
        st.tuples(
            st.sampled_from(OWNERS), st.frozensets(st.sampled_from([make_key(n, kind="Secret") for n in "abcd"]))
        ),
        max_size=20,
    )
)
def test_dependents_are_the_inverse_of_the_last_reads(steps: list[tuple[ObjectKey, frozenset[ObjectKey]]]) -> None:
    unread: list[Read] = []
    dependents = Dependents(unread.append)
    model: dict[ObjectKey, frozenset[ObjectKey]] = {}
    for owner, reads in steps:
        unread.clear()
        before = {read for found in model.values() for read in found}
        dependents.record(owner, reads)
        model[owner] = reads
        after = {read for found in model.values() for read in found}
        assert sorted(unread) == sorted(before - after)
    for name in "abcd":
        read = make_key(name, kind="Secret")
        assert set(dependents.of(read)) == {owner for owner, found in model.items() if read in found}
    assert {owner: dependents.reads_of(owner) for owner in model} == model
    for owner in model:
        dependents.record(owner, [])
    assert not dependents._reads
    assert not dependents._owners


@given(st.lists(st.sampled_from(NAMES), max_size=15), st.randoms(use_true_random=False))
def test_ids_are_injective_and_independent_of_the_order_of_arrival(names: list[str], rng: random.Random) -> None:
    table, shuffled = IdTable(lambda read: None), IdTable(lambda read: None)
    other_order = list(names)
    rng.shuffle(other_order)
    for name in names:
        table.use("routes", name, BORN[name])
    for name in other_order:
        shuffled.use("routes", name, BORN[name])
    ids = {name: table.id_of("routes", name) for name in names}
    assert len(set(ids.values())) == len(ids)
    assert ids == {name: shuffled.id_of("routes", name) for name in names}
    oldest = min(ids.keys() - {"lone"}, key=lambda name: BORN[name].created, default="")
    assert all((ids[name] == short_id(name)) == (name in (oldest, "lone")) for name in ids)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(NAMES)), max_size=25), st.booleans(), st.booleans())
def test_readers_of_an_id_are_notified_when_it_changes(
    steps: list[tuple[bool, str]], settled: bool, compatible: bool
) -> None:
    """`known` is what readers know; they read again when notified."""
    heard: set[Read] = set()
    table = IdTable(heard.add, compatible=compatible)
    if settled:
        table.settle()
    known = {name: table.id_of("routes", name) for name in NAMES}
    used: list[str] = []
    for use, name in steps:
        if use:
            used.append(name)
            table.use("routes", name, BORN[name])
        elif name in used:
            used.remove(name)
            table.release("routes", name, BORN[name])
        stale = {name for name in NAMES if table.id_of("routes", name) != known[name]}
        assert {id_read("routes", name) for name in stale} == heard
        assert not (settled and stale)
        assert len({table.id_of("routes", name) for name in used}) == len(set(used))
        known.update({name: table.id_of("routes", name) for name in stale})
        heard.clear()
    for name in used:
        table.release("routes", name, BORN[name])
    for name in NAMES:
        table.forget(id_read("routes", name))
    assert not table.known("routes")
    assert not table._holders
    assert not table._others


def _in_every_order(wishes: dict[Claimant, tuple[Record, ...]], rng: random.Random) -> Desired:
    desired = Desired(IdTable(lambda read: None))
    order = [claimant for claimant in wishes for _ in range(2)]
    rng.shuffle(order)
    seen: set[Claimant] = set()
    for claimant in order:
        # The first of an owner's two translations publishes something else, which must leave no trace.
        desired.replace(claimant, wishes[claimant] if claimant in seen else wishes[claimant][1:])
        seen.add(claimant)
    return desired


def _wanted(wishes: dict[Claimant, tuple[Record, ...]], cluster: str) -> dict[RecordKey, Record]:
    want: dict[RecordKey, Record] = {}
    for claimant in sorted(wishes, reverse=True):
        last = {record.key: record for record in wishes[claimant]}
        want.update({key: item for key, item in last.items() if item.clusters is None or cluster in item.clusters})
    return want


wish_lists = st.dictionaries(claimants, st.lists(records, max_size=4).map(tuple), max_size=3).map(
    lambda wishes: {c: wishes[c] for c in {claimant.owner: claimant for claimant in wishes}.values()}
)


@given(wish_lists, st.randoms(use_true_random=False))
def test_desired_records_are_those_of_the_oldest_owners_in_any_order(
    wishes: dict[Claimant, tuple[Record, ...]], rng: random.Random
) -> None:
    desired = _in_every_order(wishes, rng)
    for cluster in ("east", "west"):
        assert desired.records(cluster) == _wanted(wishes, cluster)
        assert desired.counts(cluster) == Counter(key.kind for key in desired.records(cluster))
    for claimant in wishes:
        desired.replace(claimant, [])
    assert all(not kept for name, kept in vars(desired).items() if name != "_ids")
    assert not desired._ids._ids


@given(st.lists(st.tuples(claimants, st.lists(records, max_size=3)), max_size=8))
def test_changes_contain_dirty_records_and_contested_owners(
    steps: list[tuple[Claimant, list[Record]]],
) -> None:
    desired = Desired(IdTable(lambda read: None))
    for claimant, wish in steps:
        before = {cluster: desired.records(cluster) for cluster in ("east", "west")}
        lost = {owner: desired.lost(owner) for owner in OWNERS}
        change = desired.replace(claimant, wish)
        for cluster, had in before.items():
            has = desired.records(cluster)
            assert {key for key in {*had, *has} if had.get(key) != has.get(key)} <= change.dirty
        reported = {owner for owner in OWNERS if owner != claimant.owner and desired.lost(owner) != lost[owner]}
        assert reported <= change.contested


@given(
    st.lists(
        st.tuples(
            st.sampled_from(OWNERS),
            st.lists(
                st.builds(
                    Hold,
                    st.sampled_from(["routes", "ssls"]),
                    st.sampled_from(["", "a_", "a_b_"]),
                    st.frozensets(st.sampled_from("12")),
                ),
                max_size=2,
            ),
        ),
        max_size=10,
    )
)
def test_holds_cover_what_any_owner_holds_now(steps: list[tuple[ObjectKey, list[Hold]]]) -> None:
    desired = Desired(IdTable(lambda read: None))
    model: dict[ObjectKey, list[Hold]] = {}
    for owner, holds in steps:
        desired.hold(Claimant("", owner), holds)
        model[owner] = holds
    for key in (RecordKey("routes", "1"), RecordKey("ssls", "2"), RecordKey("upstreams", "1")):
        for name in ("", "a", "a_b", "a_b_c"):
            want = any(_covers(hold, key, name) for holds in model.values() for hold in holds)
            assert desired.is_held(key, name) is want
    for owner in model:
        desired.hold(Claimant("", owner), [])
    assert not desired._protected


def _covers(hold: Hold, key: RecordKey, name: str) -> bool:
    by_name = bool(hold.prefix) and name.startswith(hold.prefix)
    return hold.kind == key.kind and (key.id in hold.ids or by_name)


def _distinct(found: Sequence[tuple[Claimant, UpstreamClaim]]) -> list[tuple[Claimant, UpstreamClaim]]:
    firsts: dict[UpstreamClaim, Claimant] = {}
    for claimant, claim in found:
        firsts.setdefault(claim, claimant)
    return [(claimant, claim) for claim, claimant in firsts.items()]


@given(st.lists(st.tuples(claimants, st.frozensets(claim_values, max_size=3)), max_size=10))
def test_claims_are_kept_by_owner_and_changes_are_returned(
    steps: list[tuple[Claimant, frozenset[UpstreamClaim]]],
) -> None:
    claims = Claims()
    model: dict[ObjectKey, tuple[Claimant, frozenset[UpstreamClaim]]] = {}
    targets = [make_key(name, kind="Service") for name in ("web", "api")]
    for claimant, wish in steps:
        before = {target: claims.distinct(target) for target in targets}
        changed = claims.replace(claimant, wish)
        model[claimant.owner] = (claimant, wish)
        assert changed == {target for target in targets if claims.distinct(target) != before[target]}
    for target in targets:
        want = {(who, claim) for who, wish in model.values() for claim in wish if claim.target == target}
        got = claims.of(target)
        assert (len(got), set(got)) == (len(want), want)
        assert [who for who, _ in got] == sorted(who for who, _ in want)
        assert list(claims.distinct(target)) == _distinct(got)
    assert all(claims.claims_of(owner) == wish for owner, (_, wish) in model.items())
    for claimant, _ in model.values():
        claims.replace(claimant, [])
    assert all(not kept for kept in vars(claims).values())


@given(st.permutations([(Claimant(age, owner), owner.name) for age, owner in zip("122", OWNERS, strict=True)]))
def test_claims_are_listed_in_one_order_regardless_of_arrival(arrivals: list[tuple[Claimant, str]]) -> None:
    claims = Claims()
    for claimant, _ in arrivals:
        claims.replace(claimant, [make_claim(port=81), make_claim(port=80)])
    got = [(claimant.owner.name, claim.port) for claimant, claim in claims.of(make_key("web", kind="Service"))]
    assert got == [("a", 80), ("a", 81), ("b", 80), ("b", 81), ("c", 80), ("c", 81)]


ROUTES = tuple(
    make_route(f"r{number}", created=str(number % 3), records=dict.fromkeys(names, f"/{number}"), claims=["web"])
    for number, names in enumerate(
        (COLLIDING[:2], COLLIDING[1:3], COLLIDING[2:], ("lone",), ("lone", COLLIDING[0])),
    )
)


def _outcome(loop: ProviderHarness) -> tuple[dict[str, Any], dict[ObjectKey, list[str]]]:
    reports = {owner: [str(problem) for problem in report.problems] for owner, report in loop.world.reports.items()}
    return {str(key): record.body for key, record in loop.world.desired.records("any").items()}, reports


@settings(max_examples=50)
@given(st.permutations(ROUTES), st.lists(st.booleans(), min_size=len(ROUTES), max_size=len(ROUTES)))
def test_any_order_of_events_yields_the_same_records_without_leaks(
    routes: list[CustomObject], pauses: list[bool]
) -> None:
    """Routes share records and CRCs; one of them is deleted and re-created."""
    with pytest.MonkeyPatch.context() as monkeypatch, capture_logs():
        straight, loop = ProviderHarness(monkeypatch), ProviderHarness(monkeypatch)
        straight.settle(*ROUTES)
        for route, pause in zip(routes, pauses, strict=True):
            loop.put(route)
            if pause:
                loop.registry.settle()
        loop.delete(routes[0])
        loop.settle()
        loop.settle(routes[0])
        assert _outcome(loop) == _outcome(straight)
        for route in routes:
            loop.delete(route)
        loop.settle()
    world = loop.world
    assert _outcome(loop) == ({}, {})
    kept = {**vars(world.claims), **vars(world.dependents), **vars(world.ids), **vars(world.desired)}
    assert [name for name, value in kept.items() if isinstance(value, dict) and value] == []
