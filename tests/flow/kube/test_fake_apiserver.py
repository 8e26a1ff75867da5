"""The fake API server, where differences from the real one could hide or simulate mistakes of clients."""

import asyncio
import json
import time

import aiohttp

from tests.fakes.kube.apiserver import FakeApiServer, Manifest
from tests.waiting import until


def secret(name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"}}


async def test_the_last_bookmark_of_a_watch_leaves_no_change_behind() -> None:
    """A client continues from a bookmark: events before it that were not sent would be lost."""
    loop = asyncio.get_running_loop()
    async with FakeApiServer() as server, aiohttp.ClientSession(server.url) as session:
        server.put(secret("first"))
        query = {"watch": "true", "resourceVersion": str(server.version), "timeoutSeconds": "0.8"}
        async with session.get("/api/v1/secrets", params=query) as answer:
            await until(lambda: server.watching("secrets") == 1, "the watch", state=lambda: server.seen)
            # The loop is busy while the watch times out and a change arrives: both are handled in the same turn. On a
            # busy machine, the watch may have begun some time ago.
            loop.call_later(0.4, server.put, secret("late"))
            loop.call_later(0.3, time.sleep, 0.6)
            lines = [json.loads(line) async for line in answer.content]
        version = str(server.version)
    got = [(line["type"], line["object"]["metadata"].get("name")) for line in lines]
    assert got == [("ADDED", "late"), ("BOOKMARK", None)]
    assert lines[-1]["object"]["metadata"]["resourceVersion"] == version
