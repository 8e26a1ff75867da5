"""Objects that are hard to read: invalid, nested too deeply, very large."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from apisix_ingress.model.objects import UNREAD, Unread
from tests.fakes.kube import wire
from tests.fakes.kube.apiserver import FakeApiServer, Manifest, error_event
from tests.flow.kube.informer.reflecting import reflecting, route

NESTED = "NESTED"
"""Stands in for a value that a Python server could not write."""


REASON = "nested deeper than 200 levels"


@pytest.fixture
def spell(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return an override that makes the server write this many levels instead of NESTED, in lists and events."""

    def spell(levels: int) -> None:
        mark, nested, event = json.dumps(NESTED), "[" * levels + "]" * levels, wire.event

        def respond(data: object, **options: Any) -> web.Response:
            text = json.dumps(data).replace(mark, nested)
            return web.Response(text=text, content_type="application/json", **options)

        def announce(type: str, item: Manifest) -> bytes:
            return event(type, item).replace(mark.encode(), nested.encode())

        monkeypatch.setattr(web, "json_response", respond)
        monkeypatch.setattr(wire, "event", announce)

    return spell


async def test_an_object_that_cannot_be_read_affects_only_itself(server: FakeApiServer, tmp_path: Path) -> None:
    def secret(name: str, value: str) -> Manifest:
        return {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": name}, "data": {"key": value}}

    server.put(secret("bad", "not base64!"))
    server.put(secret("good", "b2s="))
    async with reflecting(server, tmp_path, "Secret") as harness:
        await harness.reflector.synced.wait()
        assert harness.names() == {"good"}
        await harness.until_watching()
        server.put(secret("good", "broken!"))
        server.put(secret("next", "b2s="))
        await harness.until_names("good", "next")
        assert harness.get("good").data == {"key": b"ok"}
        server.order(harness.plural, error_event(410))
        await harness.until(lambda: len(harness.notes.lists) == 2, "a second list")
        assert harness.names() == {"good", "next"}
        assert harness.notes.undecodables == 2
        server.put(secret("bad", "b2s="))
        await harness.until_names("bad", "good", "next")


@pytest.mark.parametrize("levels", [250, 1_100, 9_000])
async def test_an_object_that_is_nested_too_deeply_affects_only_itself(
    server: FakeApiServer, tmp_path: Path, levels: int, spell: Callable[[int], None]
) -> None:
    spell(levels)
    server.put(route("deep", http=[{"plugins": [{"config": NESTED}]}]))
    server.put(route("good"))
    with capture_logs() as logs:
        async with reflecting(server, tmp_path) as harness:
            await harness.reflector.synced.wait()
            assert harness.names() == {"deep", "good"}
            assert (harness.get("deep").spec, harness.get("deep").unread) == ({UNREAD: REASON}, Unread(REASON, 0))
            await harness.until_watching()
            server.put(route("good", http=[{"plugins": [{"config": NESTED}]}]))
            server.put(route("next"))
            await harness.until_names("deep", "good", "next")
            assert (harness.get("good").spec, harness.get("good").unread) == ({"http": []}, Unread(REASON, 1))
            server.put(route("deep"))
            await harness.until(lambda: harness.get("deep").unread is None, "the object that was put right")
            assert harness.notes.failures == []
            server.remove("apisixroutes", "good")
            await harness.until_names("deep", "next")
    got = [(line["object"], line["error"]) for line in logs if line["event"] == "object.undecodable"]
    reason = f"ValueError: {REASON}"
    assert got == [("ApisixRoute default/deep", reason), ("ApisixRoute default/good", reason)]


async def test_an_event_of_several_megabytes_arrives_whole(server: FakeApiServer, tmp_path: Path) -> None:
    async with reflecting(server, tmp_path) as harness:
        await harness.until_watching()
        server.put(route("big", text="<" * 6_000_000))
        await harness.until_names("big")
        assert len(harness.store.values()[0].spec["text"]) == 6_000_000
