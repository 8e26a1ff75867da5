"""What is written, for every combination of desired and observed records."""

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.plan import DELETE, HOLD, NOTHING, Plan, Step, decide, explained, unusual
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import short_id, wide_id
from apisix_ingress.model.records import Record
from tests.fakes.gateway import FakeWanted, make_record
from tests.forging import forge

UPSTREAM = RecordKey("upstreams", "u1")
CONFIG = RecordKey("plugin_configs", "p1")
ROUTE = RecordKey("routes", "r1")
ROUTE_RECORD = make_record(ROUTE, upstream_id="u1")


def make_table(*records: Record, foreign: tuple[RecordKey, ...] = ()) -> RecordTable:
    """Return a table in which these records were listed."""
    table = RecordTable()
    for record in records:
        table.found(table.slot(record.key), ObservedRecord(record.digest, record.refs, record.name))
    for key in foreign:
        table.foreign(table.slot(key))
    return table


def step(record: Record | None, table: RecordTable, key: RecordKey = ROUTE, *held: RecordKey) -> Step:
    return decide(key, {key: record}.get, table, lambda key, name, hosts, sources: key in held)


def lose(table: RecordTable, key: RecordKey, record: Record | None) -> None:
    table.write_started(table.slot(key), record)
    table.write_unknown(table.slot(key))


def test_record_whose_references_exist_is_put() -> None:
    assert step(ROUTE_RECORD, make_table(make_record(UPSTREAM))) == Step("put", ROUTE_RECORD)


def test_a_record_waits_for_its_references() -> None:
    assert step(ROUTE_RECORD, make_table()) == Step("wait", ROUTE_RECORD, UPSTREAM)


def test_record_may_name_one_of_others() -> None:
    assert step(ROUTE_RECORD, make_table(foreign=(UPSTREAM,))) == Step("put", ROUTE_RECORD)


def test_an_equal_listed_record_needs_no_write() -> None:
    assert step(ROUTE_RECORD, make_table(ROUTE_RECORD)) == NOTHING


def test_a_written_record_needs_no_write() -> None:
    table = make_table()
    table.write_started(table.slot(ROUTE), ROUTE_RECORD)
    table.write_succeeded(table.slot(ROUTE))
    assert step(ROUTE_RECORD, table) == NOTHING
    assert step(make_record(ROUTE, upstream_id="u1"), table) == NOTHING


def test_change_that_a_gateway_never_shows_is_put_if_we_wrote_the_former_one() -> None:
    key = RecordKey("ssls", "s1")
    table = make_table()
    table.write_started(table.slot(key), make_record(key, cert="c", key="old"))
    table.write_succeeded(table.slot(key))
    record = make_record(key, cert="c", key="new")
    assert step(record, table, key) == Step("put", record)
    assert step(record, make_table(make_record(key, cert="c")), key) == NOTHING


def test_record_under_a_key_of_others_is_refused() -> None:
    assert step(ROUTE_RECORD, make_table(foreign=(ROUTE,))) == Step("refuse", ROUTE_RECORD)


def test_record_for_existing_ones_only_is_not_created() -> None:
    record = make_record(UPSTREAM, existing_only=True, nodes={"a": 1})
    assert step(record, make_table(), UPSTREAM) == NOTHING
    assert step(record, make_table(make_record(UPSTREAM)), UPSTREAM) == Step("put", record)


def test_record_for_existing_ones_only_is_written_after_a_lost_update_but_not_after_a_lost_creation() -> None:
    record = make_record(UPSTREAM, existing_only=True, nodes={"a": 1})
    updated, created = make_table(make_record(UPSTREAM)), make_table()
    lose(updated, UPSTREAM, record)
    lose(created, UPSTREAM, record)
    assert step(record, updated, UPSTREAM) == Step("put", record)
    assert step(record, created, UPSTREAM) == NOTHING


