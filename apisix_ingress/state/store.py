"""Stores: the objects of one kind with their indexes. Notifications name changed reads, not events.

Storing an equal trimmed object causes no notification. The resourceVersion is opaque: it is neither compared nor
ordered.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Generic, TypeVar

from apisix_ingress.model.keys import IndexKey, ObjectKey, Read
from apisix_ingress.model.kinds.indexes import IndexFunction
from apisix_ingress.model.objects import Age, KubeObject

T = TypeVar("T", bound=KubeObject)
Listener = Callable[[Read], None]

TOP = 16
"""Number of oldest members of a ranked index whose changes notify every reader of the index.

Changes of younger members notify only readers that read that far: thousands of objects may have one value, and each
of them reads which one is the oldest.
"""


def beyond_top(index: IndexKey) -> IndexKey:
    """Return the read of a ranked index beyond its `TOP` oldest members."""
    return IndexKey(index.kind, f"{index.by}:far", index.value)


class Store(Generic[T]):
    """Objects of one kind by key, and by the values of each index.

    `listener` is called once for the object's key and once for each index value that it had or has; for `ranked`
    indexes see `TOP`.
    """

    def __init__(
        self,
        kind: str,
        listener: Listener,
        indexes: Mapping[str, IndexFunction] | None = None,
        ranked: frozenset[str] = frozenset(),
    ) -> None:
        self.kind = kind
        self._synced = False
        self._awaiting_sync: list[Callable[[], None]] = []
        self._listener = listener
        self._functions = dict(indexes or {})
        self._objects: dict[ObjectKey, T] = {}
        self._indexed: dict[IndexKey, dict[ObjectKey, None]] = {}
        self._ranked = ranked
        # Only for values with two or more members; nearly all have one.
        self._ranks: dict[IndexKey, list[Age]] = {}

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def synced(self) -> bool:
        """Whether a first complete list has been stored."""
        return self._synced

    @synced.setter
    def synced(self, value: bool) -> None:
        self._synced = value
        if value:
            callbacks, self._awaiting_sync = self._awaiting_sync, []
            for callback in callbacks:
                callback()

    def when_synced(self, callback: Callable[[], None]) -> None:
        """Call a function once, as soon as a first complete list has been stored."""
        if self._synced:
            callback()
        else:
            self._awaiting_sync.append(callback)

    def get(self, key: ObjectKey) -> T | None:
        """Return the object, or None."""
        return self._objects.get(key)

    def keys(self) -> tuple[ObjectKey, ...]:
        """Return the keys of all objects, oldest insertion first."""
        return tuple(self._objects)

    def values(self) -> tuple[T, ...]:
        """Return all objects."""
        return tuple(self._objects.values())

    def by_index(self, index: str, value: str) -> tuple[T, ...]:
        """Return the objects under one index value, sorted by key."""
        keys = self._indexed.get(IndexKey(self.kind, index, value))
        return tuple([self._objects[key] for key in sorted(keys)]) if keys else ()

    def oldest(self, index: IndexKey) -> Iterable[T]:
        """Return the objects with a value of a ranked index, the oldest first; a tuple if there is at most one."""
        keys = self._indexed.get(index)
        if keys is None:
            return ()
        ranks = self._ranks.get(index)
        if ranks is None:
            return tuple([self._objects[key] for key in keys])
        return (self._objects[_key(age)] for age in ranks)

    def by_second(self, index: IndexKey) -> Iterator[tuple[int, Iterator[T]]]:
        """Yield the objects with a value of a ranked index by the second of their creation, the oldest first.

        Each group has its size and its objects in the reverse order of their names. They are looked up when they are
        used, since there may be thousands.
        """
        ranks = self._ranks.get(index)
        if ranks is None:
            found = [self._objects[key] for key in self._indexed.get(index, ())]
            yield len(found), iter(found)
            return
        start = 0
        while start < len(ranks):
            end = bisect_right(ranks, ranks[start][0], start, key=itemgetter(0))
            yield end - start, (self._objects[_key(age)] for age in reversed(ranks[start:end]))
            start = end

    def set(self, item: T) -> bool:
        """Store an object; return whether it differs from the former one. An equal object causes no notification."""
        key = item.meta.key
        before = self._objects.get(key)
        self._objects[key] = item
        if before == item:
            return False
        self._reindex(key, before, item)
        return True

    def delete(self, key: ObjectKey) -> bool:
        """Delete an object; return whether it existed."""
        before = self._objects.pop(key, None)
        if before is None:
            return False
        self._reindex(key, before, None)
        return True

    def _reindex(self, key: ObjectKey, before: T | None, after: T | None) -> None:
        had, has = self._index_keys(before), self._index_keys(after)
        as_old = before is not None and after is not None and before.meta.age == after.meta.age
        changed = {self._read_of(index, before): None for index in had} if before else {}
        if before:
            for index in had:
                if index not in has or not as_old:
                    self._drop(index, before)
        if after:
            for index in has:
                if index not in had or not as_old:
                    self._add(index, after)
            changed |= {self._read_of(index, after): None for index in has}
        # If an object is deleted, notify the readers of its indexes first: objects that replace it are then written
        # before it is deleted.
        reads: tuple[Read, ...] = (key, *changed) if after else (*changed, key)
        for read in reads:
            self._listener(read)

    def _read_of(self, index: IndexKey, item: T) -> IndexKey:
        """Return the read that changes when a member of an index changes."""
        ranks = self._ranks.get(index)
        return index if ranks is None or bisect_left(ranks, item.meta.age) < TOP else beyond_top(index)

    def _add(self, index: IndexKey, item: T) -> None:
        members = self._indexed.setdefault(index, {})
        if index.by in self._ranked and members:
            ranks = self._ranks.get(index) or [self._objects[key].meta.age for key in members]
            insort(ranks, item.meta.age)
            self._ranks[index] = ranks
        members[item.meta.key] = None

    def _drop(self, index: IndexKey, item: T) -> None:
        members = self._indexed[index]
        del members[item.meta.key]
        if not members:
            del self._indexed[index]
        if ranks := self._ranks.get(index):
            del ranks[bisect_left(ranks, item.meta.age)]
            if len(ranks) == 1:
                del self._ranks[index]

    def _index_keys(self, item: T | None) -> dict[IndexKey, None]:
        if item is None:
            return {}
        return {
            IndexKey(self.kind, index, value): None
            for index, function in self._functions.items()
            for value in function(item)
        }


def _key(age: Age) -> ObjectKey:
    _, namespace, name, kind = age
    return ObjectKey(kind, namespace, name)
