"""Defaults that a gateway adds: when its schemas are read, and which records are equal because of them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from apisix_ingress.errors import GatewayRejected, GatewayUnavailable
from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.comparison.gateway_defaults import KEPT, PATIENCE, Defaults, adds_defaults
from apisix_ingress.model.json import canonical
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import Record, comparable
from tests.fakes.gateway import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import ROUTE, on_stage

OLD = "APISIX/3.13.0"
HTTP = "plugins?all=true&subsystem=http"
STREAM = "plugins?all=true&subsystem=stream"
SOME = {"properties": {"a": {"default": 1}}}
DOCUMENTS: dict[str, Any] = {
    "schema/route": {"properties": {"priority": {"default": 0}}},
    "schema/stream_route": {},
    "schema/consumer": {},
    HTTP: {"p": {"schema": SOME, "consumer_schema": {}, "metadata_schema": {"properties": {"m": {"default": 2}}}}},
    STREAM: {"p": {"schema": {"properties": {"s": {"default": 3}}}}},
}


class Clock:
    """A clock that stops unless it is set."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class Gateway:
    """Publishes documents; counts requests."""

    def __init__(self, documents: Mapping[str, Any] = DOCUMENTS) -> None:
        self.documents = dict(documents)
        self.asked: list[str] = []
        self.error: Callable[[], Exception] = lambda: GatewayRejected(404, "no such thing")
        self.clock = Clock()
        self.defaults = Defaults("c1", self.read, clock=self.clock)  # type: ignore[arg-type]

    async def read(self, path: str) -> bytes:
        self.asked.append(path)
        if path not in self.documents:
            raise self.error()
        found = self.documents[path]
        return found if isinstance(found, bytes) else canonical(found)

    async def is_equal(self, record: Record, version: str = OLD, /, **kept: Any) -> bool:
        """Return whether a record is in sync if the gateway has this body, apart from labels."""
        body = {**{name: record.body[name] for name in ("id", "name", "labels")}, **kept}
        found = {record.key: ObservedRecord(comparable(record.key.kind, body))}
        got = await self.defaults.without_defaults(found, lambda key: [record], version)
        return got[record.key].digest == record.digest


@on_stage
async def test_matching_records_cause_no_request() -> None:
    gateway = Gateway()
    assert await gateway.is_equal(make_record(ROUTE, uri="/"), uri="/")
    assert gateway.asked == []


@on_stage
async def test_a_gateway_that_stores_records_unchanged_is_not_queried() -> None:
    gateway = Gateway()
    for version in ("APISIX/3.14.0", "APISIX/3.18.1", "APISIX/4.0"):
        assert not await gateway.is_equal(make_record(ROUTE, uri="/"), version, uri="/", priority=0)
    assert gateway.asked == []


@pytest.mark.parametrize(
    ("version", "want"),
    [("APISIX/3.9.0", True), ("APISIX/2.15.3", True), ("APISIX", True), ("", True), ("APISIX/3.14", False)],
)
def test_the_version_determines_who_fills_in_defaults(version: str, want: bool) -> None:
    assert adds_defaults(version) is want


@on_stage
async def test_record_with_defaults_is_equal_and_each_schema_is_read_once() -> None:
    gateway = Gateway()
    for number in range(3):
        record = make_record(RecordKey("routes", f"r{number}"), uri="/", plugins={"p": {}})
        assert await gateway.is_equal(record, uri="/", priority=0, plugins={"p": {"a": 1}})
    assert gateway.asked == ["schema/route", HTTP]


@on_stage
async def test_every_other_difference_stays() -> None:
    gateway, record = Gateway(), make_record(ROUTE, uri="/", plugins={"p": {}})
    same: dict[str, Any] = {"uri": "/", "priority": 0, "plugins": {"p": {"a": 1}}}
    assert await gateway.is_equal(record, **same)
    changes: list[dict[str, Any]] = [
        {"priority": 5},
        {"desc": "new"},
        {"plugins": {"p": {"a": 2}}},
        {"plugins": {"p": {"a": 1}, "q": {}}},
        {"plugins": {}},
    ]
    for change in changes:
        assert not await gateway.is_equal(record, **{**same, **change}), change
    assert await gateway.is_equal(record, **same)


@on_stage
async def test_value_that_says_the_default_is_equal_and_another_is_not() -> None:
    gateway = Gateway()
    assert await gateway.is_equal(
        make_record(ROUTE, priority=0, plugins={"p": {}}), priority=0, plugins={"p": {"a": 1}}
    )
    assert not await gateway.is_equal(make_record(ROUTE, priority=1), priority=0)


@pytest.mark.parametrize(
    ("kind", "id_", "sent", "kept"),
    [
        ("stream_routes", "s", {"plugins": {"p": {}}}, {"plugins": {"p": {"s": 3}}}),
        ("consumers", "c", {"plugins": {"p": {}, "q": {}}, "username": "c", "desc": ""}, None),
        ("plugin_metadata", "p", {}, {"m": 2}),
    ],
)
def test_each_kind_has_the_schema_of_its_place(
    kind: RecordKind, id_: str, sent: dict[str, Any], kept: dict[str, Any] | None
) -> None:
    gateway = Gateway()
    record = make_record(RecordKey(kind, id_), **sent)
    assert asyncio.run(gateway.is_equal(record, **(kept or sent)))


