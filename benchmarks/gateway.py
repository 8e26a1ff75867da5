"""The counting gateway as a process: built once with Go into a temporary folder, controlled over HTTP."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from benchmarks.world import Manifest
from e2e.cluster.client import wait_until
from e2e.cluster.process import Process

SOURCE = Path(__file__).parent / "counting_gateway"
READY = "listening on "
_GRACE = 30.0
"""Additional seconds for the response to a wait."""


class Arrival(NamedTuple):
    """When everything expected had arrived (Unix seconds, if it had), and how much is still missing."""

    done: bool
    at: float
    pending: int


def build(folder: Path) -> Path:
    """Build the program and return its path."""
    if shutil.which("go") is None:
        raise SystemExit("error: the benchmarks need Go 1.24 or newer: install it and put `go` on the PATH")
    program = folder / "counting-gateway"
    subprocess.run(["go", "build", "-o", program, "."], cwd=SOURCE, check=True)
    return program


def raise_revision(program: Path, etcd: str, count: int) -> None:
    """Create a number of revisions in an etcd."""
    subprocess.run([program, "-raise", etcd, "-concurrency", "64", "-writes", str(count)], check=True)


class CountingGateway:
    """One counting gateway. A context manager starts and stops it.

    Args:
        program: What `build` returned.
        folder: Where its log goes.
        write_latency: Added to each write, as a Go duration (`1ms`).
    """

    admin_key = "counting-gateway-key"

    def __init__(self, program: Path, folder: Path, *, write_latency: str = "1ms") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._program = program
        self._url = ""
        command: list[str | Path] = [program, "-write-latency", write_latency]
        log = folder / "gateway.log"
        log.unlink(missing_ok=True)  # an old log would contain the address of an earlier process
        self._process = Process("counting gateway", command, log=log)

    def __enter__(self) -> Self:
        self._process.start()
        self._url = wait_until(self._address, bool, "the counting gateway to listen")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.stop()

    @property
    def url(self) -> str:
        """Its address, for clients that add the Admin API's path."""
        return self._url

    @property
    def admin_url(self) -> str:
        """URL of the Admin API."""
        return f"{self._url}/apisix/admin"

    def stats(self) -> Manifest:
        """Return the counters; times in Unix nanoseconds, zero for never."""
        got: Manifest = self._ask("/stats")
        return got

    def reset(self) -> None:
        """Set the counters to zero; the records stay."""
        self._ask("/reset")

    def expect(self, items: Sequence[Manifest], *, clear: bool = False) -> None:
        """Expect these records in addition to, or with `clear` instead of, those expected already."""
        self._ask("/expect", {"clear": clear, "items": list(items)})

    def wait(self, seconds: float, *, key: str = "") -> Arrival:
        """Wait until all expected records exist, or only the one with this key."""
        got = self._ask(f"/wait?timeout={seconds}s&key={key}", seconds=seconds)
        return Arrival(got["done"], got["at"] / 1e9, got["pending"])

    def met(self) -> dict[str, float]:
        """Return the time (Unix seconds) at which each existing record arrived, by key."""
        return {key: at / 1e9 for key, at in self._ask("/met").items()}

    def wipe(self, kind: str, count: int) -> tuple[int, float]:
        """Drop some records; return how many, and when (Unix seconds)."""
        got = self._ask(f"/wipe?kind={kind}&count={count}")
        return got["wiped"], got["at"] / 1e9

    def ceiling(self, concurrency: int, writes: int) -> float:
        """Return the writes per second of a plain Go client with a number of requests in flight."""
        command = [str(self._program), "-load", self.admin_url, "-key", self.admin_key]
        options = ["-concurrency", str(concurrency), "-writes", str(writes)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
        return float(done.stdout)

    def _address(self) -> str:
        for line in self._process.tail().splitlines():
            if line.startswith(READY):
                return line.removeprefix(READY)
        return ""

    def _ask(self, path: str, body: object = None, *, seconds: float = 0.0) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self._url + path, data, timeout=seconds + _GRACE) as reply:
            return json.load(reply)
