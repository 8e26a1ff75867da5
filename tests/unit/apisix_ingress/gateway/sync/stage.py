"""An environment for the sync engine on virtual time: a gateway, the desired records, and one engine."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any, NamedTuple

from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.config import CurrentNodes, SyncConfig
from apisix_ingress.gateway.sync.observer import Change, RecordState, SyncObserver
from apisix_ingress.gateway.sync.records.slot import Unknown
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.term import Term
from tests.fakes.gateway import FakeBackend, FakeGateway, FakeWanted, LoopClock, make_record
from translation import closing
from translation.plugins.exposure import exposure

UPSTREAM = RecordKey("upstreams", "u1")
OTHER = RecordKey("upstreams", "u2")
ROUTE = RecordKey("routes", "r1")
UPSTREAM_RECORD = make_record(UPSTREAM, nodes={"a:80": 1})
ROUTE_RECORD = make_record(ROUTE, upstream_id="u1")
APPLIED = RecordState("applied")


class Notes(SyncObserver):
    """An observer that records its calls."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[RecordKey, RecordState]] = []
        self.writes: list[tuple[str, str, str]] = []
        self.changes: list[tuple[str, str, str]] = []
        self.drifts: list[int] = []
        self.helds: list[int] = []
        self.comparisons: list[bool] = []
        self.breakers: list[bool] = []

    def outcome(self, cluster: str, key: RecordKey, state: RecordState) -> None:
        self.outcomes.append((key, state))

    def written(self, cluster: str, key: RecordKey, change: Change, name: str, status: str) -> None:
        self.writes.append((key.kind, "delete" if change == "deleted" else "put", status))
        if status == "ok":
            self.changes.append((str(key), change, name))

    def compared(self, cluster: str, ok: bool) -> None:
        self.comparisons.append(ok)

    def drift(self, cluster: str, records: int) -> None:
        self.drifts.append(records)

    def held(self, cluster: str, records: int) -> None:
        self.helds.append(records)

    def breaker(self, cluster: str, is_open: bool) -> None:
        self.breakers.append(is_open)


class Counts(NamedTuple):
    """The number of records in each state, at one moment."""

    applied: int
    unknown: int
    in_flight: int
    queued: int
    rejected: int
    withheld: int
    is_tripped: bool


class Stage:
    """A gateway, the desired records, and one engine."""

    def __init__(self, records: Sequence[Record] = (), stored: Sequence[Record] = ()) -> None:
        self.gateway = FakeGateway(stored={record.key: dict(record.body) for record in stored})
        self.wanted = FakeWanted(records)
        self.backend = FakeBackend(self.gateway)
        self.notes = Notes()
        self.clock = LoopClock()
        self.ready = asyncio.Event()
        self.term = Term(self.clock, holder="me")
        self.versions: list[str] = []
        self.sync = self.new_sync()

    def new_sync(
        self, concurrency: int = 4, *, check_interval: float = 4.0, nodes: CurrentNodes | None = None
    ) -> ClusterSync:
        config = SyncConfig(
            "c1",
            self.wanted,
            clock=self.clock,
            rng=random.Random(1),
            concurrency=concurrency,
            check_interval=check_interval,
            observer=self.notes,
            report_version=lambda cluster, version: self.versions.append(version),
            nodes=nodes,
            closing=closing,
            exposure=exposure,
        )
        return ClusterSync(config, self.backend)

    @contextlib.asynccontextmanager
    async def running(self, *, ready: bool = True) -> AsyncIterator[None]:
        """Lead until the end of the block."""
        if ready:
            self.ready.set()
        task = asyncio.create_task(self.sync.run(self.term, self.ready))
        self.sync.mark_dirty(self.wanted.keys())
        try:
            await asyncio.sleep(1)
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    def want(self, *records: Record, urgent: bool = False) -> None:
        self.sync.mark_dirty(self.wanted.replace(records), urgent=urgent)

    def counts(self) -> Counts:
        """Return the number of records in each state."""
        driver = self.sync._session.driver
        slots = list(driver.table)
        return Counts(
            applied=sum(slot.applied is not None for slot in slots),
            unknown=sum(isinstance(slot.observed, Unknown) for slot in slots),
            in_flight=len(driver.table.in_flight),
            queued=driver.queue.depth + driver.queue.delayed,
            rejected=sum(slot.rejection is not None for slot in slots),
            withheld=len(driver.withheld()),
            is_tripped=driver.breaker.is_tripped,
        )

    @property
    def log(self) -> list[tuple[str, str]]:
        return [(op, str(key)) for op, key in self.gateway.log]


Play = Callable[[Coroutine[Any, Any, None]], None]


def on_stage(story: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[Play], None]:
    """Turn a coroutine function into a test on virtual time."""

    def test(play: Play) -> None:
        play(story())

    test.__doc__ = story.__doc__
    return test


class FailingBackend:
    """Makes every put of one record fail; replaces the put of the backend."""

    def __init__(self, stage: Stage, key: RecordKey, error: Exception) -> None:
        self.calls = 0
        self.error: Exception | None = error
        self.times: list[float] = []
        put = stage.backend.put

        async def failing(record: Record) -> bool:
            if record.key == key and self.error is not None:
                self.calls += 1
                self.times.append(stage.clock.monotonic())
                raise self.error
            return await put(record)

        stage.backend.put = failing  # type: ignore[method-assign]


def many(count: int) -> list[Record]:
    return [make_record(RecordKey("routes", f"many{n}")) for n in range(count)]
