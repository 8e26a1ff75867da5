"""Memory of a controller under continuous edits, whose watches end from time to time.

In `make test` for a few seconds; `make soak` takes ten minutes (`SOAK=600`, in seconds). Only values without noise are
asserted: open files, threads, and that every change arrived. Memory is recorded.
"""

import os
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from e2e.cluster.client import KubeClient, wait_until
from e2e.conftest import OWN
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway
from e2e.faults import checks
from e2e.faults.figures import note
from e2e.faults.proxies.admin_proxy import AdminProxy
from e2e.faults.proxies.api_proxy import ApiProxy
from e2e.faults.world import World, differences

SOAK = float(os.environ.get("SOAK", "4"))
WATCHES_END = max(1.0, min(60.0, SOAK / 10))
"""Seconds between closing all watches."""

SAMPLES = 60
SLACK = 40
"""Additional open files: connections to the API server and the gateway, idle or just closed."""

POOL = min(32, (os.cpu_count() or 1) + 4)
"""Size of asyncio's thread pool: it starts threads one by one, so most of them do not exist at first."""

PAGE = os.sysconf("SC_PAGE_SIZE")


class Gauge:
    """Resources of one process, read from /proc periodically."""

    def __init__(self, pid: int) -> None:
        self._proc = Path("/proc", str(pid))
        self.samples: list[tuple[float, float, int, int]] = []
        """(monotonic seconds, MiB resident, open files, threads)."""

    def look(self) -> None:
        """Take a sample, unless the last one is recent."""
        now = time.monotonic()
        if self.samples and now - self.samples[-1][0] < SOAK / SAMPLES:
            return
        resident = int((self._proc / "statm").read_text().split()[1]) * PAGE / 2**20
        files = len(list((self._proc / "fd").iterdir()))
        self.samples.append((now, resident, files, len(list((self._proc / "task").iterdir()))))

    def growth(self) -> float:
        """Return MiB an hour: the least-squares slope over the second half, when caches are warm."""
        half = self.samples[len(self.samples) // 2 :]
        when, size = [each[0] for each in half], [each[1] for each in half]
        mid, mean = sum(when) / len(half), sum(size) / len(half)
        spread = sum((at - mid) ** 2 for at in when)
        return 3600 * sum((at - mid) * (mib - mean) for at, mib in zip(when, size, strict=True)) / spread


@pytest.fixture
def soaked(
    cluster_api: KubeClient, kubeconfig: Path, tmp_path: Path
) -> Iterator[tuple[World, Controller, DevGateway, AdminProxy, ApiProxy]]:
    """Objects, a controller, and proxies for the API server and the gateway."""
    with ExitStack() as stack:
        namespace = stack.enter_context(cluster_api.namespace("soak", labels=OWN))
        cluster_api.patch("Namespace", namespace, {"metadata": {"labels": {"e2e-story": namespace}}})
        gateway = stack.enter_context(DevGateway(stream=False))
        admin = stack.enter_context(AdminProxy(gateway.admin_url, gateway.admin_key, tmp_path))
        api = stack.enter_context(ApiProxy(kubeconfig, tmp_path, name="api"))
        world = World(cluster_api, namespace, random.Random(namespace))
        world.found()
        own = Controller(
            tmp_path,
            kubeconfig=api.kubeconfig,
            gateways={"default": admin},
            kubernetes={"namespace_selector": f"e2e-story={namespace}", "election": {"name": namespace}},
            sync={"audit_interval": "5s"},
        )
        with own:
            yield world, own, gateway, admin, api


@pytest.mark.timeout(120 + 2 * SOAK)
def test_continuous_edits_leak_neither_files_nor_threads(
    soaked: tuple[World, Controller, DevGateway, AdminProxy, ApiProxy],
) -> None:
    world, own, gateway, admin, api = soaked
    assert own.process.pid is not None
    gauge, edits, ends = Gauge(own.process.pid), 0, 0
    began = time.monotonic()
    while (gone := time.monotonic() - began) < SOAK:
        if gone > (ends + 1) * WATCHES_END:
            ends += 1
            api.play({"match": {"verb": "watch"}, "action": "end", "times": 20, "number": ends})
        world.edit()
        edits += 1
        gauge.look()
    api.play()
    wait_until(
        lambda: differences(world.held(gateway), world.expected()),
        lambda found: found == [],
        "the gateway to be right",
        60,
    )
    first, last = gauge.samples[0], gauge.samples[-1]
    assert ends > 0
    assert last[2] <= first[2] + SLACK
    assert last[3] <= first[3] + POOL, "the threads of one pool"
    assert checks.late_writes(admin.entries()) == checks.forced(admin.entries()) == []
    assert own.events("record.crashed") == own.events("audit.crashed") == []
    middle = gauge.samples[len(gauge.samples) // 2]
    memory = [round(each[1], 1) for each in (first, middle, last)]
    figures = {"seconds": round(SOAK), "edits": edits, "watches_ended": ends, "writes": len(admin.writes())}
    # A few seconds contain only the warm-up.
    growth = round(gauge.growth(), 1) if SOAK >= 120 else None
    note("F-29", **figures, rss_mib=memory, growth_mib_per_h=growth, files=[first[2], last[2]])
