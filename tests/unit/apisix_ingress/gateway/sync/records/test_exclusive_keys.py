"""Records that take over an exclusive value from another one, which a gateway rejects while both have it."""

import asyncio
from typing import Any

import pytest

from apisix_ingress.errors import GatewayError, GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.adminapi.responses import found_of
from apisix_ingress.gateway.backend import DependencyPending
from apisix_ingress.gateway.sync.ordering.write_order import WriteOrder
from apisix_ingress.gateway.sync.records.slot import Applied
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.gateway.sync.records.unique_keys import RELEASE_INTERVAL, UniqueKeys, without_new_keys
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from tests.fakes.gateway import FakeWanted, make_record
from tests.unit.apisix_ingress.gateway.sync.stage import APPLIED, Stage, on_stage

FIRST = RecordKey("global_rules", "first")
SECOND = RecordKey("global_rules", "second")
THIRD = RecordKey("global_rules", "third")


def rule(key: RecordKey, *plugins: str) -> Record:
    return make_record(key, plugins={plugin: {} for plugin in plugins})


class Exclusive:
    """Makes the gateway reject a plugin that another global rule has; records each write and its outcome."""

    def __init__(self, stage: Stage) -> None:
        self.tries: list[tuple[RecordKey, bool]] = []
        self.written: list[tuple[float, RecordKey, list[str]]] = []
        self.empty = 0
        self.on_empty: GatewayError | None = None
        put = stage.backend.put

        async def exclusive(record: Record) -> bool:
            await asyncio.sleep(0)
            if not record.body["plugins"]:
                self.empty += 1
                if self.on_empty is not None:
                    raise self.on_empty
            stored = {key: body for key, body in stage.gateway.stored.items() if key != record.key}
            taken = [key for key, body in stored.items() if body["plugins"].keys() & record.body["plugins"].keys()]
            self.tries.append((record.key, not taken))
            if taken:
                raise DependencyPending(f"already exists in {taken[0]}", holder=taken[0])
            in_doubt = await put(record)
            self.written.append((stage.clock.monotonic(), record.key, sorted(record.body["plugins"])))
            return in_doubt

        stage.backend.put = exclusive  # type: ignore[method-assign]

    def seconds_without(self, key: RecordKey, *any_of: str) -> list[float]:
        """Return the durations for which the record had none of these plugins."""
        found: list[float] = []
        since: float | None = None
        for at, _, plugins in (write for write in self.written if write[1] == key):
            if not set(any_of) & set(plugins):
                since = at if since is None else since
            elif since is not None:
                found.append(at - since)
                since = None
        return found


@on_stage
async def test_keys_of_a_deleted_record_pass_on_with_the_delete() -> None:
    stage = Stage([rule(FIRST, "cors")])
    exclusive = Exclusive(stage)
    async with stage.running():
        stage.want(rule(SECOND, "cors"))
        await asyncio.sleep(0.1)
        assert stage.sync.record_state(SECOND) == APPLIED
    assert stage.log == [("put", str(FIRST)), ("delete", str(FIRST)), ("put", str(SECOND))]
    assert exclusive.tries == [(FIRST, True), (SECOND, False), (SECOND, True)]


@on_stage
async def test_keys_dropped_by_a_changed_record_pass_on_with_the_change() -> None:
    stage = Stage([rule(FIRST, "cors"), rule(SECOND, "gzip")])
    exclusive = Exclusive(stage)
    async with stage.running():
        exclusive.tries.clear()
        stage.want(rule(FIRST, "echo"), rule(SECOND, "gzip", "cors"))
        await asyncio.sleep(0.1)
        assert stage.sync.record_state(SECOND) == APPLIED
    assert exclusive.tries == [(FIRST, True), (SECOND, False), (SECOND, True)]


@on_stage
async def test_records_that_exchange_values_do_not_deadlock() -> None:
    stage = Stage([rule(FIRST, "cors", "echo"), rule(SECOND, "gzip"), rule(THIRD, "csrf")])
    exclusive = Exclusive(stage)
    want = [rule(FIRST, "echo", "gzip"), rule(SECOND, "csrf"), rule(THIRD, "cors")]
    async with stage.running():
        exclusive.tries.clear()
        stage.want(*want)
        await asyncio.sleep(5)
        states = [stage.sync.record_state(record.key) for record in want]
    assert states == [APPLIED, APPLIED, APPLIED]
    assert {record.key: dict(record.body) for record in want} == stage.gateway.stored
    assert len(exclusive.tries) < 30


