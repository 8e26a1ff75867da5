"""Checks that fail, take too long or lack a gateway: the object passes with a warning."""

import asyncio
from dataclasses import replace
from pathlib import Path

from apisix_ingress.errors import GatewayRejected, GatewayUnavailable
from apisix_ingress.webhook.review import Review, Verdict
from tests.flow.webhook.harness import BAD, BOUND, GOOD, PATIENT, Gateway, judging, serving
from tests.unit.apisix_ingress.webhook.worlds import manifest
from tests.waiting import until


async def test_check_that_crashes_lets_the_object_pass_with_a_warning(tmp_path: Path) -> None:
    def crash(review: Review) -> Verdict:
        raise RuntimeError("s3cret")

    async with judging(tmp_path, crash, PATIENT) as client:
        for item in (GOOD, manifest({"x": "y" * 100_000})):
            got = await client.ask(item)
            assert got["allowed"]
            assert got["warnings"] == ["the object was not checked: the check crashed; the controller checks it again"]
        assert client.seen.results == {("ApisixRoute", "crashed"): 2}


async def test_a_check_that_does_not_return_delays_no_other(tmp_path: Path) -> None:
    returns: list[bool] = []

    def endless(review: Review) -> Verdict:
        while "endless" in review.object["spec"] and not returns:
            pass
        return Verdict()

    async with judging(tmp_path, endless, PATIENT) as client:
        waiting = [asyncio.create_task(client.ask(manifest({"endless": "y" * size}))) for size in (1, 100_000)]
        waiting.pop().cancel()  # its client hangs up
        assert (await client.ask(GOOD)) == {"uid": "u1", "allowed": True}
        assert not waiting[0].done()
        returns.append(True)
        assert (await waiting[0])["allowed"]


async def test_a_check_that_does_not_return_is_ended(tmp_path: Path) -> None:
    ended: list[str] = []

    def endless(review: Review) -> Verdict:
        try:
            while True:
                pass
        finally:
            ended.append(review.uid)

    async with judging(tmp_path, endless, replace(PATIENT, check=0.2)) as client:
        for number in range(7):
            got = await client.ask(GOOD, uid=f"u{number}")
            assert got["allowed"]
            assert got["warnings"] == [
                "the object was not checked: the check took too long; the controller checks it again"
            ]
        assert client.seen.results["ApisixRoute", "late"] == 7
        await until(lambda: ended == [f"u{number}" for number in range(7)], "the end of the checks")


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
