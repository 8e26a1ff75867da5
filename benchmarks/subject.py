"""The controller that is measured, as a process: started, stopped, and asked for its CPU time and memory."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.adapter import Adapter, fill
from e2e.cluster.process import Process
from e2e.devgateway.ports import free_port

STOP_GRACE = 20.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """CPU seconds so far, peak and present memory in MB."""

    cpu: float
    peak: float
    now: float


class Subject:
    """One controller, as its adapter starts it.

    Args:
        adapter: How it is started.
        known: What is to be filled in to the adapter's texts, apart from folder and ports.
        folder: A folder of its own, for its files and its log.
    """

    def __init__(self, adapter: Adapter, known: Mapping[str, str], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        ports = {f"port{number}": str(free_port()) for number in range(4)}
        filled = {**known, **ports, "folder": str(folder)}
        for name, content in adapter.files.items():
            (folder / name).write_text(json.dumps(fill(content, filled)))
        self.log = folder / "controller.log"
        command = [fill(word, filled) for word in adapter.command]
        self._process = Process(adapter.name, command, log=self.log, env=fill(adapter.environment, filled))
        self.started_at = 0.0

    def start(self) -> None:
        """Start it; note when (Unix seconds)."""
        self.started_at = time.time()
        self._process.start()

    def stop(self) -> float:
        """End it with SIGTERM; return the seconds that it took."""
        began = time.monotonic()
        self._process.stop(STOP_GRACE)
        return time.monotonic() - began

    @property
    def running(self) -> bool:
        """Whether it has not ended by itself."""
        return self._process.pid is not None

    def usage(self) -> Usage:
        """Return what it used, of the running process alone; it must run."""
        if self._process.pid is None:
            raise SystemExit(f"error: {self._process.name} ended by itself:\n{self._process.tail()}")
        proc = Path("/proc") / str(self._process.pid)
        ticks = (proc / "stat").read_text().rpartition(")")[2].split()[11:13]
        status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
        peak, now = (int(status[name].split()[0]) / 1024 for name in ("VmHWM", "VmRSS"))
        return Usage(sum(map(int, ticks)) / _TICKS, peak, now)