def test_lost_write_is_written_again_and_is_not_relied_on_if_it_was_a_creation() -> None:
    upstream = make_record(UPSTREAM)
    created, updated = make_table(), make_table(make_record(UPSTREAM, nodes={}))
    for table in (created, updated):
        lose(table, UPSTREAM, upstream)
        assert step(upstream, table, UPSTREAM) == Step("put", upstream)
    assert step(ROUTE_RECORD, created) == Step("wait", ROUTE_RECORD, UPSTREAM)
    assert step(ROUTE_RECORD, updated) == Step("put", ROUTE_RECORD)


def test_record_that_is_being_deleted_is_not_relied_on() -> None:
    table = make_table(make_record(UPSTREAM))
    table.write_started(table.slot(UPSTREAM), None)
    assert step(ROUTE_RECORD, table) == Step("wait", ROUTE_RECORD, UPSTREAM)
    table.write_failed(table.slot(UPSTREAM))
    assert step(ROUTE_RECORD, table) == Step("put", ROUTE_RECORD)


def test_an_undesired_record_is_deleted() -> None:
    assert step(None, make_table(ROUTE_RECORD)) == DELETE
    assert step(None, make_table()) == NOTHING


def test_an_undesired_lost_record_is_deleted() -> None:
    table = make_table()
    lose(table, ROUTE, ROUTE_RECORD)
    assert step(None, table) == DELETE


def test_held_record_stays() -> None:
    assert step(None, make_table(ROUTE_RECORD), ROUTE, ROUTE) == HOLD


def test_a_hold_is_looked_up_by_the_name_in_the_gateway() -> None:
    nothing = dict[RecordKey, Record]()
    got = decide(
        ROUTE,
        nothing.get,
        make_table(ROUTE_RECORD),
        lambda key, name, hosts, sources: (key, name) == (ROUTE, "name-r1"),
    )
    assert got == HOLD


@pytest.mark.parametrize(("wanted", "want"), [((), {"certs/client"}), ((make_record(UPSTREAM),), set())])
def test_a_hold_depends_on_the_secrets_of_referenced_records_that_are_to_stay(
    wanted: tuple[Record, ...], want: set[str]
) -> None:
    table, seen = make_table(ROUTE_RECORD), set[str]()
    table.found(table.slot(UPSTREAM), ObservedRecord(b"", secrets=("certs/client",)))

    def is_held(key: RecordKey, name: str, hosts: tuple[str, ...] | None, sources: tuple[str, ...]) -> bool:
        seen.update(sources)
        return True

    assert decide(ROUTE, {record.key: record for record in wanted}.get, table, is_held) == HOLD
    assert seen == want


def test_delete_waits_for_the_last_record_that_names_it() -> None:
    other = make_record(RecordKey("routes", "r2"), upstream_id="u1")
    table = make_table(make_record(UPSTREAM), ROUTE_RECORD, other)
    assert step(None, table, UPSTREAM) == Step("wait", None, ROUTE)
    table.write_started(table.slot(ROUTE), None)
    table.write_succeeded(table.slot(ROUTE))
    assert step(None, table, UPSTREAM) == Step("wait", None, other.key)
    table.write_started(table.slot(other.key), make_record(other.key, upstream_id="u2"))
    assert step(None, table, UPSTREAM) == Step("wait", None, other.key)
    table.write_succeeded(table.slot(other.key))
    assert step(None, table, UPSTREAM) == DELETE


@pytest.mark.parametrize(("old", "new"), [("u1", "u2"), ("u2", "u1")])
def test_delete_waits_for_both_bodies_of_a_lost_write(old: str, new: str) -> None:
    table = make_table(make_record(UPSTREAM), make_record(ROUTE, upstream_id=old))
    lose(table, ROUTE, make_record(ROUTE, upstream_id=new))
    assert step(None, table, UPSTREAM) == Step("wait", None, ROUTE)


def test_delete_waits_for_a_traffic_split() -> None:
    split = {"traffic-split": {"rules": [{"weighted_upstreams": [{"upstream_id": "u1"}]}]}}
    table = make_table(make_record(UPSTREAM), make_record(CONFIG, plugins=split))
    assert step(None, table, UPSTREAM) == Step("wait", None, CONFIG)


