"""One run: wrk sends requests for a while, and the kernel says how much CPU time the worker of the gateway took."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.client import wait_until

_NANOSECONDS = 1000
_WORKER = b"nginx: worker process\0"
_SETTLED = 0.5
"""Seconds that a new worker takes to read thousands of records."""
_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}
_SCRIPT = """local hosts, requests, place = {%s}, {}, 0
function init()
    for index, host in ipairs(hosts) do
        requests[index] = wrk.format("GET", "%s", {Host = host})
    end
end
function request()
    place = place %% #requests + 1
    return requests[place]
end
"""


@dataclass(frozen=True, slots=True)
class Run:
    """The figures of one run.

    Attributes:
        cpu: Microseconds of CPU time of the worker per request.
        rate: Requests per second.
        p99: Milliseconds that one request of a hundred takes longer than.
    """

    cpu: float
    rate: float
    p99: float


class Gateway:
    """The gateway under load.

    Args:
        url: Where it accepts requests.
        master: The process ID of its nginx master.
    """

    def __init__(self, url: str, master: int) -> None:
        self._url = url
        self._master = master
        self._worker = max(self._workers(), default=0)

    def renew_worker(self) -> None:
        """Replace the worker by a new one, which has compiled nothing yet, and wait until it has read the records."""
        before = self._workers()
        os.kill(self._master, signal.SIGHUP)
        self._worker = max(wait_until(lambda: self._workers() - before, bool, "a new worker"))
        time.sleep(_SETTLED)

    def _workers(self) -> set[int]:
        """Return the process IDs of the workers that accept requests."""
        children = Path(f"/proc/{self._master}/task/{self._master}/children").read_text().split()
        return {int(each) for each in children if _command(each).startswith(_WORKER)}

    def run(self, hosts: Sequence[str], path: str, seconds: int, connections: int) -> Run:
        """Send requests to hosts in turn, and return the figures; raise RuntimeError if any response is an error."""
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write(_SCRIPT % (", ".join(f'"{host}"' for host in hosts), path))
            script.flush()
            command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", script.name, self._url]
            before = self._cpu()
            printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            used = self._cpu() - before
        if "Non-2xx" in printed or "Socket errors" in printed:
            raise RuntimeError(f"{hosts[0]}{path}: {printed}")
        count = int(_found(r"(\d+) requests in", printed)[1])
        p99 = _found(r"99%\s+([\d.]+)(us|ms|s)", printed)
        return Run(used / count, float(_found(r"Requests/sec:\s+([\d.]+)", printed)[1]), float(p99[1]) * _UNITS[p99[2]])

    def _cpu(self) -> float:
        """Return the CPU time of the worker in microseconds: proc(5), /proc/PID/schedstat."""
        return int(Path(f"/proc/{self._worker}/schedstat").read_text().split()[0]) / _NANOSECONDS


def _command(process: str) -> bytes:
    """Return the command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""


def _found(pattern: str, printed: str) -> re.Match[str]:
    found = re.search(pattern, printed)
    if found is None:
        raise RuntimeError(f"wrk printed no {pattern}: {printed}")
    return found
