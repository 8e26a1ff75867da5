"""A gateway with responses that are large, endless, slow or cause backtracking: the program stays responsive."""

import asyncio
import signal
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.fakes.adminapi import FakeAdminApi
from tests.fakes.hostile import ANSWERS, answering, refusing
from tests.fakes.kube.apiserver import FakeApiServer
from tests.flow.commandline import BOUND, COMMAND, QUICKSTART, Cli, environment
from tests.flow.program import SERVED, put_world, route, running
from tests.waiting import until

NAMES = ["title", "code", "large error", "large answer", "endless list", "deep list", "slow list", "slow answer"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_controller_stops_on_sigterm_whatever_a_gateway_returns(name: str, cli: Cli) -> None:
    method, _ = ANSWERS[name]
    async with FakeAdminApi() as gateway:
        gateway.instead = answering(name)
        options = ("--http-listen", "127.0.0.1:0", "--log-format", "json", "--manifests", str(QUICKSTART))
        process = await asyncio.create_subprocess_exec(
            *(*COMMAND, "run", *options, "--admin-url", gateway.url, "--admin-key", gateway.key),
            cwd=cli.folder,
            env=environment(cli.folder),
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            await until(lambda: method in {seen for seen, _ in gateway.seen}, f"a {method}", state=lambda: gateway.seen)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), BOUND) == 0
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def test_a_rejected_object_with_many_texts_does_not_lose_the_lease(tmp_path: Path) -> None:
    async with FakeApiServer(SERVED.values()) as server, FakeAdminApi() as gateway:
        gateway.instead = refusing()
        put_world(server)
        config = {"allow_origins": 5, "x": {f"x{number}": f"text number {number}" for number in range(40_000)}}
        many = route("many")
        many["spec"]["http"][0]["plugins"] = [{"name": "cors", "enable": True, "config": config}]
        with capture_logs() as logs:
            async with running(server, gateway, tmp_path) as app:
                await app.until(lambda: gateway.ids("upstreams") != set(), "the world")
                server.put(many)
                await app.until(
                    lambda: any(e["event"] == "record.rejected" and e["name"] == "default_many_rule" for e in logs),
                    "the refusal",
                )
        rejected = [entry for entry in logs if entry["event"] == "record.rejected"]
        assert all("text number" not in entry["error"] for entry in rejected)
        assert [entry for entry in logs if entry["event"] == "lease.lost"] == []
