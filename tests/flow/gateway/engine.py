"""The sync engine of one gateway cluster, as the leader."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.term import Term
from tests.fakes.gateway import FakeWanted
from tests.waiting import until


@contextlib.asynccontextmanager
async def leading(backend: Backend, wanted: FakeWanted, *, concurrency: int = 16) -> AsyncIterator[ClusterSync]:
    clock, ready = MonotonicClock(), asyncio.Event()
    sync = ClusterSync(SyncConfig("c1", wanted, clock=clock, concurrency=concurrency), backend)
    sync.mark_dirty(wanted.keys())
    ready.set()
    task = asyncio.create_task(sync.run(Term(clock, holder="test"), ready))
    try:
        yield sync
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until_applied(sync: ClusterSync, records: Sequence[Record]) -> None:
    def are_applied() -> bool:
        return sync.idle() and all(sync.record_state(record.key).kind == "applied" for record in records)

    await until(are_applied, "the records", state=sync.counts)
