"""Signals that stop the command `run`: it stops in order and finishes its work in progress."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.fakes.adminapi import FakeAdminApi
from tests.flow.commandline import BOUND, COMMAND, QUICKSTART, Cli, environment
from tests.waiting import until


@asynccontextmanager
async def leading(cli: Cli, before: Sequence[str] = ()) -> AsyncIterator[tuple[asyncio.subprocess.Process, Path]]:
    """Start a controller after another command; return it and its log once it leads."""
    log = cli.folder / "log"
    async with FakeAdminApi() as gateway:
        options = ("--http-listen", "127.0.0.1:0", "--log-format", "json", "--manifests", str(QUICKSTART))
        command = (*before, *COMMAND, "run", *options, "--admin-url", gateway.url, "--admin-key", gateway.key)
        with log.open("wb") as stderr, heeded(signal.SIGHUP):
            process = await asyncio.create_subprocess_exec(
                *command, cwd=cli.folder, env=environment(cli.folder), stdout=asyncio.subprocess.DEVNULL, stderr=stderr
            )
        try:
            await until(lambda: "cluster.takeover" in log.read_text(), "it to lead", state=log.read_text)
            yield process, log
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@contextmanager
def heeded(number: signal.Signals) -> Iterator[None]:
    """Restore the default handling of a signal for new processes: under nohup it is ignored."""
    before = signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_run_ends_in_order_on_request(cli: Cli, number: signal.Signals) -> None:
    async with leading(cli) as (process, log):
        process.send_signal(number)
        assert await asyncio.wait_for(process.wait(), BOUND) == 0
    assert log.read_text().count("controller.stopped") == 1


async def test_run_survives_a_closed_terminal_under_nohup(cli: Cli) -> None:
    async with leading(cli, before=("nohup",)) as (process, _log):
        got = ignored_signals(process.pid)
    assert got & 1 << signal.SIGHUP - 1


def ignored_signals(process: int) -> int:
    """Return the signals that a process ignores, a bit for each (proc(5))."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (mask,) = (line.split()[1] for line in lines if line.startswith("SigIgn:"))
    return int(mask, 16)
