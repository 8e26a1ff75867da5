"""Checks that fail, take too long or lack a gateway: the object passes with a warning."""

import asyncio
import threading
from dataclasses import replace
from pathlib import Path

import orjson

from apisix_ingress.errors import GatewayRejected, GatewayUnavailable
from apisix_ingress.webhook.admission import Limits
from apisix_ingress.webhook.review import Review, Verdict
from tests.flow.webhook.harness import BAD, BOUND, GOOD, PATIENT, Gateway, judging, review, serving
from tests.unit.apisix_ingress.webhook.worlds import manifest


async def test_check_that_crashes_lets_the_object_pass_with_a_warning(tmp_path: Path) -> None:
    def crash(review: Review) -> Verdict:
        raise RuntimeError("s3cret")

    async with judging(tmp_path, crash, PATIENT) as client:
        for item in (GOOD, manifest({"x": "y" * 100_000})):
            got = await client.ask(item)
            assert got["allowed"]
            assert got["warnings"] == ["the object was not checked: the check crashed; the controller checks it again"]
        assert client.seen.results == {("ApisixRoute", "crashed"): 2}


async def test_a_slow_large_object_delays_no_other(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(review: Review) -> Verdict:
        if len(orjson.dumps(review.object)) > 50_000:
            begun.set()
            go_on.wait(BOUND)
        return Verdict()

    async with judging(tmp_path, slow, replace(Limits(), deadline=0.5, large=2)) as client:
        large = manifest({"x": "y" * 100_000})
        waiting = [asyncio.create_task(client.post(review(large))) for _ in range(2)]
        assert await asyncio.to_thread(begun.wait, BOUND)
        assert (await client.ask(GOOD)) == {"uid": "u1", "allowed": True}
        answers = [await task for task in waiting]
        assert sorted(status for status, _ in answers) == [200, 503]
        assert "took too long" in max(text for _, text in answers)
        assert (await client.post(review(large)))[0] == 429
        go_on.set()
        async with asyncio.timeout(BOUND):
            while (await client.post(review(large)))[0] != 200:  # the thread has to come to an end
                pass


async def test_objects_are_allowed_before_the_first_sync(tmp_path: Path) -> None:
    ready: list[bool] = []
    async with serving(tmp_path, Gateway(), PATIENT, lambda: bool(ready)) as client:
        got = await client.ask(BAD)
        assert (got["allowed"], len(got["warnings"])) == (True, 1)
        ready.append(True)
        assert not (await client.ask(BAD))["allowed"]


async def test_an_unreachable_gateway_is_a_warning_until_it_recovers(tmp_path: Path) -> None:
    gateway = Gateway(error=GatewayUnavailable("no response"))
    async with serving(tmp_path, gateway, PATIENT, lambda: True) as client:
        got = await client.ask(BAD)
        want = "plugins were not checked: the schemas of gateway cluster default are unknown at present"
        assert (got["allowed"], got["warnings"]) == (True, [want])
        asked = len(gateway.asked)
        await client.ask(BAD)
        assert len(gateway.asked) == asked
        gateway.error = None
        async with asyncio.timeout(BOUND):
            while (await client.ask(BAD))["allowed"]:  # noqa: ASYNC110  # the cache retries automatically
                await asyncio.sleep(0.05)


async def test_a_gateway_that_rejects_the_check_is_a_warning(tmp_path: Path) -> None:
    async with serving(tmp_path, Gateway(error=GatewayRejected(404, "not found")), PATIENT, lambda: True) as client:
        assert (await client.ask(BAD))["allowed"]
