"""The proxy in front of the API server, with the fake API server of flow tests."""

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from e2e.faults.proxies.api_proxy import ApiProxy, attributes_of
from tests.fakes.kube.apiserver import FakeApiServer
from tests.waiting import until

SECRETS = "/api/v1/secrets"
WATCH = f"{SECRETS}?watch=true&allowWatchBookmarks=true&timeoutSeconds=20"
CUT_OFF = (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError, aiohttp.ClientOSError)


def secret(name: str, value: str = "MQ==") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"k": value},
    }


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as started:
        started.put(secret("one"))
        started.put(secret("two"))
        yield started


@pytest.fixture
def proxy(server: FakeApiServer, tmp_path: Path) -> Iterator[ApiProxy]:
    with ApiProxy(server.kubeconfig(tmp_path / "kubeconfig"), tmp_path) as started:
        yield started


@pytest.fixture
async def session(proxy: ApiProxy) -> AsyncIterator[aiohttp.ClientSession]:
    cluster = yaml.safe_load(proxy.kubeconfig.read_text())["clusters"][0]["cluster"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    connector = aiohttp.TCPConnector(ssl=context)
    async with aiohttp.ClientSession(cluster["server"], connector=connector) as made:
        yield made


async def names(session: aiohttp.ClientSession) -> list[str]:
    async with session.get(SECRETS) as reply:
        return [item["metadata"]["name"] for item in (await reply.json())["items"]]


async def event(reply: aiohttp.ClientResponse) -> tuple[str, str]:
    found = json.loads(await reply.content.readline())
    return found["type"], found["object"]["metadata"].get("name", "")


@pytest.mark.parametrize(
    ("request_line", "want"),
    [
        (("GET", "/api/v1/secrets", {}), ("list", "secrets", "", "")),
        (("GET", "/api/v1/namespaces", {"watch": "true"}), ("watch", "namespaces", "", "")),
        (("GET", "/api/v1/namespaces/web", {}), ("get", "namespaces", "", "web")),
        (("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", {}), ("update", "leases", "a", "b")),
        (("POST", "/api/v1/namespaces/a/events", {}), ("create", "events", "a", "")),
        (
            ("PATCH", "/apis/apisix.apache.org/v2/namespaces/a/apisixroutes/b/status", {}),
            ("patch", "apisixroutes", "a", "b"),
        ),
        (("GET", "/apis/apisix.apache.org/v2", {}), ("get", "", "", "")),
    ],
)
def test_requests_are_distinguished(request_line: tuple[str, str, dict[str, str]], want: tuple[str, ...]) -> None:
    about = attributes_of(*request_line)
    assert tuple(about.get(name, "") for name in ("verb", "resource", "namespace", "name")) == want


async def test_without_rules_every_request_passes_and_is_logged(
    proxy: ApiProxy, session: aiohttp.ClientSession
) -> None:
    assert await names(session) == ["one", "two"]
    async with session.post("/api/v1/namespaces/default/secrets", json=secret("three")) as reply:
        assert reply.status == 201
    async with session.get("/api/v1/namespaces/default/secrets/none") as reply:
        assert reply.status == 404
    got = [(line["verb"], line["resource"]) for line in proxy.requests()]
    assert got == [("list", "secrets"), ("create", "secrets"), ("get", "secrets")]
    assert [line["status"] for line in proxy.log.lines("answer")] == [200, 201, 404]


async def test_a_status_fault_sends_retry_after_and_runs_out(proxy: ApiProxy, session: aiohttp.ClientSession) -> None:
    proxy.play({"match": {"verb": "list"}, "action": "status", "status": 429, "retry_after": 3, "times": 1})
    async with session.get(SECRETS) as reply:
        assert (reply.status, reply.headers["Retry-After"], (await reply.json())["code"]) == (429, "3", 429)
    assert await names(session) == ["one", "two"]
    assert [line["action"] for line in proxy.log.lines("fault")] == ["status"]


@pytest.mark.parametrize(("action", "carried_out"), [("drop", False), ("drop_reply", True)])
async def test_connection_breaks_before_or_after_the_work(
    proxy: ApiProxy, session: aiohttp.ClientSession, server: FakeApiServer, action: str, carried_out: bool
) -> None:
    proxy.play({"match": {"verb": "create"}, "action": action})
    with pytest.raises(CUT_OFF):
        await session.post("/api/v1/namespaces/default/secrets", json=secret("three"))
    assert (server.get("secrets", "three") is not None) == carried_out


async def test_a_request_hangs_until_the_rule_is_removed(proxy: ApiProxy, session: aiohttp.ClientSession) -> None:
    proxy.play({"action": "hang"})
    asking = asyncio.create_task(session.get(SECRETS).__aenter__())
    await until(lambda: len(proxy.log.lines("fault")) == 1, "a fault")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asking, 0.3)
    # A client may retry a safe request if the connection was used before.
    waiting = asyncio.create_task(session.post("/api/v1/namespaces/default/secrets", json=secret("three")).__aenter__())
    await until(lambda: len(proxy.log.lines("fault")) == 2, "a second fault")
    proxy.play()
    with pytest.raises(CUT_OFF):
        await waiting
    assert await names(session) == ["one", "two"]