@on_stage
async def test_a_releasing_record_keeps_the_values_that_stay() -> None:
    stage = Stage()
    exclusive = Exclusive(stage)
    async with stage.running():
        stage.want(rule(FIRST, "cors", "echo"), rule(SECOND, "gzip", "echo2"))
        await asyncio.sleep(5)
        exclusive.written.clear()
        stage.want(rule(FIRST, "gzip", "echo"), rule(SECOND, "cors", "echo2"))
        await asyncio.sleep(5)
        assert [stage.sync.record_state(key) for key in (FIRST, SECOND)] == [APPLIED, APPLIED]
    got = [(key, plugins) for _, key, plugins in exclusive.written]
    lets_go, other = (FIRST, SECOND) if got[0][0] == FIRST else (SECOND, FIRST)
    kept, taken = {FIRST: "echo", SECOND: "echo2"}, {FIRST: "gzip", SECOND: "cors"}
    whole = {key: sorted((kept[key], taken[key])) for key in kept}
    assert got == [(lets_go, [kept[lets_go]]), (other, whole[other]), (lets_go, whole[lets_go])]
    assert exclusive.seconds_without(lets_go, taken[lets_go])[0] < 0.1


@on_stage
async def test_a_record_releasing_after_a_start_keeps_listed_values_and_gets_the_rest_at_once() -> None:
    """The desired configuration of a plugin that it keeps may change too: no other record waits for that plugin."""
    stored = [rule(FIRST, "cors", "echo"), rule(SECOND, "gzip", "echo2")]
    want = {
        FIRST: make_record(FIRST, plugins={"gzip": {}, "echo": {"n": 2}}),
        SECOND: make_record(SECOND, plugins={"cors": {}, "echo2": {"n": 2}}),
    }
    stage = Stage(list(want.values()), stored=stored)
    exclusive = Exclusive(stage)
    async with stage.running():
        await asyncio.sleep(10)
        assert [stage.sync.record_state(key) for key in want] == [APPLIED, APPLIED]
    got = [(key, plugins) for _, key, plugins in exclusive.written]
    lets_go, other = (FIRST, SECOND) if got[0][0] == FIRST else (SECOND, FIRST)
    kept = {FIRST: "echo", SECOND: "echo2"}
    whole = {key: sorted(record.body["plugins"]) for key, record in want.items()}
    assert got == [(lets_go, [kept[lets_go]]), (other, whole[other]), (lets_go, whole[lets_go])]
    assert exclusive.written[-1][0] - exclusive.written[0][0] < 0.1


@pytest.mark.parametrize(
    ("had", "wanted", "want"),
    [
        ({"cors": {"a": 1}, "gzip": {}}, {"cors": {"a": 2}, "csrf": {}}, {"cors": {"a": 2}}),
        (None, {"cors": {}}, {}),
    ],
)
def test_a_rule_that_releases_keys_keeps_its_other_plugins(
    had: dict[str, Any] | None, wanted: dict[str, Any], want: dict[str, Any]
) -> None:
    applied = None if had is None else Applied(found_of("global_rules", {"id": "first", "plugins": had}))
    got = without_new_keys(make_record(FIRST, plugins=wanted), applied)
    assert got.body["plugins"] == want


def test_a_releasing_consumer_keeps_everything_except_its_new_credential() -> None:
    key = RecordKey("consumers", "jack")
    had = {"key-auth": {"key": "k1"}, "basic-auth": {"username": "u", "password": "old"}}
    wanted = {"key-auth": {"key": "k2"}, "basic-auth": {"username": "u", "password": "new"}, "cors": {}}
    applied = Applied(found_of("consumers", {"username": "jack", "plugins": had}))
    got = without_new_keys(make_record(key, plugins=wanted), applied)
    assert got.body["plugins"] == {"basic-auth": {"username": "u", "password": "new"}, "cors": {}}


@on_stage
async def test_a_release_is_retried_where_the_gateway_rejects_it() -> None:
    stage = Stage([rule(FIRST, "cors"), rule(SECOND, "gzip")])
    exclusive = Exclusive(stage)
    async with stage.running():
        exclusive.on_empty = GatewayRejected(400, "plugins are missing")
        stage.want(rule(FIRST, "gzip"), rule(SECOND, "cors"))
        await asyncio.sleep(30)
        assert stage.sync.record_state(FIRST).kind == "waiting"
        exclusive.on_empty = None
        await asyncio.sleep(2 * RELEASE_INTERVAL)
        assert (stage.sync.record_state(FIRST), stage.sync.record_state(SECOND)) == (APPLIED, APPLIED)


