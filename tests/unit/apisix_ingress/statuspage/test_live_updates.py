"""The stream of events: its first event, later events, and the limit of clients."""

import asyncio
import json

import aiohttp
import pytest

from apisix_ingress.statuspage import live_updates as live
from tests.unit.apisix_ingress.statuspage.harness import PageHarness, make_harness, served


async def next_news(reply: aiohttp.ClientResponse) -> dict[str, object]:
    """Return the data of the next event; other lines are skipped."""
    async with asyncio.timeout(10):
        while not (line := await reply.content.readline()).startswith(b"data: "):
            assert line, "the stream ended"
    found: dict[str, object] = json.loads(line[6:])
    return found


def listen(harness: PageHarness) -> aiohttp.client._RequestContextManager:
    assert harness.session is not None
    return harness.session.get(f"{harness.url}/status/events")


async def test_a_client_receives_the_current_state_and_then_each_change() -> None:
    async with served(make_harness()) as harness, listen(harness) as reply:
        assert reply.headers["Content-Type"].startswith("text/event-stream")
        first = await next_news(reply)
        assert (first["identity"], first["leads"], first["revision"]) == ("pod-a_1", True, 0)
        harness.journal.held("default", 1)
        assert (await next_news(reply))["revision"] == 1
        harness.controller.leads, harness.controller.leader = False, "pod-b_2"
        assert (await next_news(reply))["leader"] == "pod-b_2"


async def test_too_many_clients_are_rejected_until_others_disconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_CLIENTS", 1)
    async with served(make_harness()) as harness:
        async with listen(harness) as reply:
            await next_news(reply)
            got = await harness.ask("/status/events")
            assert (got.status, got.headers["Retry-After"]) == (503, "10")
        async with asyncio.timeout(10):
            while (await harness.ask("/status/events", method="HEAD")).status == 503:
                pass


async def test_an_idle_stream_sends_keepalives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "HEARTBEAT", 0.0)
    async with served(make_harness()) as harness, listen(harness) as reply:
        await next_news(reply)
        async with asyncio.timeout(10):
            while await reply.content.readline() != b"event: alive\n":
                pass


async def test_stream_ends_with_the_server() -> None:
    async with aiohttp.ClientSession() as session:
        async with served(make_harness()) as harness:
            reply = await session.get(f"{harness.url}/status/events")
            await next_news(reply)
        async with asyncio.timeout(10):
            await reply.content.read()
        reply.close()
