"""Records by owner, conflicts and holds."""

from typing import Any

import pytest

from apisix_ingress.model.keys import IndexKey, RecordKey
from apisix_ingress.model.names import wide_id
from apisix_ingress.model.records import Record
from apisix_ingress.state.claims import Claimant
from apisix_ingress.state.desired import Change, Desired
from apisix_ingress.state.holds import Hold
from apisix_ingress.state.ids.id_table import IdTable, id_read
from tests.factories import COLLIDING, make_claimant, make_record

OLD, NEW = make_claimant("z", created="2026-01-01T00:00:00Z"), make_claimant("a", created="2026-02-01T00:00:00Z")
ONE, OTHER = make_record("one"), make_record("other")


def make_desired() -> Desired:
    return Desired(IdTable(lambda read: None))


def test_new_records_are_dirty_and_wanted_by_every_cluster() -> None:
    desired = make_desired()
    assert desired.replace(OLD, [ONE, OTHER]) == Change(frozenset({ONE.key, OTHER.key}))
    assert desired.records("any") == {ONE.key: ONE, OTHER.key: OTHER}
    assert desired.keys() == (ONE.key, OTHER.key)
    assert desired.of_owner(OLD.owner) == {ONE.key: ONE, OTHER.key: OTHER}
    assert desired.owners_of(ONE.key) == (OLD.owner,)


def test_equal_records_again_are_not_dirty() -> None:
    desired = make_desired()
    desired.replace(OLD, [ONE])
    assert desired.replace(OLD, [make_record("one")]) == Change()


def test_changed_added_and_dropped_records_are_dirty() -> None:
    desired = make_desired()
    kept, changed, added = make_record("kept"), make_record("one", body={"uri": "/b"}), make_record("added")
    desired.replace(OLD, [kept, ONE, OTHER])
    got = desired.replace(OLD, [kept, changed, added])
    assert got.dirty == {ONE.key, OTHER.key, added.key}
    assert desired.get(ONE.key, "c") == changed
    assert desired.get(OTHER.key, "c") is None


def test_the_last_record_of_a_key_is_used() -> None:
    desired = make_desired()
    last = make_record("one", body={"uri": "/last"})
    desired.replace(OLD, [ONE, last])
    assert desired.records("c") == {ONE.key: last}


@pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD)])
def test_older_owner_wins_in_any_order_of_arrival(order: tuple[Claimant, Claimant]) -> None:
    desired = make_desired()
    for claimant in order:
        desired.replace(claimant, [make_record("one", body={"by": claimant.owner.name})])
    assert desired.records("c") == {ONE.key: make_record("one", body={"by": "z"})}
    assert desired.owners_of(ONE.key) == (OLD.owner, NEW.owner)
    assert desired.lost(NEW.owner) == {ONE.key: OLD.owner}
    assert desired.lost(OLD.owner) == {}


def test_owners_of_one_age_are_ordered_by_their_keys() -> None:
    desired = make_desired()
    for name in ("b", "a"):
        desired.replace(make_claimant(name), [ONE])
    assert [owner.name for owner in desired.owners_of(ONE.key)] == ["a", "b"]


def test_rivals_are_notified_when_one_is_added_and_removed() -> None:
    desired = make_desired()
    desired.replace(NEW, [make_record("one", body={"by": "new"})])
    assert desired.replace(OLD, [ONE]) == Change(frozenset({ONE.key}), frozenset({NEW.owner}))
    assert desired.replace(OLD, []) == Change(frozenset({ONE.key}), frozenset({NEW.owner}))
    assert desired.records("c") == {ONE.key: make_record("one", body={"by": "new"})}


def test_publishing_the_same_record_again_causes_no_conflict() -> None:
    desired = make_desired()
    desired.replace(NEW, [ONE])
    desired.replace(OLD, [ONE])
    assert desired.replace(NEW, [ONE]) == Change()


def test_records_of_other_clusters_do_not_conflict() -> None:
    desired = make_desired()
    east, west = (make_record("one", clusters=frozenset({name}), body={"at": name}) for name in ("east", "west"))
    desired.replace(OLD, [east])
    desired.replace(NEW, [west])
    assert (desired.get(ONE.key, "east"), desired.get(ONE.key, "west")) == (east, west)
    assert desired.records("north") == {}
    assert [desired.counts(name) for name in ("east", "west", "north")] == [{"routes": 1}, {"routes": 1}, {}]
    assert (desired.lost(NEW.owner), desired.lost(OLD.owner)) == ({}, {})


def test_rival_is_contested_when_the_winner_moves_to_its_cluster() -> None:
    desired = make_desired()
    desired.replace(OLD, [make_record("one", clusters=frozenset({"east"}))])
    desired.replace(NEW, [make_record("one", clusters=frozenset({"west"}))])
    got = desired.replace(OLD, [make_record("one", clusters=frozenset({"west"}))])
    assert got.contested == {NEW.owner}
    assert desired.lost(NEW.owner) == {ONE.key: OLD.owner}


