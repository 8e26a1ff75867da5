"""The measured controller as processes: starts and stops them, and reads their CPU time and memory."""

from __future__ import annotations

import json
import os
import time
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.adapter import Adapter, Sidecar, fill
from e2e.cluster.client import wait_until
from e2e.cluster.process import Process
from e2e.devgateway.ports import free_port

STOP_GRACE = 20.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """CPU seconds so far, peak and current memory in MB."""

    cpu: float
    peak: float
    now: float


class Subject:
    """One controller, as its adapter starts it.

    A sidecar runs from before the first start until the end, like a container when another container of its Pod
    restarts. Its resource use is added to the controller's.

    Args:
        adapter: How to start it.
        known: Placeholders for the adapter's texts, except folder and ports.
        folder: Its own folder for files and logs.
    """

    def __init__(self, adapter: Adapter, known: Mapping[str, str], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        ports = {f"port{number}": str(free_port()) for number in range(4)}
        filled = {**known, **ports, "folder": str(folder)}
        for name, content in adapter.files.items():
            (folder / name).write_text(json.dumps(fill(content, filled)))
        command = [fill(word, filled) for word in adapter.command]
        log = folder / "controller.log"
        self._process = Process(adapter.name, command, log=log, env=fill(adapter.environment, filled))
        self._beside = Beside(adapter.sidecar, filled, folder) if adapter.sidecar else None
        self.started_at = 0.0

    def start(self) -> None:
        """Start it once its sidecar is ready; record the time (Unix seconds)."""
        if self._beside:
            self._beside.begin()
        self.started_at = time.time()
        self._process.start()

    def stop(self) -> float:
        """Stop it with SIGTERM, but not its sidecar; return the seconds that this took."""
        began = time.monotonic()
        self._process.stop(STOP_GRACE)
        return time.monotonic() - began

    def close(self) -> None:
        """Stop it and its sidecar."""
        self.stop()
        if self._beside:
            self._beside.process.stop(STOP_GRACE)

    def usage(self) -> Usage:
        """Return the resource use since its last start, including its sidecar; both must run."""
        own = used(self._process)
        return total([own, self._beside.usage()]) if self._beside else own


class Beside:
    """The process of a sidecar: started once; its CPU time is counted from each start of the controller."""

    def __init__(self, sidecar: Sidecar, known: Mapping[str, str], folder: Path) -> None:
        command = [fill(word, known) for word in sidecar.command]
        environment = fill(sidecar.environment, known)
        self.process = Process("sidecar", command, log=folder / "sidecar.log", env=environment)
        self._ready = fill(sidecar.ready, known)
        self._before = 0.0

    def begin(self) -> None:
        """Start it and wait until it is ready, or reset its CPU time. The first start counts as the controller's."""
        if self.process.pid is not None:
            self._before = used(self.process).cpu
            return
        self.process.start()
        wait_until(lambda: self.process.pid is None or answers(self._ready), bool, f"{self._ready} to answer")
        used(self.process)  # exits if it has ended

    def usage(self) -> Usage:
        """Return its resource use since the controller's last start."""
        usage = used(self.process)
        return usage._replace(cpu=usage.cpu - self._before)


def used(process: Process) -> Usage:
    """Return the resource use of a running process."""
    if process.pid is None:
        raise SystemExit(f"error: {process.name} ended unexpectedly:\n{process.tail()}")
    proc = Path("/proc") / str(process.pid)
    ticks = (proc / "stat").read_text().rpartition(")")[2].split()[11:13]
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    peak, now = (int(status[name].split()[0]) / 1024 for name in ("VmHWM", "VmRSS"))
    return Usage(sum(map(int, ticks)) / _TICKS, peak, now)


def total(parts: Iterable[Usage]) -> Usage:
    """Add up the resource use of several processes; their memory peaks may be at different times."""
    return Usage(*map(sum, zip(*parts, strict=True)))


def answers(url: str) -> bool:
    """Return whether a URL responds with success."""
    try:
        with urllib.request.urlopen(url, timeout=1.0):
            return True
    except OSError:
        return False
