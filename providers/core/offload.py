"""Translations of large objects in a thread: the event loop goes on, and so do the translations of everything else.

One at a time; namespaces take turns. What such a translation read may change meanwhile. Then its result is dropped and
the object translated again, after its namespace has rested. A result that is out of date once more is published all
the same, as if the change had come later, and the object is translated again: whoever changes something all the time
delays it, but neither keeps it from making progress nor gets it translated on the event loop. Ids and holders of hosts
are never out of date in what is published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import orjson

from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from apisix_ingress.runtime.tasks import in_daemon
from apisix_ingress.state.view import TrackingView, View
from apisix_ingress.state.world import World

T = TypeVar("T")

LARGE = 8 * 1024
"""Bytes of a spec that takes longer to translate than the event loop may stand still: some 20 ms."""

TRIES = 2
"""Translations after which a result is published although something that it read has changed."""


class Offloader:
    """The queue of large objects and the thread that translates them.

    Args:
        world: What translations read.
        queue: Keys of large objects; a single worker takes them out.
    """

    def __init__(self, world: World, queue: WorkQueue[ObjectKey]) -> None:
        self.queue = queue
        self._world = world
        self._changes: set[Read] | None = None
        self._outdated: Counter[ObjectKey] = Counter()
        world.listen(self._changed)

    async def translate(self, key: ObjectKey, work: Callable[[View], T]) -> T | None:
        """Return what some work made of the world, or None if it must not be published: the key is queued again.

        Raises:
            Exception: What the work raised, unless something that it read changed meanwhile.
        """
        view = self._world.detached_view()
        changes = self._changes = set[Read]()
        try:
            found = await in_daemon(lambda: work(view), name="translation")
        except Exception:
            if self._is_final(key, view, changes):
                raise
            return None
        finally:
            self._changes = None
            self._world.dependents.record(key, view.reads)
        if not view.confirm():
            self.queue.add(key)
            return None
        # A small one was published on the event loop meanwhile, and one that is gone withdrawn.
        is_large_yet = is_large(self._world.stores[key.kind].get(key))
        return found if self._is_final(key, view, changes) and is_large_yet else None

    def forget(self, key: ObjectKey) -> None:
        """Forget how often results for an object were out of date: it is not large any more."""
        del self._outdated[key]

    def _is_final(self, key: ObjectKey, view: TrackingView, changes: set[Read]) -> bool:
        """Say whether a result counts: it is up to date, or was out of date too often. Queue what is."""
        if not changes.isdisjoint((key, *view.reads)):
            self.queue.add(key)
            self._outdated[key] += 1
            if self._outdated[key] < TRIES:
                return False
        del self._outdated[key]
        return True

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