def test_refused_write_leaves_the_former_references() -> None:
    table = make_table(make_record(UPSTREAM), ROUTE_RECORD)
    table.write_started(table.slot(ROUTE), make_record(ROUTE, upstream_id="u2"))
    table.write_failed(table.slot(ROUTE))
    assert list(table.referrers(UPSTREAM)) == [ROUTE]
    assert not table.referrers(RecordKey("upstreams", "u2"))


def test_refused_creation_leaves_no_references() -> None:
    table = make_table()
    table.write_started(table.slot(ROUTE), ROUTE_RECORD)
    table.write_failed(table.slot(ROUTE))
    assert not table.referrers(UPSTREAM)


def test_record_that_is_reported_missing_is_written_again() -> None:
    upstream = make_record(UPSTREAM)
    table = make_table(upstream)
    table.reported_missing(table.slot(UPSTREAM))
    table.reported_missing(table.slot(CONFIG))
    assert step(upstream, table, UPSTREAM) == Step("put", upstream)
    assert table.records() == {UPSTREAM}


def test_a_vanished_record_refers_to_nothing() -> None:
    table = make_table(make_record(UPSTREAM), ROUTE_RECORD)
    table.missing(table.slot(ROUTE))
    assert step(None, table, UPSTREAM) == DELETE


def test_plan_puts_in_rank_and_deletes_in_reverse_rank() -> None:
    split = {"traffic-split": {"rules": [{"weighted_upstreams": [{"upstream_id": "u1"}]}]}}
    new = [
        make_record(ROUTE, upstream_id="u1", plugin_config_id="p1"),
        make_record(CONFIG, plugins=split),
        make_record(UPSTREAM),
    ]
    old = [make_record(RecordKey(r.key.kind, "old"), **{**r.body, "id": "old"}) for r in new]
    held = make_record(RecordKey("ssls", "held"))
    stranger = make_record(RecordKey("ssls", "theirs"))
    equal = make_record(RecordKey("ssls", "equal"))
    wanted = FakeWanted([*new, stranger, equal])
    wanted.held.add(held.key)
    table = make_table(*reversed(old), held, equal, foreign=(stranger.key,))
    keys = {*table.records(), *wanted.keys()}
    want = Plan(
        upserts=(UPSTREAM, CONFIG, ROUTE),
        deletes=(RecordKey("routes", "old"), RecordKey("plugin_configs", "old"), RecordKey("upstreams", "old")),
        held=(held.key,),
        refused=(stranger.key,),
    )
    wanted_at = {record.key: record for record in (*new, stranger, equal)}.get
    assert Plan.of([(key, decide(key, wanted_at, table, wanted.is_held)) for key in keys], wanted_at) == want


@pytest.mark.parametrize(
    ("deletes", "known", "owned", "want"),
    [
        (20, 0, 20, 0),
        (21, 0, 21, 21),
        (21, 0, 70, 0),
        (22, 0, 70, 22),
        (30, 9, 30, 21),
        (30, 10, 30, 0),
        (100, 100, 100, 0),
    ],
)
def test_unusual_number_of_unexplained_deletes_is_held_back(deletes: int, known: int, owned: int, want: int) -> None:
    keys = [RecordKey("routes", str(n)) for n in range(deletes)]
    assert unusual(keys, set(keys[:known]), owned) == frozenset(keys[known:] if want else [])


def test_records_that_settings_refuse_and_what_only_they_refer_to_are_explained() -> None:
    first, second = (make_record(RecordKey("routes", each), upstream_id=each) for each in ("u1", "u2"))
    kept = make_record(RecordKey("routes", "r3"), upstream_id="u2")
    upstreams = [make_record(RecordKey("upstreams", each)) for each in ("u1", "u2", "u3")]
    table = make_table(first, second, kept, *upstreams)
    deletes = [first.key, second.key, *(each.key for each in upstreams)]

    refused = {(each.key, each.name) for each in (first, second)}

    got = explained(deletes, table, lambda key, name: (key, name) in refused)

    assert got == {first.key, second.key, upstreams[0].key}


