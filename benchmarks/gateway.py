"""The counting gateway as a process: built once with Go into a temporary folder, asked over HTTP."""

import json
import shutil
import subprocess
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from e2e.cluster.client import wait_until
from e2e.cluster.process import Process

SOURCE = Path(__file__).parent / "counting_gateway"
READY = "listening on "


class CountingGateway:
    """One counting gateway. A context manager starts and stops it.

    Args:
        root: A folder of its own.
        write_latency: Added to each write, in Go's words (`1ms`).
    """

    admin_key = "bench"

    def __init__(self, root: Path, *, write_latency: str = "1ms") -> None:
        self._binary = root / "gateway"
        self._url = ""
        command: list[str | Path] = [self._binary, "--write-latency", write_latency]
        self._process = Process("counting gateway", command, log=root / "gateway.log")

    def __enter__(self) -> Self:
        if shutil.which("go") is None:
            raise SystemExit("error: the benchmarks need Go 1.24 or newer: install it and put `go` on the PATH")
        subprocess.run(["go", "build", "-o", self._binary, "."], cwd=SOURCE, check=True)
        self._process.start()
        self._url = wait_until(self._address, bool, "the counting gateway to listen")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.stop()

    @property
    def admin_url(self) -> str:
        """URL of the Admin API."""
        return f"{self._url}/apisix/admin"

    def stats(self) -> dict[str, Any]:
        """Return counters by method, records by kind, first and last write (Unix nanoseconds)."""
        got: dict[str, Any] = self._get("/stats")
        return got

    def log(self) -> list[tuple[int, str, str, dict[str, Any] | None]]:
        """Return every write since the last reset: (Unix nanoseconds, method, path, body)."""
        return [tuple(entry) for entry in self._get("/log")]

    def reset(self) -> None:
        """Set counters and log to zero; the records stay."""
        self._get("/reset")

    def _address(self) -> str:
        for line in self._process.tail().splitlines():
            if line.startswith(READY):
                return line.removeprefix(READY)
        return ""

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(self._url + path, timeout=30) as reply:
            return json.load(reply)
