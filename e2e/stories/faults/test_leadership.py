"""Two replicas and one lease: who writes when the leader is killed, frozen, shut down or cut off from the API server.

The gateway's write log contains the sender of each write, so that a story can check the order.
"""

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import pytest
import yaml

from e2e.cluster.client import KubeClient, Manifest, wait_until
from e2e.cluster.echo import EchoServers
from e2e.conftest import OWN, StartController
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway
from e2e.stream import Stream
from e2e.traffic import RequestLoop, Traffic
from e2e.workload import Deployment, PodFactory

LEASE, RETRY = 4.0, 0.5
ELECTION = {"lease_duration": f"{LEASE}s", "renew_deadline": "2.6s", "retry_period": f"{RETRY}s"}
SYNC = {"timeout": "1s", "audit_interval": "1s"}
TAKEOVER = LEASE + 2 * RETRY + 10.0
"""Seconds until a follower leads: the lease, two attempts, and a margin for a loaded machine."""

AGENT = "apisix-ingress/"
ROUTES = 60


@pytest.fixture(scope="module")
def own_gateway() -> Iterator[DevGateway]:
    """A gateway that no other process writes to."""
    with DevGateway() as started:
        yield started


@dataclass
class PairHarness:
    """Two controllers for one namespace and one gateway; the first one leads."""

    api: KubeClient
    gateway: DevGateway
    namespace: str
    web: Deployment
    start: Callable[..., Controller]

    def __post_init__(self) -> None:
        self.host = f"{self.namespace}.example.org"
        self.traffic = Traffic(self.gateway.proxy_url)

    def pair(self, **first: Any) -> tuple[Controller, Controller]:
        """Start both, one after the other, with a live route."""
        self.route("base")
        leader = self.start("first", **first)
        wait_until(lambda: leader.leads, bool, "the first controller to lead", TAKEOVER)
        self.traffic.until_status(200, self.host, "/base")
        return leader, self.start("second")

    def route(self, name: str, value: str = "1") -> None:
        """Apply a route with its name as path, which sets that value in a response header."""
        rewrite = {"name": "response-rewrite", "enable": True, "config": {"headers": {"set": {"X-Value": value}}}}
        rule = {
            "name": "rule",
            "match": {"hosts": [self.host], "paths": [f"/{name}"]},
            "backends": [{"serviceName": "web", "servicePort": "http"}],
            "plugins": [rewrite],
        }
        metadata = {"name": name, "namespace": self.namespace}
        manifest = {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixRoute", "metadata": metadata}
        self.api.apply({**manifest, "spec": {"http": [rule]}})

    def until_value(self, name: str, value: str) -> None:
        """Wait until the route responds with that value."""
        self.traffic.until(lambda answer: answer.headers.get("x-value") == value, self.host, f"/{name}")

    def lease(self) -> Manifest:
        """Return the spec of the lease."""
        spec: Manifest = self.api.get("Lease", self.namespace, namespace="default")["spec"]
        return spec

    def writes(self, controller: Controller | None = None, *, after: int = 0) -> list[Manifest]:
        """Return the writes of a controller, or of all, in the order of their responses, except the first ones."""
        log = [write for write in self.gateway.write_log(after) if (write["user_agent"] or "").startswith(AGENT)]
        return [write for write in log if controller is None or _wrote(controller, write)]

    def assert_handed_over(self, old: Controller, new: Controller, *, after: int = 0) -> None:
        """Check that the writer changed once, from the old to the new one: by the order and the times of writes."""
        writes = self.writes(after=after)
        first = next(number for number, write in enumerate(writes) if _wrote(new, write))
        began = writes[first]["received"]
        assert [write for write in writes[first:] if _wrote(old, write)] == []
        assert [write for write in writes if _wrote(old, write) and write["received"] >= began] == []


def _wrote(controller: Controller, write: Manifest) -> bool:
    return f"({controller.name}_" in (write["user_agent"] or "")


@pytest.fixture
def story(
    cluster_api: KubeClient, own_gateway: DevGateway, echo_servers: EchoServers, start_controller: StartController
) -> Iterator[PairHarness]:
    """A namespace with two pods behind a Service, and a way to start controllers for it."""
    own_gateway.wipe()
    with ExitStack() as stack:
        name = stack.enter_context(cluster_api.namespace("lead", labels=OWN))
        cluster_api.patch("Namespace", name, {"metadata": {"labels": {"e2e-story": name}}})
        pods = stack.enter_context(PodFactory(cluster_api, name, echo_servers))
        web = Deployment(pods, "web", replicas=2)
        pods.service("web", {"app": "web"})

        def start(replica: str, **kubernetes: Any) -> Controller:
            settings = {"election": {**ELECTION, "name": name}, **kubernetes}
            gateways = {"default": own_gateway}
            return start_controller(gateways, f"e2e-story={name}", name=replica, kubernetes=settings, sync=SYNC)

        yield PairHarness(cluster_api, own_gateway, name, web, start)


def test_follower_writes_nothing_until_the_leader_is_killed(story: PairHarness) -> None:
    leader, follower = story.pair()
    assert (follower.probe("/readyz")[0], follower.leads) == (200, False)
    assert story.writes(follower) == []
    assert len(leader.events("term.started")) == 1
    renewed = story.lease()["renewTime"]
    with RequestLoop(story.traffic, story.host, "/base") as loop:
        leader.process.kill()
        for number in range(5):
            story.route(f"gap-{number}")
        wait_until(lambda: follower.leads, bool, "the follower to lead", TAKEOVER)
        for number in range(5):
            story.traffic.until_status(200, story.host, f"/gap-{number}")
    assert loop.failures == []
    assert len(loop.answers) > 0
    assert story.lease()["acquireTime"] > renewed
    assert story.lease()["leaseTransitions"] == 1
    assert len(story.gateway.records("routes")) == 6
    story.assert_handed_over(leader, follower)


def test_frozen_leader_never_writes_after_its_successor(story: PairHarness) -> None:
    """Each round freezes the leader during its writes, lets the other one take over, and resumes it."""
    for number in range(ROUTES):
        story.route(f"r{number}")
    leader, follower = story.pair()
    wait_until(lambda: len(story.gateway.records("routes")), lambda n: n == ROUTES + 1, "every route")
    for seed in range(4):
        _freeze_round(story, leader, follower, random.Random(seed))
        leader, follower = follower, leader


def _freeze_round(story: PairHarness, leader: Controller, follower: Controller, rng: random.Random) -> None:
    before, ended = len(story.gateway.write_log()), len(leader.events("term.ended"))
    wanted = rng.randint(1, ROUTES)

    def change(number: int) -> None:
        story.route(f"r{rng.randrange(ROUTES)}", str(number))
        if number % 5 == 0:
            story.web.scale(1 + number // 5 % 3, grace=0.05)

    with RequestLoop(story.traffic, story.host, "/base") as loop, Stream(change):
        wait_until(lambda: len(story.gateway.write_log(before)), lambda n: n >= wanted, "the leader to write")
        leader.process.pause()
        try:
            wait_until(lambda: story.writes(follower, after=before), bool, "the follower to write", TAKEOVER)
        finally:
            leader.process.resume()
        wait_until(lambda: len(leader.events("term.ended")), lambda n: n > ended, "the old leader to stop", TAKEOVER)
        leader.wait_ready()
    assert loop.failures == []
    story.assert_handed_over(leader, follower, after=before)
    story.route("base", f"{before}")
    story.until_value("base", f"{before}")


def test_leader_that_is_shut_down_hands_over_immediately(story: PairHarness) -> None:
    leader, follower = story.pair()
    before = len(story.gateway.write_log())
    with RequestLoop(story.traffic, story.host, "/base") as loop:
        assert leader.stop() == 0
        wait_until(lambda: follower.leads, bool, "the follower to lead", TAKEOVER)
        wait_until(lambda: follower.events("cluster.takeover"), bool, "the follower to compare", TAKEOVER)
    assert loop.failures == []
    assert [event["event"] for event in leader.events("lease.released")] == ["lease.released"]
    assert story.gateway.write_log(before) == []


def test_leader_cut_off_from_the_api_server_stops_writing_in_time(
    story: PairHarness, kubeconfig: Path, tmp_path: Path
) -> None:
    """The gateway is damaged continuously, so that the leader has repairs to write without an API server."""
    with Relay(*_server(kubeconfig)) as relay:
        relayed = relay.kubeconfig(kubeconfig, tmp_path / "relayed.kubeconfig")
        leader, follower = story.pair(kubeconfig=str(relayed))
        upstreams = story.gateway.records("upstreams")
        (base,) = story.gateway.records("routes")
        assert len(upstreams) == 1

        def damage(_number: int) -> None:
            story.gateway.call("PATCH", f"/routes/{base}", {"desc": "edited by hand"})

        with Stream(damage, pause=0.2), RequestLoop(story.traffic, story.host, "/base") as loop:
            wait_until(lambda: len(story.writes(leader)), lambda n: n > 3, "the leader to repair", TAKEOVER)
            relay.cut()
            wait_until(lambda: len(story.writes(follower)), bool, "the follower to write", TAKEOVER)
            wait_until(lambda: leader.leads, lambda leads: not leads, "the old leader to stop", TAKEOVER)
            story.route("late")
            story.traffic.until_status(200, story.host, "/late")
            relay.mend()
            leader.wait_ready()
        assert loop.failures == []
        story.assert_handed_over(leader, follower)
        assert not leader.leads
        follower.stop()
        story.route("later")
        story.traffic.until_status(200, story.host, "/later")


class Relay:
    """Forwards connections to an address until it is cut: then they stay open without forwarding data."""

    def __init__(self, host: str, port: int) -> None:
        self.port = 0
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._whole = asyncio.Event()
        self._whole.set()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._run, name="e2e-relay", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listening.wait(10), "the relay does not listen"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def cut(self) -> None:
        """Stop forwarding data."""
        self._loop.call_soon_threadsafe(self._whole.clear)

    def mend(self) -> None:
        """Forward data again, delayed data first."""
        self._loop.call_soon_threadsafe(self._whole.set)

    def kubeconfig(self, original: Path, copy: Path) -> Path:
        """Write a copy of a kubeconfig that connects through the relay."""
        config = yaml.safe_load(original.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self.port}"
        copy.write_text(yaml.safe_dump(config))
        return copy

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._carry, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(self._loop), return_exceptions=True))
        self._loop.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._target)
        try:
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        except (OSError, asyncio.CancelledError):
            return  # one side is closed, or the relay stops: close the connection
        finally:
            back.close()
            writer.close()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(64 * 1024):
            await self._whole.wait()
            sink.write(data)
            await sink.drain()
        sink.close()


def _server(kubeconfig: Path) -> tuple[str, int]:
    """Return the address of the API server that a kubeconfig names."""
    parts = urlsplit(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
    return parts.hostname or "", parts.port or 443
