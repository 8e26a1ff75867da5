"""Which statuses are written, and at which rate, when the schedule is used."""

import asyncio
import contextlib
import random
from typing import Any

import pytest
from structlog.testing import capture_logs

from apisix_ingress.errors import KubeUnavailable
from apisix_ingress.kube.status.condition_list import rendered
from apisix_ingress.kube.status.interface import Load
from apisix_ingress.kube.status.schedule import (
    CREDIT_SECONDS,
    DEBOUNCE_SECONDS,
    FULL_RATE,
    HIGH_RATE,
    LATE_RATE,
    LOW_RATE,
    REWRITE_BURST,
    REWRITE_SECONDS,
    SETTLE_SECONDS,
)
from apisix_ingress.kube.status.writer import BULK, StatusWriter
from apisix_ingress.model.condition import Condition, aborted, synced
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, Meta
from apisix_ingress.runtime.term import Term
from apisix_ingress.state.store import Store
from tests.fakes.clock import FakeClock
from tests.fakes.kube.status import Wanted
from tests.unit.apisix_ingress.kube.status.writing import AcceptingApi, key_of, writing

OBJECTS = 640
WORKERS = 4
"""Each has had one write more than the credit covers when it first pauses."""

KEYS = [key_of(f"r{number}") for number in range(OBJECTS)]
VICTIM = key_of("r", "victim")


def all_well(load: Load, *others: ObjectKey) -> Wanted:
    """Desire the same condition for many objects of one namespace, and some others."""
    return Wanted(dict.fromkeys((*KEYS, *others), synced(1)), load)


def wake_all(writer: StatusWriter, wanted: Wanted) -> None:
    for key in wanted.conditions:
        writer.wake(key)


@pytest.mark.parametrize(("load", "rate"), [("idle", FULL_RATE), ("changes", LATE_RATE), ("bulk", LATE_RATE)])
async def test_many_statuses_are_written_at_the_rate_of_the_load(load: Load, rate: float) -> None:
    api, clock, wanted = AcceptingApi(), FakeClock(), all_well(load)
    async with writing(api, clock, KEYS, wanted) as writer:
        wake_all(writer, wanted)
        await clock.advance(DEBOUNCE_SECONDS)
        at_once = api.writes
        await clock.advance(0.5)
    # The first ones are written before all are queued, at the rate for few statuses.
    credit = int(CREDIT_SECONDS * {"idle": FULL_RATE, "changes": HIGH_RATE, "bulk": LOW_RATE}[load])
    assert LATE_RATE * CREDIT_SECONDS < at_once <= credit + WORKERS
    assert api.writes - at_once == pytest.approx(0.5 * rate, abs=2 * WORKERS)


async def test_remaining_statuses_are_written_at_the_full_rate_at_the_end() -> None:
    api, clock, wanted = AcceptingApi(), FakeClock(), all_well("bulk")
    async with writing(api, clock, KEYS, wanted) as writer:
        wake_all(writer, wanted)
        await clock.advance(DEBOUNCE_SECONDS)
        before = api.writes
        flush = asyncio.create_task(writer.flush(0.5))
        await clock.advance(0.5)
        assert await flush is False
        flushed = api.writes - before
        await clock.advance(0.5)
    # Writes before the flush are paid for first, at the rate of that time.
    assert FULL_RATE * (0.5 - WORKERS / LATE_RATE) - 1 <= flushed <= FULL_RATE * 0.5
    slowly = 0.5 * LATE_RATE
    assert slowly - 1 <= api.writes - before - flushed <= slowly + WORKERS


@pytest.mark.parametrize(("most", "waits"), [(10, False), (OBJECTS, True)])
async def test_a_flush_does_not_wait_for_more_statuses_than_allowed(most: int, waits: bool) -> None:
    api, clock, wanted = AcceptingApi(), FakeClock(), all_well("idle")
    async with writing(api, clock, KEYS, wanted) as writer:
        wake_all(writer, wanted)
        flush = asyncio.create_task(writer.flush(60.0, most=most))
        await clock.advance(0.0)
        assert flush.done() is not waits
        await clock.advance(60.0)
        assert await flush is waits