def test_a_record_for_no_cluster_is_desired_nowhere() -> None:
    desired = make_desired()
    desired.replace(OLD, [make_record("one", clusters=frozenset())])
    assert (desired.records("c"), desired.lost(OLD.owner)) == ({}, {})


def test_names_of_one_owner_with_one_crc_are_both_published_in_the_end() -> None:
    heard: list[IndexKey] = []
    ids = IdTable(heard.append)
    desired = Desired(ids)

    def publish() -> None:
        names = COLLIDING[:2]
        desired.replace(OLD, [make_record(name, id=ids.id_of("routes", name)) for name in names])

    publish()
    publish()
    assert heard == [id_read("routes", COLLIDING[1])]
    assert {record.name: record.key.id for record in desired.records("c").values()} == {
        COLLIDING[0]: "849e9177",
        COLLIDING[1]: wide_id(COLLIDING[1]),
    }


@pytest.mark.parametrize("settled", [False, True])
def test_names_that_are_published_or_held_are_in_use_until_they_are_neither(settled: bool) -> None:
    ids = IdTable(lambda read: None)
    if settled:
        ids.settle()
    desired = Desired(ids)
    hold = Hold("routes", names=frozenset({COLLIDING[0]}))
    for records, holds in (((COLLIDING[0],), ()), ((COLLIDING[0],), (hold,)), ((), (hold,))):
        desired.replace(OLD, map(make_record, records))
        desired.hold(OLD, holds)
        assert ids.names(RecordKey("routes", "849e9177")) == COLLIDING[:1]
    desired.hold(OLD, [])
    assert ids.names(RecordKey("routes", "849e9177")) == ()


@pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD)])
def test_object_that_cannot_be_translated_has_its_id_by_age_as_any_other(order: tuple[Claimant, Claimant]) -> None:
    ids = IdTable(lambda read: None)
    desired = Desired(ids)
    for claimant in order:
        if claimant is OLD:
            desired.hold(OLD, [Hold("ssls", names=frozenset({COLLIDING[1]}))])
        else:
            desired.replace(NEW, [make_record(COLLIDING[0], kind="ssls")])
    assert ids.id_of("ssls", COLLIDING[1]) == "849e9177"
    assert ids.id_of("ssls", COLLIDING[0]) == wide_id(COLLIDING[0])


def test_a_recreated_object_has_its_new_age() -> None:
    ids = IdTable(lambda read: None)
    desired = Desired(ids)
    desired.replace(OLD, [make_record(COLLIDING[0])])
    desired.replace(make_claimant("b", created="2026-01-15T00:00:00Z"), [make_record(COLLIDING[1])])
    desired.replace(Claimant("2026-03-01T00:00:00Z", OLD.owner), [make_record(COLLIDING[0])])
    assert ids.id_of("routes", COLLIDING[1]) == "849e9177"


def test_owners_without_records_and_holds_are_forgotten() -> None:
    desired = make_desired()
    desired.replace(OLD, [ONE, OTHER])
    desired.replace(NEW, [ONE])
    desired.hold(OLD, [Hold("routes", "default_web_", frozenset({"1"}))])
    for claimant in (OLD, NEW):
        desired.replace(claimant, [])
        desired.hold(claimant, [])
    assert all(not kept for name, kept in vars(desired).items() if name != "_ids")


def test_hold_covers_ids_and_names_of_its_kind() -> None:
    desired = make_desired()
    desired.hold(OLD, [Hold("routes", "default_web_"), Hold("ssls", ids=frozenset({"1", "2"}))])
    held = {
        ("routes", "9", "default_web_rule"): True,
        ("routes", "9", "default_web_"): True,
        ("routes", "9", "default_website_rule"): False,
        ("routes", "9", ""): False,
        ("routes", "1", ""): False,
        ("stream_routes", "9", "default_web_rule"): False,
        ("ssls", "2", ""): True,
        ("ssls", "3", "default_web_rule"): False,
    }
    got = {key: desired.is_held(RecordKey(key[0], key[1]), key[2]) for key in held}  # type: ignore[arg-type]
    assert got == held


def test_a_hold_covers_both_ids_of_a_name_but_no_other_name() -> None:
    desired, name = make_desired(), COLLIDING[0]
    desired.hold(OLD, [Hold("upstreams", names=frozenset({name}))])
    held = {
        ("849e9177", name): True,
        (wide_id(name), name): True,
        ("849e9177", ""): True,
        (wide_id(name), ""): True,
        ("849e9177", "edited by hand"): True,
        ("849e9177", COLLIDING[1]): False,
        (wide_id(COLLIDING[1]), COLLIDING[1]): False,
        (wide_id(f"{name}_80"), f"{name}_80"): False,
        ("9", ""): False,
    }
    assert {(id_, reported): desired.is_held(RecordKey("upstreams", id_), reported) for id_, reported in held} == held
    assert not desired.is_held(RecordKey("routes", "849e9177"), name)


