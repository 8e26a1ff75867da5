"""The loop of one kind that owns no records: a change of an object queues the owners whose translations read it.

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
from providers.core.base import ProviderDeps, limiter

log = structlog.get_logger()

BATCH = 100
"""Owners that are queued before other tasks get their turn: about 1 ms."""


class DependencyProvider:
    """Queue and loop of one kind that translations of other kinds read.

    A key of the queue is what a translation can read of an object: the object, or a value of an index. Of a changed
    object, both the values that it had and the values that it has are queued.
    """

    kind: ClassVar[str]
    workers: ClassVar[int] = 1

    def __init__(self, surroundings: ProviderDeps) -> None:
        self._world = surroundings.world
        self._router = surroundings.router
        self.queue: WorkQueue[Read] = WorkQueue(
            clock=surroundings.clock,
            limiter=limiter(surroundings.rng),
            name=f"provider-{self.kind}",
            group=_namespace_of,
            observer=surroundings.observer(self.kind),
        )

    @property
    def _urgent(self) -> bool:
        return self._router.live and RESOURCES[self.kind].urgent

    def changed(self, read: Read) -> None:
        """Queue what changed of an object, unless no translation has read it."""
        if self._world.dependents.is_read(read):
            self.queue.add(read, urgent=self._urgent)

    async def run(self) -> None:
        """Work on the queue until it is shut down and drained."""
        name = f"provider-{self.kind}"
        await run_workers(self.queue, self.handle, workers=self.workers, name=name, on_error=self._failed)

    def settle_one(self, read: Read) -> None:
        """Queue the owners at once, without an event loop."""
        for owner in self._owners(read):
            self._router.enqueue(owner)

    async def handle(self, read: Read) -> None:
        """Queue the owners in batches."""
        urgent, since = self._urgent, self.queue.dirty_since(read)
        async for owner in in_turns(self._owners(read), every=BATCH):
            self._router.enqueue(owner, urgent=urgent, since=since)

    def _owners(self, read: Read) -> Iterator[ObjectKey]:
        """Yield who read this: objects that are gone last, so that who takes their place writes before the delete."""
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
    """Return whose turn a key takes; those of indexes take turns together."""
    return read.namespace if isinstance(read, ObjectKey) else ""
