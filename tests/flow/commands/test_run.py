"""The command `run` as users see it: errors that end it with one line, and faults that it survives."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from e2e.cluster.process import whole_lines
from e2e.devgateway.ports import free_port
from tests.fakes.adminapi import FakeAdminApi
from tests.flow.commandline import BOUND, COMMAND, QUICKSTART, Cli, environment
from tests.waiting import until


def kubeconfig(server: str) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "anyone"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    return yaml.safe_dump(document)


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (["--config", "nowhere.yaml"], "nowhere.yaml: cannot be read: No such file or directory"),
        (["--config", "typo.yaml"], "clusterz: unknown key, did you mean clusters?"),
        (["--kubeconfig", "nowhere"], "kubeconfig nowhere: no such file"),
        (["--kubeconfig", "typo.yaml"], "kubeconfig typo.yaml"),
        ([], "kubernetes: no API server credentials: not running in a Pod, KUBECONFIG is not set and "),
        (["--manifests", "nowhere"], "--manifests nowhere: no such file or folder"),
        (["--manifests", ""], "--manifests '': no such file or folder"),
        (["--manifests", ".", "--admin-url", "ftp://x"], "clusters[0].admin_url: must be an http or https URL"),
        (["--manifests", ".", "--config", "key.yaml"], "cluster default: admin_key_file /nowhere: cannot be read"),
    ],
)
def test_run_ends_with_one_line_that_names_the_remedy(cli: Cli, arguments: list[str], want: str) -> None:
    cli.write("typo.yaml", "clusterz: []\n")
    cli.write("key.yaml", "clusters: [{admin_key_file: /nowhere}]\n")
    got = cli("run", "--http-listen", "127.0.0.1:0", *arguments)
    assert (got.returncode, got.stdout) == (2, "")
    assert (got.stderr.startswith(f"error: {want}"), got.stderr.count("\n")) == (True, 1), got.stderr


def test_run_ends_if_its_port_is_in_use(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        got = cli("run", "--manifests", ".", "--http-listen", f"127.0.0.1:{port}")
    want = f"error: http.listen: cannot listen on 127.0.0.1:{port}: another process listens there; "
    assert (got.returncode, got.stdout, got.stderr.count("\n")) == (2, "", 1)
    assert got.stderr.startswith(want)


@dataclass(frozen=True)
class Running:
    """A controller that was started."""

    process: asyncio.subprocess.Process
    log: Path
    port: int

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return its log lines with an event name."""
        lines = map(json.loads, whole_lines(self.log))
        return [line for line in lines if line["event"] == name]

    async def until_logged(self, name: str) -> None:
        await until(lambda: bool(self.events(name)), f"an event {name}", state=self.log.read_text)

    async def probe(self, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{self.port}{path}") as reply:
            return reply.status, await reply.text()

    async def stop(self) -> int:
        """Stop it as Kubernetes does; return its exit status."""
        self.process.terminate()
        return await asyncio.wait_for(self.process.wait(), BOUND)


@asynccontextmanager
async def running(folder: Path, *arguments: str) -> AsyncIterator[Running]:
    """Start the controller; it is killed at the end if it still runs."""
    port, log = free_port(), folder / "log"
    with log.open("wb") as stderr:
        command = (*COMMAND, "run", "--http-listen", f"127.0.0.1:{port}", "--log-format", "json", *arguments)
        process = await asyncio.create_subprocess_exec(
            *command, cwd=folder, env=environment(folder), stdout=asyncio.subprocess.DEVNULL, stderr=stderr
        )
    try:
        yield Running(process, log, port)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_run_continues_with_a_wrong_admin_key_and_few_requests(cli: Cli) -> None:
    async with FakeAdminApi() as gateway:
        arguments = ("--manifests", str(QUICKSTART), "--admin-url", gateway.url, "--admin-key", "not-the-key")
        async with running(cli.folder, *arguments) as controller:
            await controller.until_logged("cluster.unauthorized")
            asked = len(gateway.seen)
            await asyncio.sleep(1.5)  # time in which a retry loop would be visible
            assert (await controller.probe("/readyz"))[0] == 200
            status, text = await controller.probe("/apisix/healthz")
            assert await controller.stop() == 0
        assert (asked, len(gateway.seen), gateway.records) == (1, 1, {})
    (line,) = controller.events("cluster.unauthorized")
    assert "admin_key" in line["error"]
    assert (status, "default" in text) == (500, True)
    assert "not-the-key" not in controller.log.read_text()


async def test_run_waits_for_a_gateway_that_is_away(cli: Cli) -> None:
    gateway = FakeAdminApi()
    await gateway.start()
    await gateway.stop()
    arguments = ("--manifests", str(QUICKSTART), "--admin-url", gateway.url, "--admin-key", gateway.key)
    async with running(cli.folder, *arguments) as controller:
        await controller.until_logged("cluster.unreachable")
        async with gateway:
            await until(lambda: len(gateway.ids("routes")) == 3, "three routes", state=controller.log.read_text)
        assert await controller.stop() == 0
    (line,) = controller.events("cluster.unreachable")
    assert f"127.0.0.1:{gateway.port}" in line["error"]


async def test_run_waits_for_an_api_server_that_is_away(cli: Cli) -> None:
    address = f"127.0.0.1:{free_port()}"
    cli.write("kubeconfig", kubeconfig(f"http://{address}"))
    async with running(cli.folder, "--kubeconfig", "kubeconfig") as controller:
        await controller.until_logged("apiserver.unreachable")
        await asyncio.sleep(1.5)  # time in which a retry loop would be visible
        status, text = await controller.probe("/readyz")
        assert await controller.stop() == 0
    assert status == 503
    want = f"API server {address}: cannot connect to {address}: Connection refused"
    assert json.loads(text)["checks"]["objects"] == want
    (line,) = controller.events("apiserver.unreachable")
    assert line["server"] == address
    assert not controller.events("reflector.failed")
    assert not controller.events("lease.unavailable")
