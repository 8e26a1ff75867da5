"""The scenarios: each one exercises one controller and returns figures by name.

The names of figures contain the unit: seconds, milliseconds or megabytes. A latency is measured from just before the
change is sent to the API server until the counting gateway has the record. `cold` runs first; the other scenarios
continue with the controller that it started.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from benchmarks.gateway import Arrival, CountingGateway
from benchmarks.subject import Subject
from benchmarks.world import Manifest, Patch, World
from e2e.cluster.client import KubeClient

Figures = dict[str, float]

COLD_SECONDS = 900.0
CHANGE_SECONDS = 20.0
LOOK_SECONDS = 2.0
"""How often a waiting scenario checks that the controller still runs."""
RESTART_SECONDS = 120.0
QUIET_SECONDS = 4.0
"""After this time without a write, the controller is considered idle."""
PAUSE = 0.1
"""Pause between two single changes."""
STORM = 200
STORM_WORKERS = 8
WIPED = 10
PERCENT = 1 / 100


@dataclass(slots=True)
class Bench:
    """One controller, one gateway, and one API server with objects."""

    api: KubeClient
    gateway: CountingGateway
    world: World
    subject: Subject
    changes: int = 100
    idle_seconds: float = 30.0
    wipe_seconds: float = 75.0
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(STORM_WORKERS))
    rng: random.Random = field(default_factory=lambda: random.Random(7))

    def cold(self) -> Figures:
        """Start it with an empty gateway; wait for every route, then until it is idle."""
        self.gateway.expect([self.world.expected(number) for number in range(self.world.shape.size)], clear=True)
        self.gateway.reset()
        self.subject.start()
        arrival = self._arrived(COLD_SECONDS)
        usage, stats = self.subject.usage(), self.gateway.stats()
        began = self.subject.started_at
        if not arrival.done:
            return {"pending": arrival.pending, **_traffic(stats)}
        self._settle()
        after = self.subject.usage()
        return {
            "seconds": arrival.at - began,
            "first_write_seconds": stats["first_write"] / 1e9 - began,
            "cpu_seconds": usage.cpu,
            "settled_cpu_seconds": after.cpu,
            "peak_mb": after.peak,
            "peak_in_flight": stats["peak_in_flight"],
            **_traffic(self.gateway.stats()),
        }

    def ahead(self) -> Figures:
        """During a cold sync, change endpoints of routes that the gateway already has."""
        size = self.world.shape.size
        self.gateway.expect([self.world.expected(number) for number in range(size)], clear=True)
        self.gateway.reset()
        self.subject.start()
        self._wait_for_share(size)
        seconds: list[float] = []
        deadline = time.monotonic() + CHANGE_SECONDS
        while self.gateway.stats()["pending"] > size * PERCENT and time.monotonic() < deadline:
            number = int(self.rng.choice(list(self.gateway.met())))
            seconds.append(self._change(number))
            time.sleep(PAUSE)
        self._arrived(COLD_SECONDS)
        self._settle()
        return latencies(seconds)

    def change(self) -> Figures:
        """Change the endpoints of one route after another."""
        return self._series(lambda number, _turn: self._change(number))

    def edit(self) -> Figures:
        """Change the path of one route after another."""
        return self._series(self._edit)

    def storm(self) -> Figures:
        """Change the endpoints of many routes as fast as the API server accepts it."""
        size = self.world.shape.size
        numbers = self.rng.sample(range(size), min(STORM, size))
        patches = {number: self.world.change_endpoints(number) for number in numbers}
        self.gateway.reset()
        self.gateway.expect([self.world.expected(number) for number in numbers])
        before, began = self.subject.usage(), time.time()
        sent = dict(zip(numbers, self.pool.map(lambda number: self._send(patches[number]), numbers), strict=True))
        burst = time.time() - began
        arrival = self._arrived(RESTART_SECONDS)
        met = self.gateway.met()
        time.sleep(1.0)
        return {
            "seconds": arrival.at - began,
            "burst_seconds": burst,
            "cpu_seconds": self.subject.usage().cpu - before.cpu,
            **latencies([met[str(number)] - sent[number] for number in numbers if str(number) in met]),
            **_traffic(self.gateway.stats()),
        }

    def idle(self) -> Figures:
        """Do nothing for a while."""
        self._settle()
        self.gateway.reset()
        before = self.subject.usage()
        time.sleep(self.idle_seconds)
        after = self.subject.usage()
        cpu = (after.cpu - before.cpu) * 60 / self.idle_seconds
        return {"cpu_seconds_per_minute": cpu, "memory_mb": after.now, **_traffic(self.gateway.stats())}

    def restart(self) -> Figures:
        """Restart it without changes; then restart it with a change made while it is stopped."""
        stopped = self.subject.stop()
        self.gateway.reset()
        self.subject.start()
        time.sleep(2.0)
        self._settle()
        traffic, usage = _traffic(self.gateway.stats()), self.subject.usage()
        self.subject.stop()
        number = self.rng.randrange(self.world.shape.size)
        self._send(self.world.change_endpoints(number))
        self.gateway.expect([self.world.expected(number)])
        self.subject.start()
        arrival = self._arrived(RESTART_SECONDS, key=str(number))
        self._settle()
        caught_up = {"caught_up_seconds": arrival.at - self.subject.started_at} if arrival.done else {}
        return {"stop_seconds": stopped, "cpu_seconds": usage.cpu, **caught_up, **traffic}

    def wipe(self) -> Figures:
        """Drop some routes from the gateway; wait until they are back."""
        self._settle()
        self.gateway.reset()
        count, began = self.gateway.wipe("routes", WIPED)
        arrival = self._arrived(self.wipe_seconds)
        healed = {"healed_seconds": arrival.at - began} if arrival.done else {"waited_seconds": self.wipe_seconds}
        return {"wiped": count, "pending": arrival.pending, **healed, **_traffic(self.gateway.stats())}

    def close(self) -> None:
        """Stop the controller and the threads."""
        self.subject.close()
        self.pool.shutdown()

    def _series(self, step: Callable[[int, int], float]) -> Figures:
        self._settle()
        self.gateway.reset()
        before = self.subject.usage()
        seconds = []
        for turn in range(self.changes):
            seconds.append(step(self.rng.randrange(self.world.shape.size), turn))
            time.sleep(PAUSE)
        time.sleep(1.0)
        stats, cpu = self.gateway.stats(), self.subject.usage().cpu - before.cpu
        return {
            **latencies(seconds),
            "writes_each": stats["writes"] / self.changes,
            "reads_each": stats["reads"] / self.changes,
            "noops": stats["noops"],
            "cpu_ms_each": cpu * 1000 / self.changes,
        }

    def _change(self, number: int) -> float:
        patches = self.world.change_endpoints(number)
        self.gateway.expect([self.world.expected(number)])
        return self._arrival(self._send_together(patches), str(number))

    def _edit(self, number: int, turn: int) -> float:
        gone, patch = self.world.edit(number, f"e{turn}")
        self.gateway.expect([self.world.expected(number), gone])
        return self._arrival(self._send([patch]), str(number))

    def _arrived(self, seconds: float, *, key: str = "") -> Arrival:
        """Wait for the expected records as long as the controller runs."""
        deadline = time.monotonic() + seconds
        while not (arrival := self.gateway.wait(LOOK_SECONDS, key=key)).done and time.monotonic() < deadline:
            self.subject.usage()  # exits if the controller has ended
        return arrival

    def _arrival(self, began: float, key: str) -> float:
        """Return the seconds until something arrived; infinite if it did not arrive in time."""
        arrival = self.gateway.wait(CHANGE_SECONDS, key=key)
        return arrival.at - began if arrival.done else float("inf")

    def _send(self, patches: Sequence[Patch]) -> float:
        """Send changes; return when the first of them was sent (Unix seconds)."""
        began = time.time()
        for patch in patches:
            self.api.patch(patch.kind, patch.name, patch.body, namespace=patch.namespace)
        return began

    def _send_together(self, patches: Sequence[Patch]) -> float:
        """Send changes at the same time; it does not matter which of them a controller watches."""
        return min(self.pool.map(lambda patch: self._send([patch]), patches))

    def _settle(self) -> None:
        """Wait until the gateway got no write for a while; reads are ignored."""
        deadline = time.monotonic() + RESTART_SECONDS
        while time.monotonic() < deadline:
            stats = self.gateway.stats()
            last = max(stats["last_write"] / 1e9, self.subject.started_at)
            if stats["now"] / 1e9 - last >= QUIET_SECONDS:
                return
            time.sleep(0.2)

    def _wait_for_share(self, size: int) -> None:
        deadline = time.monotonic() + COLD_SECONDS
        while self.gateway.stats()["pending"] > size * (1 - PERCENT) and time.monotonic() < deadline:
            self.subject.usage()
            time.sleep(0.005)


SCENARIOS: dict[str, Callable[[Bench], Figures]] = {
    "cold": Bench.cold,
    "change": Bench.change,
    "edit": Bench.edit,
    "storm": Bench.storm,
    "idle": Bench.idle,
    "restart": Bench.restart,
    "wipe": Bench.wipe,
}


def _traffic(stats: Manifest) -> Figures:
    return {"writes": stats["writes"], "reads": stats["reads"], "noops": stats["noops"]}


def latencies(seconds: Sequence[float]) -> Figures:
    """Return quantiles in milliseconds, and the number of changes that never arrived."""
    there = sorted(second * 1000 for second in seconds if second != float("inf"))
    lost = len(seconds) - len(there)
    if len(there) < 2:
        return {"samples": len(there), "lost": lost}
    cuts = statistics.quantiles(there, n=20, method="inclusive")
    return {"p50_ms": cuts[9], "p95_ms": cuts[18], "max_ms": there[-1], "samples": len(there), "lost": lost}
