"""The elector against an API server over HTTP: real sockets, real time, short leases."""

import asyncio
import contextlib
import random
from pathlib import Path

from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.election.elector import LeaderElector
from apisix_ingress.kube.election.interface import LeaseOptions
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.term import Term
from tests.fakes.kube.apiserver import FakeApiServer, Fault

WAIT_SECONDS = 20.0


class Candidate:
    def __init__(self, api: KubeApi, name: str) -> None:
        self.leads = asyncio.Event()
        self.follows = asyncio.Event()
        self.last_write = 0.0
        self.clock = MonotonicClock()
        options = LeaseOptions("leader", "ours", name, lease_duration=1.0, renew_deadline=0.7, retry_period=0.1)
        self.elector = LeaderElector(api, options, clock=self.clock, rng=random.Random(3))
        self.task = asyncio.create_task(self.elector.lead(self.work))

    async def work(self, term: Term) -> None:
        self.follows.clear()
        self.leads.set()
        try:
            while True:
                term.check()
                self.last_write = self.clock.monotonic()
                await asyncio.sleep(0.01)  # a leader that writes regularly
        finally:
            self.leads.clear()
            self.follows.set()

    async def stop(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task


async def test_a_leader_that_shuts_down_hands_over(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(WAIT_SECONDS),
        FakeApiServer() as server,
        await KubeApi.connect(str(server.kubeconfig(tmp_path / "k"))) as api,
    ):
        one = Candidate(api, "one")
        await one.leads.wait()
        two = Candidate(api, "two")
        await one.stop()
        await two.leads.wait()
        lease = server.get("leases", "leader", "ours") or {}
        assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("two", 1)
        await two.stop()


async def test_a_leader_cut_off_from_the_api_server_stops_writing_before_the_next_one_starts(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(WAIT_SECONDS),
        FakeApiServer() as server,
        await KubeApi.connect(str(server.kubeconfig(tmp_path / "k"))) as api,
    ):
        one = Candidate(api, "one")
        await one.leads.wait()
        two = Candidate(api, "two")

        def by_one(seen: object) -> bool:
            return "'one'" in str(getattr(seen, "body", None))

        server.faults.append(Fault("*", "leases", hang=True, when=by_one))
        await two.leads.wait()
        began = two.clock.monotonic()
        await one.follows.wait()
        assert one.last_write < began
        await one.stop()
        await two.stop()
