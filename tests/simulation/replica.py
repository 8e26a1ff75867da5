"""A replica of the controller from `app.build` in a simulated process: started, stopped, frozen, killed.

Only external interfaces are replaced: connections, clocks, randomness, the HTTP server for probes, and the
settings of the garbage collector, which belong to the real process.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, Self, TypeVar
from unittest.mock import patch

import structlog

from apisix_ingress.app import Controller, build
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.informer.watch_events import ReflectorOptions
from apisix_ingress.observability.log import redact
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.settings import Settings
from tests.simulation.loop import PROCESS, Process, ProcessClock, context_of, running_loop
from tests.simulation.servers.api_link import LinkTransport
from tests.simulation.servers.apiserver import SimApiServer, virtual_now
from tests.simulation.servers.gateway import SimGateway
from tests.simulation.servers.gateway_link import SimTransport, Trap

T = TypeVar("T")

PAGE = 3
"""Objects per page: most lists have several pages."""


class Replica:
    """One of the competing controllers; every start is a new process. `crashed` is called if one ends unexpectedly."""

    def __init__(
        self, name: str, settings: Settings, server: SimApiServer, crashed: Callable[[str, BaseException], None]
    ) -> None:
        self.name = name
        self.controller: Controller | None = None
        self.process: Process | None = None
        self.frozen_seconds = 0.0
        """Total time for which its processes were frozen."""
        self._settings = settings
        self._server = server
        self._crashed = crashed
        self._starts = 0
        self._stop = asyncio.Event()
        self._main: asyncio.Task[None] | None = None

    @property
    def is_leading(self) -> bool:
        """Whether its process has a term."""
        return self.controller is not None and self.controller.state.source.election.leading

    def start(self) -> None:
        """Start a process unless there is one."""
        if self.process is not None:
            return
        self._starts += 1
        self.process = Process(f"{self.name}{self._starts}")
        self._stop = asyncio.Event()
        running_loop().add(self.process)
        self._server.connect(self.process)
        self._main = running_loop().create_task(self._run(), name="main", context=context_of(self.process))

    async def stop(self) -> None:
        """Stop the process like SIGTERM, and check that it leaves nothing behind."""
        process, main = self.process, self._main
        if process is None or main is None:
            return
        self.thaw()
        is_stopping = self._stop.is_set()
        self._stop.set()
        await asyncio.wait([main])
        if process.is_gone or is_stopping:
            return
        # What was cancelled last ends with the next turn.
        await asyncio.sleep(0.001)
        assert running_loop().tasks_of(process) == [], "tasks were left behind"
        self._forget(process)

    async def kill(self) -> None:
        """Kill the process: its further actions are invisible."""
        process, main = self.process, self._main
        if process is None or main is None:
            return
        process.is_gone = True
        self._server.set_link(process, "refused")
        self.thaw()
        self.process = self.controller = self._main = None
        while tasks := running_loop().tasks_of(process):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=1.0)
        self._forget(process)

    def thaw(self) -> None:
        """Let a frozen process continue."""
        if self.process is not None:
            self.process.is_frozen = False

    def _forget(self, process: Process) -> None:
        running_loop().remove(process)
        if self.process is process:
            self.process = self.controller = self._main = None

    async def _run(self) -> None:
        process = PROCESS.get()
        try:
            async with AsyncExitStack() as held:
                self.controller = await build(self._settings, None, held)
                await self.controller.run(self._stop)
        except BaseException as error:
            if not process.is_gone:
                self._crashed(process.name, error)
            raise


class Seams:
    """The replacements of external interfaces; `trap` is called with requests (see `SimTransport`)."""

    def __init__(
        self,
        seed: int,
        server: SimApiServer,
        gateways: dict[str, SimGateway],
        trap: Trap,
    ) -> None:
        self._trap = trap
        self._rng = random.Random(seed)
        self._server = server
        self._gateways = gateways

    def random(self) -> random.Random:
        """Return the randomness of one process."""
        return random.Random(self._rng.getrandbits(64))

    async def connect(self, kubeconfig: str, context: str, *, clock: Clock) -> KubeApi:
        """Return a connection to the API server."""
        process = PROCESS.get()
        self._server.connect(process)
        transport: Any = LinkTransport(self._server, process)
        return KubeApi(transport, host="simulated", namespace="core", clock=clock)

    def transport(self) -> SimTransport:
        """Return the replacement of the connections to gateways."""
        return SimTransport(self._gateways, self._trap)


async def _unresolved(urls: Sequence[str]) -> list[str]:
    """Return the URLs of standalone gateways: each has a name of its own here."""
    return list(urls)


async def _at_once(work: Callable[[], T], *, name: str) -> T:
    """Do what a thread would do."""
    return work()


def _nothing(*_: object) -> None:
    """Do nothing."""


class _NoServer:
    """Takes the place of the HTTP server for probes."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def serve(self) -> None:
        """Do nothing: there are no probes."""

    async def run(self) -> None:
        """Do nothing: there are no probes."""


@contextmanager
def replaced(seams: Seams, sink: structlog.typing.Processor) -> Iterator[None]:
    """Build controllers inside the simulation, within this context."""

    transport = seams.transport()
    app, sources = "apisix_ingress.app.", "apisix_ingress.wiring.sources."
    with ExitStack() as held:
        for target, value in (
            (app + "MonotonicClock", lambda: ProcessClock(PROCESS.get())),
            (app + "random", SimpleNamespace(Random=seams.random)),
            (app + "new_identity", lambda: PROCESS.get().name),
            (app + "HttpServer", _NoServer),
            (app + "gc", SimpleNamespace(collect=_nothing, freeze=_nothing, set_threshold=_nothing)),
            ("apisix_ingress.wiring.clusters.urls_of_gateways", _unresolved),
            (sources + "KubeApi", SimpleNamespace(connect=seams.connect)),
            ("apisix_ingress.gateway.adminapi.client.AiohttpTransport", lambda **_: transport),
            ("apisix_ingress.kube.informer.reflector.ReflectorOptions", partial(ReflectorOptions, page_size=PAGE)),
            # A thread takes no virtual time, and nothing waits for it here.
            ("apisix_ingress.gateway.standalone.group.in_daemon", _at_once),
            ("providers.core.base.is_large", lambda item: False),
            ("tests.fakes.kube.objects._now", virtual_now),
        ):
            held.enter_context(patch(target, value))
        structlog.configure(
            processors=[structlog.processors.format_exc_info, redact, structlog.processors.add_log_level, sink],
            wrapper_class=structlog.make_filtering_bound_logger(20),
            cache_logger_on_first_use=False,
        )
        held.callback(structlog.reset_defaults)
        yield
