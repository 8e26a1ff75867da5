"""How fast Events are sent. What they say, and what becomes of them, is tested with an API server."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from apisix_ingress.kube.events import BESIDE_NEWS_SECONDS, EventRecorder
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kube import Meta
from apisix_ingress.runtime.term import Term
from tests.fakes.clock import FakeClock

WEB = Meta("ApisixRoute", "default", "web")


class EventsApi:
    """Takes every Event."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def create(self, path: str, body: JsonObject, *, timeout: float = 0.0) -> JsonObject:
        self.messages.append(body["message"])
        return {}

    async def patch(self, path: str, body: object, *, timeout: float = 0.0) -> JsonObject:
        raise AssertionError(f"no Event comes twice, so {path} is not patched with {body} within {timeout} s")


@asynccontextmanager
async def sending(api: EventsApi, clock: FakeClock) -> AsyncIterator[EventRecorder]:
    """Send Events while gateways are being changed."""
    recorder = EventRecorder(api, clock=clock, rng=random.Random(1), news=lambda: True)
    task = asyncio.create_task(recorder.run(Term(clock, holder="tester")))
    try:
        yield recorder
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_successes_are_told_slowly_while_gateways_are_being_changed() -> None:
    api, clock = EventsApi(), FakeClock()
    async with sending(api, clock) as recorder:
        for number in range(5):
            recorder.record(WEB, "Normal", "Seen", f"hello {number}")
        await clock.advance(2 * BESIDE_NEWS_SECONDS)
        assert api.messages == ["hello 0", "hello 1"]
        await clock.advance(3 * BESIDE_NEWS_SECONDS)
        assert len(api.messages) == 5


async def test_a_warning_waits_for_no_news() -> None:
    api, clock = EventsApi(), FakeClock()
    async with sending(api, clock) as recorder:
        for number in range(3):
            recorder.record(WEB, "Warning", "Failed", f"broken {number}")
        await clock.advance(0.0)
        assert api.messages == ["broken 0", "broken 1", "broken 2"]
