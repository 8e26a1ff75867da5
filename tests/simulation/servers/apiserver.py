"""The API server of a simulation: that of the flow tests, without HTTP, behind a network that delays, loses and cuts.

A request takes effect at one moment of virtual time; its delays and faults before and after are random.
Watches are streams that deliver in order. `users` decides which objects exist, `mischief` when faults begin and end.
"""

from __future__ import annotations

import asyncio
import random
from contextvars import Context
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import aiohttp
import orjson

from apisix_ingress.model.kinds.table import RESOURCES
from tests.fakes.kube.faults import Refusal, Seen
from tests.fakes.kube.kinds import KINDS, Kind, Manifest
from tests.fakes.kube.objects import Change, Objects
from tests.fakes.kube.wire import error_event
from tests.simulation.checking.trace import Trace
from tests.simulation.loop import EPOCH, Process, running_loop
from tests.simulation.servers.api_responses import Reply, Stream, rejection

SERVED = {kind.kind: kind for kind in KINDS} | {
    resource.kind: Kind(resource.kind, resource.api_version, resource.plural, resource.namespaced)
    for resource in RESOURCES.values()
    if resource.group == "apisix.apache.org"
}
QUIET = frozenset({"get", "list", "watch"})
LATE_SECONDS = 7.9
"""Seconds by which responses to lease requests are late, during that fault."""
LinkState = Literal["up", "refused", "dropped"]


@dataclass(slots=True)
class ApiFaults:
    """Shares of requests (0 to 1) that fail, by kind of failure."""

    error: float = 0.0
    throttled: float = 0.0
    conflict: float = 0.0
    lost_request: float = 0.0
    lost_reply: float = 0.0
    slow: float = 0.0
    lost_bookmark: float = 0.0