async def test_late_and_last_responses_are_complete(proxy: ApiProxy, session: aiohttp.ClientSession) -> None:
    proxy.play(
        {"action": "delay", "seconds": [0.01, 0.02], "times": 1},
        {"action": "close", "times": 1},
    )
    assert await names(session) == ["one", "two"]
    async with session.get(SECRETS) as reply:
        assert reply.headers["Connection"] == "close"
        assert len((await reply.json())["items"]) == 2


@pytest.mark.parametrize(("keep", "want"), [({}, []), ({"keep": 1}, ["one"])])
async def test_list_is_shortened_once(
    proxy: ApiProxy, session: aiohttp.ClientSession, keep: dict[str, int], want: list[str]
) -> None:
    proxy.play({"match": {"resource": "secrets"}, "action": "shorten", "times": 1, **keep})
    assert [await names(session), await names(session)] == [want, ["one", "two"]]


async def test_a_watch_is_forwarded_event_by_event(
    proxy: ApiProxy, session: aiohttp.ClientSession, server: FakeApiServer
) -> None:
    async with session.get(WATCH) as reply:
        assert [await event(reply), await event(reply)] == [("ADDED", "one"), ("ADDED", "two")]
        server.put(secret("three"))
        assert await event(reply) == ("ADDED", "three")


async def test_a_stalled_watch_stays_open_and_resumes_with_the_held_events(
    proxy: ApiProxy, session: aiohttp.ClientSession, server: FakeApiServer
) -> None:
    async with session.get(WATCH) as reply:
        assert [await event(reply), await event(reply)] == [("ADDED", "one"), ("ADDED", "two")]
        proxy.play({"match": {"verb": "watch"}, "action": "stall"})
        await until(lambda: proxy.log.lines("fault", action="stall"), "a stall")
        server.put(secret("three"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(event(reply), 0.3)
        proxy.play()
        assert await event(reply) == ("ADDED", "three")


async def test_watch_is_cut_inside_a_line(proxy: ApiProxy, session: aiohttp.ClientSession) -> None:
    proxy.play({"match": {"verb": "watch"}, "action": "cut", "after": 1, "times": 1})
    async with session.get(WATCH) as reply:
        assert await event(reply) == ("ADDED", "one")
        with pytest.raises(aiohttp.ClientPayloadError):
            await reply.read()


@pytest.mark.parametrize(
    ("rule", "want"),
    [
        ({"action": "gone"}, '{"type": "ERROR"'),
        ({"action": "inject", "line": "{nonsense"}, "{nonsense\n"),
        ({"action": "end"}, ""),
    ],
)
async def test_a_watch_ends_as_the_rule_specifies(
    proxy: ApiProxy, session: aiohttp.ClientSession, rule: dict[str, Any], want: str
) -> None:
    async with session.get(WATCH) as reply:
        assert [await event(reply), await event(reply)] == [("ADDED", "one"), ("ADDED", "two")]
        proxy.play({"match": {"verb": "watch"}, "times": 1, **rule})
        assert (await reply.content.read()).decode().startswith(want)
    assert [line["action"] for line in proxy.log.lines("fault")] == [rule["action"]]


async def test_bookmarks_are_skipped_and_events_repeated(
    proxy: ApiProxy, session: aiohttp.ClientSession, server: FakeApiServer
) -> None:
    bookmark = {"type": "BOOKMARK", "object": {"kind": "Secret", "metadata": {"resourceVersion": "99"}}}
    line = json.dumps(bookmark, separators=(",", ":")).encode() + b"\n"
    async with session.get(WATCH) as reply:
        assert [await event(reply), await event(reply)] == [("ADDED", "one"), ("ADDED", "two")]
        server.order("secrets", line)
        assert (await event(reply))[0] == "BOOKMARK"
        proxy.play({"action": "drop_bookmarks"}, {"action": "repeat"})
        server.order("secrets", line)
        server.put(secret("three"))
        assert [await event(reply), await event(reply)] == [("ADDED", "three"), ("ADDED", "three")]


async def test_an_unread_watch_uses_up_no_rule(proxy: ApiProxy, session: aiohttp.ClientSession) -> None:
    reply = await session.get(WATCH)
    await event(reply)
    reply.close()
    async with session.get(WATCH) as other:
        assert [await event(other), await event(other)] == [("ADDED", "one"), ("ADDED", "two")]
        proxy.play({"action": "end", "times": 1})
        assert await other.content.read() == b""


async def test_long_lines_are_forwarded_completely(
    proxy: ApiProxy, session: aiohttp.ClientSession, server: FakeApiServer
) -> None:
    large = "x" * 1_400_000
    server.put(secret("large", large))
    async with session.get(WATCH) as reply:
        content = b""
        while content.count(b"\n") < 3:
            content += await reply.content.readany()
    assert json.loads(content.splitlines()[2])["object"]["data"]["k"] == large
