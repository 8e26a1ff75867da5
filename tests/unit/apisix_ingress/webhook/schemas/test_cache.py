"""The cache of plugin schemas: read in the background, known only while the cluster answers."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import orjson
import pytest

from apisix_ingress.errors import GatewayRejected, GatewayUnauthorized, GatewayUnavailable
from apisix_ingress.webhook.schemas.cache import REFRESH, RETRY, SOONEST, SchemaCache
from tests.fakes.clock import FakeClock
from tests.unit.apisix_ingress.webhook.worlds import HTTP_PLUGINS, KEY_AUTH, LIMIT_COUNT, STREAM_PLUGINS

BULK = "plugins?all=true&subsystem="
Answer = object | Exception


class Gateway:
    """Returns documents or errors for paths, and records the requests."""

    def __init__(self, answers: Mapping[str, Answer] | None = None) -> None:
        self.answers: dict[str, Answer] = {
            f"{BULK}http": HTTP_PLUGINS,
            f"{BULK}stream": STREAM_PLUGINS,
            **(answers or {}),
        }
        self.asked: list[str] = []

    async def read(self, path: str) -> bytes:
        self.asked.append(path)
        answer = self.answers.get(path, GatewayRejected(404, "not found"))
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, bytes) else orjson.dumps(answer)


class Cached:
    """A cache over a gateway, on a clock that does not advance."""

    def __init__(self, answers: Mapping[str, Answer] | None = None) -> None:
        self.gateway = Gateway(answers)
        self.clock = FakeClock()
        self.cache = SchemaCache("default", self.gateway.read, clock=self.clock, rng=random.Random(0))

    def plugins(self) -> tuple[list[str], list[str]] | None:
        """Return the names of the plugins for requests and for connections, if they are known."""
        book = self.cache.book
        return None if book is None else (sorted(book.http.plugins), sorted(book.stream.plugins))

    @property
    def reads(self) -> int:
        return self.gateway.asked.count(f"{BULK}http")


async def test_both_subsystems_are_read_in_one_request_each() -> None:
    cached = Cached()
    assert (cached.plugins(), cached.cache.age) == (None, None)
    await cached.cache.refresh()
    assert cached.plugins() == (sorted(HTTP_PLUGINS), sorted(STREAM_PLUGINS))
    assert cached.gateway.asked == [f"{BULK}http", f"{BULK}stream"]
    assert cached.cache.age == 0


async def test_subsystem_that_is_refused_has_no_plugins() -> None:
    cached = Cached({f"{BULK}stream": GatewayRejected(400, "stream mode is disabled")})
    await cached.cache.refresh()
    assert cached.plugins() == (sorted(HTTP_PLUGINS), [])


async def test_records_are_requested_one_by_one_without_a_complete_list() -> None:
    cached = Cached(
        {
            f"{BULK}http": GatewayRejected(404, "not found"),
            "plugins/list": ["key-auth", "limit-count", "a/b"],
            "schema/plugins/key-auth": KEY_AUTH["schema"],
            "schema/plugins/key-auth?schema_type=consumer": KEY_AUTH["consumer_schema"],
            "schema/plugins/limit-count": LIMIT_COUNT["schema"],
            "schema/plugins/a%2Fb": {},
        }
    )
    await cached.cache.refresh()
    book = cached.cache.book
    assert book is not None
    assert sorted(book.http.plugins) == ["a/b", "key-auth", "limit-count"]
    assert book.http.mistakes("key-auth", {}, in_consumer=True) == (("", "key is required"),)
    assert book.http.mistakes("limit-count", {}, in_consumer=True) == (("", "count is required"),)


@pytest.mark.parametrize(
    "error",
    [
        GatewayUnavailable("no response"),
        GatewayUnauthorized("the gateway rejects the admin key"),
        GatewayRejected(404, "this gateway is standalone"),
        RuntimeError("a mistake of ours"),
        b"<html>",
        [],
    ],
)
async def test_schemas_are_unknown_from_the_first_failure_to_the_next_success(error: Answer) -> None:
    cached = Cached()
    await cached.cache.refresh()
    cached.gateway.answers[f"{BULK}http"] = error
    await cached.cache.refresh()
    assert cached.plugins() is None
    cached.gateway.answers[f"{BULK}http"] = HTTP_PLUGINS
    await cached.cache.refresh()
    assert cached.plugins() is not None


async def test_the_age_is_that_of_the_last_response() -> None:
    cached = Cached()
    await cached.cache.refresh()
    cached.gateway.answers[f"{BULK}http"] = GatewayUnavailable("no response")
    await cached.clock.advance(7)
    await cached.cache.refresh()
    assert cached.cache.age == 7


async def running(cached: Cached, story: Callable[[], Awaitable[None]]) -> None:
    """Let the cache run for as long as a story takes."""
    task = asyncio.create_task(cached.cache.run(), name="cache")
    try:
        await asyncio.wait_for(story(), 30)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def reads_of(cached: Cached, number: int) -> None:
    """Wait until the cache has sent this many requests; compiling uses a thread, which the clock does not cover."""
    while cached.reads < number or cached.clock.next_wake is None:  # noqa: ASYNC110  # see above
        await asyncio.sleep(0.001)


async def test_schemas_are_read_each_minute() -> None:
    cached = Cached()

    async def story() -> None:
        await reads_of(cached, 1)
        for number in (2, 3):
            for _ in range(round(REFRESH / SOONEST)):
                assert cached.reads == number - 1
                await reads_of(cached, number - 1)
                await cached.clock.advance(SOONEST)
            await reads_of(cached, number)

    await running(cached, story)


async def test_a_missing_plugin_triggers_a_reload_soon_but_not_immediately() -> None:
    cached = Cached()

    async def story() -> None:
        await reads_of(cached, 1)
        for _ in range(100):
            cached.cache.request_refresh()
        await cached.clock.advance(SOONEST - 0.1)
        assert cached.reads == 1
        await cached.clock.advance(0.2)
        await reads_of(cached, 2)
        await cached.clock.advance(SOONEST)
        assert cached.reads == 2

    await running(cached, story)


async def test_an_unreachable_cluster_is_queried_with_growing_delays() -> None:
    cached = Cached({f"{BULK}http": GatewayUnavailable("no response")})
    waits: list[float] = []

    async def story() -> None:
        for number in range(1, 9):
            await reads_of(cached, number)
            before = cached.clock.monotonic()
            await cached.clock.run_to_next()
            waits.append(cached.clock.monotonic() - before)

    await running(cached, story)
    first, most = RETRY
    wanted = [min(first * 2**number, most) for number in range(8)]
    assert all(0.8 * want <= wait <= 1.2 * want for want, wait in zip(wanted, waits, strict=True))