class SimApiServer(Objects):
    """The server and the network in front of it.

    Args:
        rng: Draws delays and faults.
        trace: Records each write.
    """

    def __init__(self, rng: random.Random, trace: Trace) -> None:
        super().__init__(SERVED.values())
        self.fault = ApiFaults()
        self.writes = 0
        self.endpoints: set[tuple[str, tuple[str, ...]]] = set()
        """The names of upstreams with all addresses that their EndpointSlice has had."""
        """The number of writes, without leases and Events."""
        self.links: dict[Process, LinkState] = {}
        self.shunned: dict[Process, float] = {}
        """Processes whose lease requests get late responses until a time, and are rejected from then on."""
        self.held: dict[Process, float] = {}
        """Processes whose lease writes take effect this many seconds late, after they were given up."""
        self._rng = rng
        self._trace = trace
        self._streams: dict[Stream, None] = {}
        self._expired: dict[tuple[Process, str, str], int] = {}
        """Process, path and field selector of a watch → the version for which it last got 410."""

    # The network.

    def connect(self, process: Process) -> None:
        """Connect a process to the network; `api_link` carries its requests."""
        self.links[process] = "up"

    def set_link(self, process: Process, state: LinkState) -> None:
        """Cut or restore the network of a process: requests during a cut are lost, with the connections."""
        self.links[process] = state
        if state != "dropped":
            for stream in [stream for stream in self._streams if stream.process is process]:
                stream.cut()

    def state_of(self, process: Process) -> LinkState:
        """Return the state of a process' network; a dead process has none."""
        return "refused" if process.is_gone else self.links[process]

    def delay(self) -> float:
        """Draw the latency of one direction."""
        if self._rng.random() < self.fault.slow:
            return self._rng.choice([0.5, 2.0, 6.0, 12.0]) * self._rng.random()
        return 0.0005 + 0.004 * self._rng.random()

    def receive(self, seen: Seen, process: Process, back: Context) -> asyncio.Future[Reply]:
        """Accept a request; the future gets the response, or never ends."""
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[Reply] = loop.create_future()
        luck = self._rng.random()
        if luck < self.fault.lost_request:
            loop.call_later(self.delay(), _fail, reply, context=back)
        else:
            is_held = seen.plural == "leases" and seen.verb in ("patch", "update")
            there = self.delay() + (self.held.get(process, 0.0) if is_held else 0.0)
            loop.call_later(there, self._carry_out, seen, process, back, reply, context=running_loop().world)
        return reply

    def _carry_out(self, seen: Seen, process: Process, back: Context, reply: asyncio.Future[Reply]) -> None:
        loop = asyncio.get_running_loop()
        if self.state_of(process) != "up":
            return
        late, refused = self._shun(seen, process)
        answer = refused or self._faulty(seen) or self.perform(seen, process.name)
        if self._rng.random() < self.fault.lost_reply:
            loop.call_later(self.delay(), _fail, reply, context=back)
            return
        loop.call_later(late + self.delay(), self._deliver, process, reply, answer, context=back)

    def _shun(self, seen: Seen, process: Process) -> tuple[float, Reply | None]:
        """Return the additional delay of a request, and its rejection."""
        until = self.shunned.get(process)
        if until is None or seen.plural != "leases":
            return 0.0, None
        if asyncio.get_running_loop().time() < until:
            return LATE_SECONDS, None
        return 0.0, rejection(Refusal(503, "ServiceUnavailable", "fault"))

    def _deliver(self, process: Process, reply: asyncio.Future[Reply], answer: Reply) -> None:
        if not reply.done() and self.state_of(process) == "up":
            reply.set_result(answer)

    def _faulty(self, seen: Seen) -> Reply | None:
        luck = self._rng.random()
        if luck < self.fault.error:
            return rejection(Refusal(self._rng.choice([500, 503, 504]), "Fault", "fault"))
        if luck < self.fault.error + self.fault.throttled:
            return rejection(Refusal(429, "TooManyRequests", "fault"), {"Retry-After": "1"})
        if seen.verb in ("update", "patch", "create") and self._rng.random() < self.fault.conflict:
            return rejection(Refusal(409, "Conflict", "fault: the object has been modified"))
        return None

    # The server.

    def perform(self, seen: Seen, who: str) -> Reply:
        """Handle a request; a watch begins later, when its response has arrived."""
        if seen.verb == "watch":
            return Reply(200)
        try:
            body = self.respond(seen)
            if seen.verb not in QUIET and seen.plural not in ("leases", "events"):
                self.writes += 1
                self._trace.note("apiserver", f"{who}: {seen.verb} {seen.path}")
            status = 201 if seen.verb == "create" else 200
            return Reply(status, orjson.dumps(body))
        except Refusal as refusal:
            if seen.verb not in QUIET:
                self.writes += 1
                self._trace.note("apiserver", f"{who}: {seen.verb} {seen.path}: {refusal.code}")
            return rejection(refusal)

    def open_stream(self, seen: Seen, process: Process, back: Context) -> Stream:
        """Begin a watch.

        Raises:
            Refusal: The version is too old, or the kind is not served.
        """
        kind = self.kinds.get(seen.plural)
        if kind is None:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        since = int(seen.query["resourceVersion"])
        if since < self.compacted:
            self._check_expired(seen, process, since)
            raise Refusal(410, "Expired", f"too old resource version: {since} ({self.compacted})")
        stream = Stream(self, kind, process, back, self.version)
        self._streams[stream] = None
        for change in self._of(kind.plural):
            if change.version > since:
                stream.send(self._line(kind, change))
        asyncio.get_running_loop().call_later(
            float(seen.query["timeoutSeconds"]), self._end, stream, context=running_loop().world
        )
        return stream

    def _check_expired(self, seen: Seen, process: Process, since: int) -> None:
        """Check that a process lists a kind again after its version expired, before it watches the kind again."""
        watch = (process, seen.path, seen.query.get("fieldSelector", ""))
        if self._expired.get(watch) == since:
            self._trace.violate("apiserver", f"{process.name} watches {seen.path} again from an expired version")
        self._expired[watch] = since

    def disturb(self, what: str, share: float) -> None:
        """Do something to a share of the open watches: cut, end, stall, gone, bookmark, half or garbage."""
        for stream in list(self._streams):
            if self._rng.random() < share:
                self._disturb(stream, what)

    def close(self, stream: Stream) -> None:
        """Forget a stream."""
        self._streams.pop(stream, None)

    def _disturb(self, stream: Stream, what: str) -> None:
        match what:
            case "cut":
                stream.cut()
            case "end":
                stream.end()
            case "stall":
                stream.stall()
            case "gone":
                stream.send(error_event(410))
                stream.end()
            case "bookmark":
                for _ in range(self._rng.randint(1, 2)):
                    self._bookmark(stream)
            case "half":
                stream.send(b'{"type":"MODIFIED","object":{"metadata":')
                stream.cut()
            case _:
                stream.send(b"no event\n")

    def _end(self, stream: Stream) -> None:
        if stream not in self._streams:
            return
        if any(change.version > stream.since for change in self._of(stream.kind.plural)):
            self._bookmark(stream)
        stream.end()

    def _bookmark(self, stream: Stream) -> None:
        if self._rng.random() >= self.fault.lost_bookmark:
            stream.send(self._line(stream.kind, "bookmark"))

    def _publish(self, type: str, plural: str, item: Manifest) -> Change:
        if plural == "endpointslices":
            meta = item["metadata"]
            name = f"{meta['namespace']}_{meta['name'].removesuffix('-1')}_80"
            self.endpoints.add((name, tuple(sorted({one for each in item["endpoints"] for one in each["addresses"]}))))
        change = super()._publish(type, plural, item)
        for stream in list(self._streams):
            if stream.kind.plural == plural:
                stream.send(self._line(stream.kind, change))
        return change


def _fail(reply: asyncio.Future[Reply]) -> None:
    if not reply.done():
        reply.set_exception(aiohttp.ServerDisconnectedError())


def virtual_now() -> str:
    """Return the time of the simulation as the API server writes it."""
    now = EPOCH + timedelta(seconds=asyncio.get_running_loop().time())
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
