"""How many statuses are written in which time: the pace, where it is used. An API server that answers at once."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from apisix_ingress.kube.status.backpressure import LOOK_SECONDS, PATIENCE_SECONDS
from apisix_ingress.kube.status.debounce import GATHER_SECONDS
from apisix_ingress.kube.status.throttle import CREDIT_SECONDS, RATE, RATE_BESIDE_NEWS
from apisix_ingress.kube.status.writer import BULK, StatusWriter
from apisix_ingress.model.condition import Condition, aborted, synced
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, Meta
from apisix_ingress.runtime.term import Term
from apisix_ingress.state.store import Store
from tests.fakes.clock import FakeClock

OBJECTS = 320
WORKERS = 4
"""Each has one write more behind it than the credit pays for when it first waits."""

WELL = synced(1)


class CountingApi:
    """Takes every patch."""

    def __init__(self) -> None:
        self.writes = 0
        self.paths: list[str] = []

    async def get(self, path: str, *, timeout: float = 0.0) -> JsonObject:
        raise AssertionError(f"nothing is doubted, so {path} is not asked for in {timeout} s")

    async def patch(self, path: str, body: object, *, manager: str = "", timeout: float = 0.0) -> JsonObject:
        self.writes += 1
        self.paths.append(path)
        return {"metadata": {"resourceVersion": f"{path} {manager} {timeout} {body}"}}


@asynccontextmanager
async def writing(
    api: CountingApi,
    clock: FakeClock,
    *,
    news: bool,
    condition: Condition = WELL,
    busy: Callable[[str], bool] = lambda namespace: False,
    other: str = "",
) -> AsyncIterator[StatusWriter]:
    """Have many objects of one namespace that are to be told the same, and one of another if that is named."""
    store: Store[CustomObject] = Store("ApisixRoute", lambda read: None)
    for number in range(OBJECTS):
        store.set(CustomObject(Meta("ApisixRoute", "default", f"r{number}", generation=1), {}))
    if other:
        store.set(CustomObject(Meta("ApisixRoute", other, "r", generation=1), {}))
    stores, rng = {store.kind: store}, random.Random(1)
    writer = StatusWriter(api, stores, lambda key: condition, clock=clock, rng=rng, news=lambda: news, busy=busy)
    for key in store.keys():  # noqa: SIM118  # a store is no mapping
        writer.wake(key)
    task = asyncio.create_task(writer.run(Term(clock, holder="tester")))
    try:
        yield writer
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(("news", "rate"), [(False, RATE), (True, RATE_BESIDE_NEWS)], ids=["quiet", "beside-news"])
async def test_many_statuses_are_written_at_the_rate_of_the_moment(news: bool, rate: float) -> None:
    api, clock, credit = CountingApi(), FakeClock(), int(CREDIT_SECONDS * rate)
    async with writing(api, clock, news=news):
        await clock.advance(GATHER_SECONDS)
        at_once = api.writes
        await clock.advance(0.5)
    assert at_once == credit + WORKERS
    # A write more or less: the rate is not a whole number of writes in that time.
    assert api.writes - at_once == pytest.approx(0.5 * rate, abs=1)


async def test_what_is_left_at_the_end_is_flushed_at_the_full_rate_whatever_the_news() -> None:
    api, clock = CountingApi(), FakeClock()
    async with writing(api, clock, news=True) as writer:
        await clock.advance(GATHER_SECONDS)
        before = api.writes
        flush = asyncio.create_task(writer.flush(0.5))
        await clock.advance(0.5)
        assert await flush is False
        flushed = api.writes - before
        await clock.advance(0.5)
    # What was written before the flush is paid for first, at the rate of then.
    assert RATE * (0.5 - WORKERS / RATE_BESIDE_NEWS) - 1 <= flushed <= RATE * 0.5
    slowly = 0.5 * RATE_BESIDE_NEWS
    assert slowly - 1 <= api.writes - before - flushed <= slowly + WORKERS


async def test_a_flush_ends_with_the_last_write() -> None:
    api, clock = CountingApi(), FakeClock()
    async with writing(api, clock, news=True) as writer:
        flush = asyncio.create_task(writer.flush(60.0))
        await clock.advance(OBJECTS / RATE)
        assert (flush.done(), api.writes) == (True, OBJECTS)
        assert await flush is True


@pytest.mark.parametrize("condition", [WELL, aborted(1, "it names no Service")], ids=["well", "broken"])
async def test_the_log_tells_of_each_status_but_for_successes_in_bulk(condition: Condition) -> None:
    api, clock = CountingApi(), FakeClock()
    with capture_logs() as lines:
        async with writing(api, clock, news=False, condition=condition):
            await clock.advance(2.0)
    told = [line["log_level"] for line in lines if line["event"] == "status.written"]
    assert (api.writes, len(told)) == (OBJECTS, OBJECTS)
    # The last ones are no bulk any more.
    assert told[-BULK:] == ["info"] * BULK
    assert ("debug" in told) == (condition is WELL)


class EchoingApi(CountingApi):
    """Its watch tells of each patch before the answer does, and of none of anybody else."""

    def __init__(self) -> None:
        super().__init__()
        self.writer: StatusWriter | None = None

    async def patch(self, path: str, body: Any, *, manager: str = "", timeout: float = 0.0) -> JsonObject:
        answer = await super().patch(path, body, manager=manager, timeout=timeout)
        assert self.writer is not None
        meta = Meta("ApisixRoute", "default", path.split("/")[-2], resource_version=str(self.writes))
        self.writer.noticed(CustomObject(meta, {}, status=body["status"]))
        return answer | {"status": body["status"]}


async def test_writes_that_come_back_before_their_answers_are_no_contest() -> None:
    clock, api, generation = FakeClock(), EchoingApi(), 1
    store: Store[CustomObject] = Store("ApisixRoute", lambda read: None)
    rng = random.Random(1)
    writer = StatusWriter(api, {store.kind: store}, lambda key: synced(generation), clock=clock, rng=rng)
    api.writer = writer
    task = asyncio.create_task(writer.run(Term(clock, holder="tester")))
    with capture_logs() as logs:
        for generation in range(1, 9):
            store.set(CustomObject(Meta("ApisixRoute", "default", "web", generation=generation), {}))
            writer.wake(ObjectKey("ApisixRoute", "default", "web"))
            await clock.advance(5)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert (api.writes, [line for line in logs if line["event"] == "status.contested"]) == (8, [])


async def test_status_of_another_namespace_does_not_wait_for_hundreds_of_one() -> None:
    api, clock = CountingApi(), FakeClock()
    async with writing(api, clock, news=True, other="victim"):
        await clock.advance(GATHER_SECONDS + 0.5)
    assert any("victim" in path for path in api.paths)
    assert len(api.paths) < OBJECTS / 8


async def test_statuses_give_way_to_records_of_their_own_namespace_alone_and_not_for_ever() -> None:
    api, clock = CountingApi(), FakeClock()
    async with writing(api, clock, news=False, other="victim", busy=lambda namespace: namespace == "default"):
        await clock.advance(1.0)
        assert ["victim" in path for path in api.paths] == [True]
        await clock.advance(PATIENCE_SECONDS - 2.0)
        assert api.writes == 1
        await clock.advance(3.0 + OBJECTS / RATE)
        assert api.writes == OBJECTS + 1


async def test_statuses_that_gave_way_are_flushed_at_the_end() -> None:
    api, clock = CountingApi(), FakeClock()
    async with writing(api, clock, news=False, busy=lambda namespace: True) as writer:
        await clock.advance(1.0)
        assert api.writes == 0
        flushing = asyncio.create_task(writer.flush(5.0))
        await clock.advance(4.0)
        assert (await flushing, api.writes) == (True, OBJECTS)


async def test_statuses_are_written_as_soon_as_their_records_are() -> None:
    api, clock, busy = CountingApi(), FakeClock(), [True]
    async with writing(api, clock, news=False, busy=lambda namespace: busy[0]):
        await clock.advance(5.0)
        busy[0] = False
        await clock.advance(LOOK_SECONDS + OBJECTS / RATE)
        assert api.writes == OBJECTS