async def test_a_flush_ends_with_the_last_write() -> None:
    api, clock, wanted = AcceptingApi(), FakeClock(), all_well("changes")
    async with writing(api, clock, KEYS, wanted) as writer:
        wake_all(writer, wanted)
        flush = asyncio.create_task(writer.flush(60.0))
        await clock.advance(OBJECTS / FULL_RATE)
        assert (flush.done(), api.writes) == (True, OBJECTS)
        assert await flush is True


@pytest.mark.parametrize("condition", [synced(1), aborted(1, "it names no Service")], ids=["well", "broken"])
async def test_the_log_has_each_status_except_bulk_successes(condition: Condition) -> None:
    api, clock, wanted = AcceptingApi(), FakeClock(), Wanted(dict.fromkeys(KEYS, condition))
    with capture_logs() as lines:
        async with writing(api, clock, KEYS, wanted) as writer:
            wake_all(writer, wanted)
            await clock.advance(2.0)
    levels = [line["log_level"] for line in lines if line["event"] == "status.written"]
    assert (api.writes, len(levels)) == (OBJECTS, OBJECTS)
    # The last ones are no longer part of a bulk.
    assert levels[-BULK:] == ["info"] * BULK
    assert ("debug" in levels) == (condition.status == "True")


class EchoingApi(AcceptingApi):
    """Its watch returns each patch before the response, and no other writes."""

    writer: StatusWriter | None = None

    async def patch(self, path: str, body: Any, *, manager: str = "", timeout: float = 0.0) -> JsonObject:
        answer = await super().patch(path, body, manager=manager, timeout=timeout)
        assert self.writer is not None
        meta = Meta("ApisixRoute", "default", path.split("/")[-2], resource_version=str(self.writes))
        self.writer.noticed(CustomObject(meta, {}, status=body["status"]))
        return answer


async def test_writes_seen_before_their_responses_are_not_conflicts() -> None:
    clock, api, wanted = FakeClock(), EchoingApi(), Wanted()
    store: Store[CustomObject] = Store("ApisixRoute", lambda read: None)
    writer = StatusWriter(api, {store.kind: store}, wanted, clock=clock, rng=random.Random(1))
    api.writer = writer
    task = asyncio.create_task(writer.run(Term(clock, holder="tester")))
    with capture_logs() as logs:
        for generation in range(1, 9):
            wanted.conditions[key_of("web")] = synced(generation)
            store.set(CustomObject(Meta("ApisixRoute", "default", "web", generation=generation), {}))
            writer.wake(key_of("web"))
            await clock.advance(5)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert (api.writes, [line for line in logs if line["event"] == "status.contested"]) == (8, [])


class LosingApi(AcceptingApi):
    """Does not respond to the first patch, and returns the object as it was before."""

    lost: JsonObject

    async def get(self, path: str, *, timeout: float = 0.0) -> JsonObject:
        meta = {"name": "web", "namespace": "default", "uid": "u", "generation": 1, "resourceVersion": "1"}
        return {"metadata": meta, "spec": {}, "status": {"conditions": [rendered(synced(1))]}}

    async def patch(self, path: str, body: Any, *, manager: str = "", timeout: float = 0.0) -> JsonObject:
        answer = await super().patch(path, body, manager=manager, timeout=timeout)
        if self.writes == 1:
            self.lost = answer["status"]
            raise KubeUnavailable("no response in time")
        return answer


async def test_a_status_that_takes_effect_after_it_was_given_up_is_corrected() -> None:
    clock, api, key = FakeClock(), LosingApi(), key_of("web")
    wanted = Wanted({key: aborted(1, "the gateway does not respond")})
    store: Store[CustomObject] = Store("ApisixRoute", lambda read: None)
    store.set(CustomObject(Meta("ApisixRoute", "default", "web", uid="u", generation=1), {}))
    writer = StatusWriter(api, {store.kind: store}, wanted, clock=clock, rng=random.Random(1))
    task = asyncio.create_task(writer.run(Term(clock, holder="tester")))
    writer.wake(key)
    await clock.advance(SETTLE_SECONDS + 2 * DEBOUNCE_SECONDS)
    wanted.conditions[key] = synced(1)
    await clock.advance(5)
    before = api.writes
    meta = Meta("ApisixRoute", "default", "web", uid="u", generation=1, resource_version="2")
    late = CustomObject(meta, {}, status=api.lost)
    store.set(late)
    writer.noticed(late)
    await clock.advance(5)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert before == 1  # until then nothing differed
    assert (api.writes, api.said[key].status) == (2, "True")


