"""The loop of a kind that owns no records: a changed object queues the owners whose translations read it.

There may be thousands of owners. The watch callback only adds a key here; a worker queues the owners in batches and
yields to the event loop between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import structlog

from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from apisix_ingress.runtime.tasks import in_turns, run_workers
from providers.core.deps import ProviderDeps, limiter

log = structlog.get_logger()

BATCH = 100
"""Owners to queue before yielding to other tasks: about 1 ms."""


class DependencyProvider:
    """Queue and loop of a kind that translations of other kinds read.

    A key of the queue is a `Read`: an object or a value of an index. A changed object queues its old and its new index
    values.
    """

    kind: ClassVar[str]
    workers: ClassVar[int] = 1

    def __init__(self, deps: ProviderDeps) -> None:
        self._world = deps.world
        self._router = deps.router
        self.queue: WorkQueue[Read] = WorkQueue(
            clock=deps.clock,
            limiter=limiter(deps.rng),
            name=f"provider-{self.kind}",
            group=_namespace_of,
            observer=deps.observer(self.kind),
        )

    @property
    def _urgent(self) -> bool:
        return self._router.live and RESOURCES[self.kind].urgent

    def changed(self, read: Read) -> None:
        """Queue a changed read if a translation depends on it."""
        if self._world.dependents.is_read(read):
            self.queue.add(read, urgent=self._urgent)

    async def run(self) -> None:
        """Work on the queue until it is shut down and drained."""
        name = f"provider-{self.kind}"
        await run_workers(self.queue, self.handle, workers=self.workers, name=name, on_error=self._failed)

    def settle_one(self, read: Read) -> None:
        """Queue all owners in one step, without an event loop."""
        for owner in self._owners(read):
            self._router.enqueue(owner)

    async def handle(self, read: Read) -> None:
        """Queue the owners in batches."""
        urgent, since = self._urgent, self.queue.dirty_since(read)
        async for owner in in_turns(self._owners(read), every=BATCH):
            self._router.enqueue(owner, urgent=urgent, since=since)

    def _owners(self, read: Read) -> Iterator[ObjectKey]:
        """Yield the owners that read this: deleted objects last, so that replacements are written before deletes."""
        gone: list[ObjectKey] = []
        for owner in self._world.dependents.of(read):
            if self._world.stores[owner.kind].get(owner) is None:
                gone.append(owner)
            else:
                yield owner
        yield from gone

    def _failed(self, read: Read, error: Exception) -> None:
        log.error("dependents.wake_failed", read=str(read), exc_info=error)


def _namespace_of(read: Read) -> str:
    """Return the namespace whose turn a key uses; all keys of indexes share one turn."""
    return read.namespace if isinstance(read, ObjectKey) else ""
