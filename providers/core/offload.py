"""Translations of large objects in a thread: the event loop goes on, the lease is renewed and probes are answered.

One at a time, and no translation that writes what others read is under way meanwhile: ids and claims stay as they are.
Objects may change, though. A translation that read one that did, or that failed, counts for nothing and is done again;
what never comes about in a thread is done on the event loop, where nothing changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

import orjson
import structlog

from apisix_ingress.model.keys import Read
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.runtime.tasks import in_daemon
from apisix_ingress.state.view import TrackingView
from apisix_ingress.state.world import World

log = structlog.get_logger()

T = TypeVar("T")

LARGE = 8 * 1024
"""Bytes of a spec that takes longer to translate than the event loop may stand still: some 20 ms."""

TRIES = 2


class Offloader:
    """The one thread, used as an async context manager by whoever has it; everybody else but consumers waits in `free`.

    Args:
        world: What translations read.
    """

    def __init__(self, world: World) -> None:
        self._free = asyncio.Event()
        self._free.set()
        self._changes: set[Read] | None = None
        world.listen(self._changed)

    @property
    def is_free(self) -> bool:
        """Whether no translation is under way in the thread."""
        return self._free.is_set()

    async def free(self) -> None:
        """Wait until no translation is under way in the thread."""
        while not self._free.is_set():
            await self._free.wait()

    async def __aenter__(self) -> Self:
        """Take the thread: it is free, and nothing was awaited since."""
        assert self._free.is_set(), "nobody asked whether it is free"
        self._free.clear()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let others go on."""
        self._changes = None
        self._free.set()

    async def tried(self, work: Callable[[TrackingView], T], view: TrackingView) -> tuple[T] | None:
        """Return what some work made of a view, or None if that counts for nothing."""
        changes = self._changes = set[Read]()
        try:
            found = await in_daemon(lambda: work(view), name="translation")
        except Exception as error:
            log.debug("translation.again", error=type(error).__name__)
            return None
        return (found,) if changes.isdisjoint(view.reads) else None

    def _changed(self, read: Read) -> None:
        if self._changes is not None:
            self._changes.add(read)


def is_large(item: KubeObject | None) -> bool:
    """Say whether an object takes long to translate."""
    if not isinstance(item, CustomObject):
        return False
    try:
        return len(orjson.dumps(item.spec)) > LARGE
    except TypeError:
        return True  # nested too deeply to be written, which takes some bytes