@on_stage
async def test_keys_kept_by_another_record_are_retried_with_backoff() -> None:
    stage = Stage([rule(FIRST, "cors")])
    exclusive = Exclusive(stage)
    async with stage.running():
        stage.want(rule(FIRST, "cors"), rule(SECOND, "cors"))
        await asyncio.sleep(60)
        state = stage.sync.record_state(SECOND)
    assert (state.kind, state.message) == ("waiting", f"already exists in {FIRST}")
    assert 10 < exclusive.tries.count((SECOND, False)) < 25


@on_stage
async def test_a_record_that_releases_keys_is_written_immediately_despite_earlier_writes() -> None:
    pairs = [("cors", "gzip"), ("gzip", "cors")]
    swaps = [[rule(key, p, f"own-{key.id}") for key, p in zip((FIRST, SECOND), pair, strict=True)] for pair in pairs]
    stage = Stage(swaps[0])
    exclusive = Exclusive(stage)
    async with stage.running():
        for number in range(1, 9):
            stage.want(*swaps[number % 2])
            await asyncio.sleep(1.5)
        await asyncio.sleep(5)
        assert [stage.sync.record_state(key) for key in (FIRST, SECOND)] == [APPLIED, APPLIED]
    gaps = [gap for key in (FIRST, SECOND) for gap in exclusive.seconds_without(key, "cors", "gzip")]
    assert len(gaps) >= 4
    assert max(gaps) < 0.1


@on_stage
async def test_a_release_that_the_gateway_rejects_is_tried_once_a_minute() -> None:
    stage = Stage([rule(FIRST, "cors"), rule(SECOND, "gzip")])
    exclusive = Exclusive(stage)
    async with stage.running():
        exclusive.on_empty = GatewayRejected(400, "plugins are missing")
        stage.want(rule(FIRST, "gzip"), rule(SECOND, "cors"))
        await asyncio.sleep(3000)
        exclusive.tries.clear()
        exclusive.empty = 0
        await asyncio.sleep(10 * RELEASE_INTERVAL)
    assert 10 <= exclusive.empty <= 20
    assert len(exclusive.tries) < 10 * 2 * 24


@on_stage
async def test_a_release_that_fails_temporarily_backs_off_and_is_retried_within_a_minute() -> None:
    stage = Stage([rule(FIRST, "cors"), rule(SECOND, "gzip")])
    exclusive = Exclusive(stage)
    async with stage.running():
        exclusive.on_empty = GatewayUnavailable("busy", status=429, sent=False, retry_after=3.0)
        stage.want(rule(FIRST, "gzip"), rule(SECOND, "cors"))
        await asyncio.sleep(10)
        tries = exclusive.empty
        exclusive.on_empty = None
        await asyncio.sleep(15)
        assert [stage.sync.record_state(key) for key in (FIRST, SECOND)] == [APPLIED, APPLIED]
    assert 1 < tries < 10


@on_stage
async def test_an_edit_that_breaks_the_cycle_releases_no_key() -> None:
    stage = Stage([rule(FIRST, "cors"), rule(SECOND, "gzip")])
    exclusive = Exclusive(stage)
    async with stage.running():
        exclusive.on_empty = GatewayUnavailable("busy", status=429, sent=False, retry_after=30.0)
        stage.want(rule(FIRST, "gzip"), rule(SECOND, "cors"))
        await asyncio.sleep(10)
        tried = exclusive.empty
        stage.want(rule(FIRST, "cors", "echo"), rule(SECOND, "gzip"))
        await asyncio.sleep(5)
        assert [stage.sync.record_state(key) for key in (FIRST, SECOND)] == [APPLIED, APPLIED]
    assert (tried, exclusive.empty) == (1, 1)


def test_a_cycle_is_seen_by_those_in_it_alone() -> None:
    table = RecordTable()
    unique_keys = UniqueKeys("c", FakeWanted(), table, WriteOrder())
    first, second, third = map(table.slot, (FIRST, SECOND, THIRD))
    for slot, holder in ((first, SECOND), (second, FIRST), (third, FIRST)):
        table.set_holder(slot, holder)
    assert [unique_keys.cycle(slot) for slot in (first, second, third)] == [(second, first), (first, second), ()]
    assert table.successors == {FIRST: {SECOND: None, THIRD: None}, SECOND: {FIRST: None}}
    for slot in (second, third):
        table.set_holder(slot, None)
    assert [unique_keys.cycle(slot) for slot in (first, second, third)] == [(), (), ()]
    assert table.successors == {SECOND: {FIRST: None}}