class PruningApi(AcceptingApi):
    """Keeps the names of the fields; drops the addresses if its CRD does not have them."""

    def __init__(self, prunes: bool) -> None:
        super().__init__()
        self.fields: list[list[str]] = []
        self._prunes = prunes

    async def patch(self, path: str, body: Any, *, manager: str = "", timeout: float = 0.0) -> JsonObject:
        self.fields.append(sorted(body["status"]))
        kept = {name: each for name, each in body["status"].items() if name != "loadBalancer" or not self._prunes}
        return await super().patch(path, {"status": kept}, manager=manager, timeout=timeout)


@pytest.mark.parametrize("prunes", [False, True])
async def test_a_route_gets_its_condition_and_addresses_in_one_write(prunes: bool) -> None:
    names = [key_of(name) for name in ("web", "api", "web")]
    clock, api = FakeClock(), PruningApi(prunes)
    wanted = Wanted(dict.fromkeys(names, synced(1)), balancer=[{"ip": "192.0.2.1"}])
    async with writing(api, clock, wanted.conditions, wanted) as writer:
        for name in names:
            writer.wake(name)
            await clock.advance(5)
    both = ["conditions", "loadBalancer"]
    assert api.fields == [both, ["conditions"] if prunes else both]


async def test_a_condition_of_a_deleted_object_is_not_written_to_its_successor() -> None:
    clock, api, wanted = FakeClock(), AcceptingApi(), Wanted({key_of("web"): aborted(2, "it names no Service")})
    store: Store[CustomObject] = Store("ApisixRoute", lambda read: None)
    writer = StatusWriter(api, {store.kind: store}, wanted, clock=clock, rng=random.Random(1))
    task = asyncio.create_task(writer.run(Term(clock, holder="tester")))
    store.set(CustomObject(Meta("ApisixRoute", "default", "web", generation=1), {}))
    writer.wake(key_of("web"))
    await clock.advance(5)
    before = api.writes
    wanted.conditions[key_of("web")] = aborted(1, "it names no Service")
    writer.wake(key_of("web"))
    await clock.advance(5)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert (before, api.writes) == (0, 1)


@pytest.mark.parametrize("load", ["changes", "bulk"])
async def test_status_of_another_namespace_does_not_wait_for_hundreds_of_one(load: Load) -> None:
    api, clock, wanted = AcceptingApi(), FakeClock(), all_well(load, VICTIM)
    async with writing(api, clock, wanted.conditions, wanted) as writer:
        wake_all(writer, wanted)
        await clock.advance(DEBOUNCE_SECONDS + 0.5)
    assert VICTIM in api.said
    assert api.writes < OBJECTS / 4


async def test_statuses_are_written_as_soon_as_the_gateways_are_idle() -> None:
    api, clock, wanted = AcceptingApi(), FakeClock(), all_well("bulk")
    async with writing(api, clock, KEYS, wanted) as writer:
        wake_all(writer, wanted)
        await clock.advance(1.0)
        assert api.writes < OBJECTS / 8
        wanted.load = "idle"
        await clock.advance(WORKERS / LATE_RATE + OBJECTS / FULL_RATE)
        assert api.writes == OBJECTS


class DocumentApi(AcceptingApi):
    """Accepts every patch of a status document."""

    async def patch(self, path: str, body: Any, *, manager: str = "", timeout: float = 0.0) -> JsonObject:
        self.paths.append(path)
        return {"metadata": {"resourceVersion": f"{self.writes} {manager} {timeout}"}, "status": body["status"]}


async def test_gateway_status_that_another_controller_keeps_overwriting_is_written_rarely() -> None:
    api, clock, item = DocumentApi(), FakeClock(), CustomObject(Meta("Gateway", "default", "web", generation=1), {})
    store: Store[CustomObject] = Store("Gateway", lambda read: None)
    store.set(item)
    writer = StatusWriter(
        api,
        {store.kind: store},
        Wanted(documents={item.meta.key: {"conditions": []}}),
        clock=clock,
        rng=random.Random(1),
    )
    task = asyncio.create_task(writer.run(Term(clock, holder="tester")))
    for _ in range(150):
        writer.noticed(item)
        await clock.advance(0.1)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert REWRITE_BURST < api.writes <= REWRITE_BURST + 15 / REWRITE_SECONDS