def test_hold_of_nothing_covers_nothing() -> None:
    desired = make_desired()
    desired.hold(OLD, [Hold("routes")])
    assert not desired.is_held(RecordKey("routes", "1"), "default_web_rule")


def test_hold_lasts_until_its_last_owner_lifts_it() -> None:
    desired, key = make_desired(), RecordKey("routes", "1")
    for claimant in (OLD, NEW):
        desired.hold(claimant, [Hold("routes", "default_", frozenset({"1"}))])
    desired.hold(OLD, [])
    assert desired.is_held(key, "") is desired.is_held(RecordKey("routes", "2"), "default_web") is True
    desired.hold(NEW, [Hold("routes", "other_")])
    assert desired.is_held(key, "") is desired.is_held(RecordKey("routes", "2"), "default_web") is False
    assert desired.is_held(key, "other_web")


def make_rule(name: str, *plugins: str, **fields: Any) -> Record:
    return make_record(name, kind="global_rules", id=name, body={"plugins": {each: {} for each in plugins}}, **fields)


@pytest.mark.parametrize("order", [(OLD, NEW), (NEW, OLD)])
def test_conflicting_records_of_older_owners_are_returned_youngest_first(
    order: tuple[Claimant, Claimant],
) -> None:
    desired = make_desired()
    rules = {OLD: make_rule("z", "cors", "echo"), NEW: make_rule("a", "gzip", "cors")}
    for claimant in order:
        desired.replace(claimant, [rules[claimant]])
    newest = make_rule("n", "cors")
    desired.replace(make_claimant("x", created="9"), [newest])
    desired.replace(make_claimant("m"), [make_rule("m", "csrf"), make_record("cors")])
    reported = {record.name: list(desired.older_takers(record.key, "c")) for record in (*rules.values(), newest)}
    assert reported == {"z": [], "a": [rules[OLD].key], "n": [rules[NEW].key, rules[OLD].key]}
    assert list(desired.older_takers(make_rule("m").key, "c")) == []
    assert list(desired.older_takers(make_record("cors").key, "c")) == []
    desired.replace(OLD, [make_rule("z", "echo")])
    assert list(desired.older_takers(newest.key, "c")) == [rules[NEW].key]
    desired.replace(NEW, [])
    assert list(desired.older_takers(newest.key, "c")) == []
    assert list(desired.older_takers(rules[NEW].key, "c")) == []


def test_a_record_of_another_cluster_has_no_older_takers() -> None:
    desired = make_desired()
    east, west = (make_rule(name, "cors", clusters=frozenset({name})) for name in ("east", "west"))
    desired.replace(OLD, [east])
    desired.replace(NEW, [west])
    assert list(desired.older_takers(west.key, "east")) == []
    assert list(desired.older_takers(west.key, "west")) == [east.key]  # whether it is desired there is not checked


def test_a_record_with_a_new_owner_has_the_age_of_that_owner() -> None:
    desired = make_desired()
    one, two = make_rule("one", "cors"), make_rule("two", "cors")
    desired.replace(NEW, [one])
    desired.replace(make_claimant("m", created="2026-01-15T00:00:00Z"), [two])
    assert list(desired.older_takers(one.key, "c")) == [two.key]
    desired.replace(OLD, [one])
    assert list(desired.older_takers(two.key, "c")) == [one.key]
    desired.replace(OLD, [])
    assert list(desired.older_takers(one.key, "c")) == [two.key]


def make_consumer(name: str) -> Record:
    return make_record(name, kind="consumers", id=name, body={"plugins": {"key-auth": {"key": "k"}}})


def test_the_holder_of_a_credential_outranks_an_older_owner_that_adds_it_later() -> None:
    ids = IdTable(lambda read: None)
    desired = Desired(ids)
    new, old = make_consumer("new"), make_consumer("old")
    desired.replace(NEW, [new])
    ids.settle()
    desired.replace(OLD, [old])
    assert list(desired.older_takers(new.key, "c")) == []
    assert list(desired.older_takers(old.key, "c")) == [new.key]
    desired.replace(NEW, [])
    desired.replace(NEW, [new])
    assert list(desired.older_takers(new.key, "c")) == [old.key]


def test_consumers_of_before_the_start_are_ordered_by_the_age_of_their_owners() -> None:
    desired = Desired(IdTable(lambda read: None))
    new, old = make_consumer("new"), make_consumer("old")
    desired.replace(NEW, [new])
    desired.replace(OLD, [old])
    assert list(desired.older_takers(new.key, "c")) == [old.key]