# Two names with one CRC-32.

VICTIM = "victim_bank_80"
FORGED = forge(VICTIM, "evil_", "_80")
SHORT, WIDE = RecordKey("upstreams", short_id(VICTIM)), RecordKey("upstreams", wide_id(VICTIM))


def named(key: RecordKey, name: str, **fields: Any) -> Record:
    record = make_record(key, name=name)
    return Record(key, name, record.body, **fields)


def decided(table: RecordTable, *wanted: Record, held: tuple[str, ...] = ()) -> Step:
    """Return the planned action for the short id."""
    records = {record.key: record for record in wanted}
    return decide(SHORT, records.get, table, lambda key, name, hosts, sources: name in held)


def test_id_of_another_name_is_never_written_in_place() -> None:
    assert decided(make_table(named(SHORT, VICTIM)), named(SHORT, FORGED)) == DELETE


def test_an_id_of_another_name_is_kept_until_all_referrers_have_moved() -> None:
    route, forged, moved = make_record(ROUTE, upstream_id=SHORT.id), named(SHORT, FORGED), named(WIDE, VICTIM)
    table = make_table(named(SHORT, VICTIM), route)
    assert decided(table, forged) == Step("wait", forged, ROUTE)
    wanted = make_record(ROUTE, upstream_id=WIDE.id)
    assert decided(table, forged, moved, wanted) == Step("wait", forged, ROUTE)
    table.write_started(table.slot(ROUTE), wanted)
    assert decided(table, forged, moved, wanted) == Step("wait", forged, ROUTE)
    table.write_succeeded(table.slot(ROUTE))
    assert decided(table, forged, moved, wanted) == DELETE


def test_id_that_only_those_name_who_mean_the_new_name_is_written() -> None:
    """A gateway was restored to a time when another name had the id: waiting for its referrers would never end."""
    route, forged = make_record(ROUTE, upstream_id=SHORT.id), named(SHORT, FORGED)
    assert decided(make_table(named(SHORT, VICTIM), route), forged, route) == Step("put", forged)


def test_id_of_a_name_whose_object_cannot_be_translated_stays_with_it() -> None:
    forged = named(SHORT, FORGED)
    assert decided(make_table(named(SHORT, VICTIM)), forged, held=(VICTIM,)) == Step("hold", forged)


def test_record_for_existing_ones_only_leaves_that_of_another_name_alone() -> None:
    assert decided(make_table(named(SHORT, VICTIM)), named(SHORT, FORGED, existing_only=True)) == NOTHING


@pytest.mark.parametrize(("there", "want"), [(VICTIM, "wait"), (FORGED, "put"), ("edited", "put")])
def test_record_waits_for_what_it_names_while_another_name_has_its_id(there: str, want: str) -> None:
    route = replace(make_record(ROUTE, upstream_id=SHORT.id), meant={SHORT: FORGED})
    got = decide(ROUTE, {ROUTE: route}.get, make_table(named(SHORT, there)), lambda key, name, hosts, sources: False)
    assert (got.act, got.record) == (want, route)


def test_an_id_is_kept_while_a_referrer_uses_it_for_the_other_name() -> None:
    """An object that cannot be translated may desire a version from when another name had the id."""
    route, forged = replace(make_record(ROUTE, upstream_id=SHORT.id), meant={SHORT: VICTIM}), named(SHORT, FORGED)
    assert decided(make_table(named(SHORT, VICTIM), route), forged, route) == Step("wait", forged, ROUTE)


def test_a_manually_edited_name_is_repaired_in_place() -> None:
    record = named(SHORT, VICTIM)
    assert decided(make_table(named(SHORT, "edited")), record) == Step("put", record)


def test_an_id_that_changes_owner_is_not_a_delete_of_a_sweep() -> None:
    table, record = make_table(named(SHORT, VICTIM)), named(SHORT, FORGED)
    assert Plan.of([(SHORT, decided(table, record))], {SHORT: record}.get) == Plan(upserts=(SHORT,))