@on_stage
async def test_a_secret_that_a_gateway_generated_is_kept() -> None:
    gateway = Gateway({"schema/consumer": {}, HTTP: {"jwt-auth": {"consumer_schema": SOME}}})
    record = make_record(RecordKey("consumers", "jack"), username="jack", plugins={"jwt-auth": {"key": "k"}})
    made_up: dict[str, Any] = {"key": "k", "a": 1, "secret": "made-up"}
    assert await gateway.is_equal(record, username="jack", plugins={"jwt-auth": made_up})
    assert not await gateway.is_equal(record, username="jack", plugins={"jwt-auth": {**made_up, "key": "other"}})
    own = make_record(
        RecordKey("consumers", "jill"), username="jill", plugins={"jwt-auth": {"key": "k", "secret": "s"}}
    )
    assert not await gateway.is_equal(own, username="jill", plugins={"jwt-auth": made_up})


@on_stage
async def test_our_last_write_is_recognized_while_another_record_is_desired() -> None:
    gateway = Gateway()
    wrote, wanted = make_record(ROUTE, uri="/a"), make_record(ROUTE, uri="/b")
    found = {ROUTE: ObservedRecord(comparable("routes", {**wrote.body, "priority": 0}))}
    got = await gateway.defaults.without_defaults(found, lambda key: [wanted, wrote], OLD)
    assert got[ROUTE].digest == wrote.digest
    got = await gateway.defaults.without_defaults(found, lambda key: [wanted], OLD)
    assert got[ROUTE].digest == wrote.digest
    assert await gateway.defaults.without_defaults({}, lambda key: [wanted], OLD) == {}


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b"7", b""])
def test_garbage_means_no_defaults(answer: bytes) -> None:
    gateway = Gateway({"schema/route": answer, HTTP: answer})
    record = make_record(ROUTE, plugins={"p": {}})
    assert not asyncio.run(gateway.is_equal(record, priority=0, plugins={"p": {"a": 1}}))


@pytest.mark.parametrize(
    "documents",
    [
        {"schema/route": {"properties": [], "required": 5, "anyOf": {}}, HTTP: {"p": 7}},
        {"schema/route": {"properties": {"priority": 7}}, HTTP: {"p": {"schema": []}}},
    ],
)
def test_a_malformed_schema_fills_in_no_defaults(documents: dict[str, Any]) -> None:
    record = make_record(ROUTE, plugins={"p": {}})
    assert not asyncio.run(Gateway(documents).is_equal(record, priority=0, plugins={"p": {"a": 1}}))


@on_stage
async def test_a_rejection_is_valid_for_an_hour() -> None:
    gateway, record = Gateway({}), make_record(ROUTE, uri="/")
    for error in (GatewayRejected(404, "no"), GatewayUnavailable("HTTP 500", status=500)):
        gateway.error, gateway.asked = (lambda error=error: error), []  # type: ignore[misc]
        gateway.clock.seconds += KEPT + 1
        assert [await gateway.is_equal(record, uri="/", priority=0) for _ in range(3)] == [False] * 3
        assert gateway.asked == ["schema/route"]
    gateway.documents = DOCUMENTS
    gateway.clock.seconds += KEPT + 1
    assert await gateway.is_equal(record, uri="/", priority=0)


@on_stage
async def test_an_unresponsive_gateway_is_queried_again_later_with_a_short_timeout() -> None:
    gateway, record = Gateway({}), make_record(ROUTE, uri="/", plugins={"p": {}})
    gateway.error = lambda: GatewayUnavailable("no response")
    for _ in range(2):
        assert not await gateway.is_equal(record, uri="/", priority=0)
    assert gateway.asked == ["schema/route"] * 2


@on_stage
async def test_a_slow_gateway_delays_no_other() -> None:
    async def read(path: str) -> bytes:
        await asyncio.sleep(PATIENCE * 0.6)
        return b"{}"

    loop = asyncio.get_running_loop()
    defaults = Defaults("c1", read, clock=Clock())  # type: ignore[arg-type]
    await defaults.load_schemas([make_record(ROUTE, plugins={"p": {}}), make_record(RecordKey("upstreams", "u"))])
    assert loop.time() <= PATIENCE


@on_stage
async def test_another_version_is_queried_again() -> None:
    gateway, record = Gateway(), make_record(ROUTE, uri="/")
    assert await gateway.is_equal(record, uri="/", priority=0)
    gateway.documents["schema/route"] = {"properties": {"priority": {"default": 7}}}
    assert await gateway.is_equal(record, "APISIX/3.12.0", uri="/", priority=7)
    assert gateway.asked == ["schema/route"] * 2


@on_stage
async def test_a_plugin_enabled_later_is_queried_again() -> None:
    gateway = Gateway()
    assert await gateway.is_equal(make_record(ROUTE, plugins={"p": {}}), priority=0, plugins={"p": {"a": 1}})
    gateway.asked.clear()
    fresh = make_record(ROUTE, plugins={"q": {}})
    assert not await gateway.is_equal(fresh, priority=0, plugins={"q": {"a": 1}})
    gateway.documents[HTTP] = {**DOCUMENTS[HTTP], "q": {"schema": SOME}, "r": {"schema": SOME}}
    assert not await gateway.is_equal(fresh, priority=0, plugins={"q": {"a": 1}})
    assert await gateway.is_equal(make_record(ROUTE, plugins={"r": {}}), priority=0, plugins={"r": {"a": 1}})
    assert gateway.asked == [HTTP, HTTP]


@on_stage
async def test_record_nested_too_deeply_differs() -> None:
    deep: Any = []
    for _ in range(1000):
        deep = [deep]
    gateway = Gateway()
    assert not await gateway.is_equal(make_record(ROUTE, vars=deep), priority=0)
