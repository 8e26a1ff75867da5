"""Translates large objects in a thread, so that the event loop and other translations continue.

One object is translated at a time; namespaces take turns. If an object that the translation read changes meanwhile, the
result is discarded and the object is translated again after its namespace has rested. If the second result is outdated
too, it is published as if the change had come later, and the object is translated once more. Constant changes can thus
delay an object, but can neither stop its progress nor force its translation onto the event loop. Ids and holders of
hosts are never outdated in a published result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import orjson

from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.runtime.queue.workqueue import WorkQueue
from apisix_ingress.runtime.tasks import in_daemon
from apisix_ingress.state.view import TrackingView
from apisix_ingress.state.world import World
from translation.core.outcome import Outcome, records_of

LARGE = 8 * 1024
"""Bytes of a spec whose translation would block the event loop for too long: about 20 ms."""

TRIES = 2
"""Translations after which a result is published even if it is outdated."""


class Offloader:
    """The queue of large objects and the thread that translates them.

    Args:
        world: The stores that translations read.
        queue: Keys of large objects; a single worker processes them.
    """

    def __init__(self, world: World, queue: WorkQueue[ObjectKey]) -> None:
        self.queue = queue
        self._world = world
        self._changes: set[Read] | None = None
        self._outdated: Counter[ObjectKey] = Counter()
        world.listen(self._changed)

    async def translate(
        self, key: ObjectKey, work: Callable[[TrackingView], Outcome], takes_long: Callable[[], bool]
    ) -> Outcome | None:
        """Return the outcome of `work`, or None if it must not be published; then the key is queued again.

        Args:
            key: The owner.
            work: Translates it. The thread also serializes the records, which takes long if they are large.
            takes_long: Returns whether it still is to be translated in a thread.

        Raises:
            Exception: The error of `work`, unless something that it read changed meanwhile.
        """
        view = self._world.detached_view()
        changes = self._changes = set[Read]()
        try:
            outcome = await in_daemon(lambda: _prepared(work(view)), name="translation")
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
        # Meanwhile an object that became small was published on the event loop; a deleted one was withdrawn.
        return outcome if self._is_final(key, view, changes) and takes_long() else None

    def forget(self, key: ObjectKey) -> None:
        """Reset the count of outdated results for an object that is no longer large."""
        del self._outdated[key]

    def _is_final(self, key: ObjectKey, view: TrackingView, changes: set[Read]) -> bool:
        """Return whether to publish a result: it is current, or was outdated too often. Requeue outdated objects."""
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


def _prepared(outcome: Outcome) -> Outcome:
    for record in records_of(outcome):
        record.prepare()
    return outcome


def is_large(item: KubeObject | None) -> bool:
    """Return whether an object takes long to translate."""
    if not isinstance(item, CustomObject):
        return False
    try:
        return len(orjson.dumps(item.spec)) > LARGE
    except TypeError:
        return True  # nested too deeply to serialize, so it is large
