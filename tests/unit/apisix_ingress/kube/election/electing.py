"""Candidates for one Lease on a virtual clock, with an API server that is slow, hangs, fails and loses replies."""

import asyncio
import contextlib
import copy
import random
from collections.abc import Callable, Sequence

from apisix_ingress.errors import KubeConflict, KubeError, KubeForbidden, KubeNotFound, KubeUnavailable
from apisix_ingress.kube.election.elector import LeaderElector
from apisix_ingress.kube.election.interface import LeaseOptions
from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.term import Term
from tests.fakes.clock import FakeClock
from tests.fakes.kube.patches import json_patch

PATH = "/apis/coordination.k8s.io/v1/namespaces/ours/leases/leader"


class LeaseServer:
    """One Lease, with optimistic locking; `trouble` is called before each request, `lost` after each write."""

    def __init__(self) -> None:
        self.lease: JsonObject | None = None
        self.version = 0
        self.requests: list[str] = []

    def store(self, body: JsonObject) -> JsonObject:
        self.version += 1
        meta = {**body["metadata"], "resourceVersion": str(self.version)}
        self.lease = copy.deepcopy({**body, "metadata": meta})
        return copy.deepcopy(self.lease)

    @property
    def spec(self) -> JsonObject:
        assert self.lease is not None
        spec: JsonObject = self.lease["spec"]
        return spec


class LeaseClient:
    """One candidate's view of the server."""

    def __init__(self, server: LeaseServer, clock: FakeClock) -> None:
        self._server = server
        self._clock = clock
        self.error: KubeError | None = None
        self.delay = 0.0
        self.draw: Callable[[], float] = lambda: self.delay
        self.hangs = False
        self.loses_replies = False
        self.may_edit = True
        self.conflicts = 0
        """Number of following edits that conflict with other writes."""

    async def get(self, path: str, *, timeout: float = 1.0) -> JsonObject:
        await self._trouble("get", timeout)
        assert path == PATH
        if self._server.lease is None:
            raise KubeNotFound("no lease", status=404)
        return copy.deepcopy(self._server.lease)

    async def create(self, path: str, body: JsonObject, *, timeout: float = 1.0) -> JsonObject:
        await self._trouble("create", timeout)
        if self._server.lease is not None:
            raise KubeConflict("exists", status=409)
        return self._answer(self._server.store(body))

    async def update(self, path: str, body: JsonObject, *, timeout: float = 1.0) -> JsonObject:
        await self._trouble("update", timeout)
        if self._server.lease is None:
            raise KubeNotFound("no lease", status=404)
        if body["metadata"]["resourceVersion"] != self._server.lease["metadata"]["resourceVersion"]:
            raise KubeConflict("changed", status=409)
        return self._answer(self._server.store(body))

    async def edit(self, path: str, operations: Sequence[JsonObject], *, timeout: float = 1.0) -> JsonObject:
        await self._trouble("edit", timeout)
        if not self.may_edit:
            raise KubeForbidden("no patch", status=403)
        if self.conflicts:
            self.conflicts -= 1
            raise KubeConflict("changed", status=409)
        if self._server.lease is None:
            raise KubeNotFound("no lease", status=404)
        try:
            return self._answer(self._server.store(json_patch(self._server.lease, operations)))
        except ValueError as error:
            raise KubeConflict(str(error), status=422) from None

    def _answer(self, lease: JsonObject) -> JsonObject:
        if self.loses_replies:
            raise KubeUnavailable("the reply is lost")
        return lease

    async def _trouble(self, verb: str, timeout: float) -> None:
        self._server.requests.append(verb)
        delay = self.draw()
        if self.hangs or delay > timeout:
            await self._clock.sleep(timeout)
            raise KubeUnavailable("no response in time")
        if delay:
            await self._clock.sleep(delay)
        if self.error is not None:
            raise self.error


class Candidate:
    """An elector, and work that records when it runs."""

    def __init__(self, server: LeaseServer, clock: FakeClock, name: str) -> None:
        self.client = LeaseClient(server, clock)
        self.clock = clock
        self.terms: list[Term] = []
        self.ended_at: list[float] = []
        self.slow_end = 0.0
        self.failure: Exception | None = None
        self.end_failure: Exception | None = None
        self.elector = LeaderElector(
            self.client,
            LeaseOptions("leader", "ours", name),
            clock=clock,
            rng=random.Random(7),
        )
        self.task: asyncio.Task[None] | None = None

    @property
    def working(self) -> bool:
        return len(self.terms) > len(self.ended_at)

    async def work(self, term: Term) -> None:
        self.terms.append(term)
        try:
            while True:
                await self.clock.sleep(0.5)
                if self.failure is not None:
                    raise self.failure
        finally:
            await self.clock.sleep(self.slow_end)
            self.ended_at.append(self.clock.monotonic())
            if self.end_failure is not None:
                raise self.end_failure

    def start(self) -> None:
        self.task = asyncio.create_task(self.elector.lead(self.work))

    async def stop(self) -> None:
        """Cancel it and wait without a limit."""
        if self.task is None:
            return
        self.task.cancel()
        while not self.task.done() and await self.clock.run_to_next():
            pass
        with contextlib.suppress(asyncio.CancelledError, RuntimeError):
            await self.task


Start = Callable[[str], Candidate]


async def run_for(clock: FakeClock, seconds: float, check: Callable[[], None] = lambda: None) -> None:
    for _ in range(round(seconds / 0.1)):
        await clock.advance(0.1)
        check()
