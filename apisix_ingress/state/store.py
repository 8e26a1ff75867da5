"""Stores: the objects of one kind with their indexes. They notify what changed, never what happened.

A store is silent when the trimmed object is equal. The resourceVersion is opaque here: it is neither compared nor
ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from apisix_ingress.model.keys import IndexKey, ObjectKey, Read
from apisix_ingress.model.kube import KubeObject
from apisix_ingress.model.resources import IndexFunction

T = TypeVar("T", bound=KubeObject)
Listener = Callable[[Read], None]


class Store(Generic[T]):
    """Objects of one kind by key, and by the values of each index.

    `listener` is called once for the object's key and once for each index value that it had or has.
    """

    def __init__(self, kind: str, listener: Listener, indexes: Mapping[str, IndexFunction] | None = None) -> None:
        self.kind = kind
        self.synced = False
        """Whether a first complete list has been stored."""
        self._listener = listener
        self._functions = dict(indexes or {})
        self._objects: dict[ObjectKey, T] = {}
        self._indexed: dict[IndexKey, dict[ObjectKey, None]] = {}

    def __len__(self) -> int:
        return len(self._objects)

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
        keys = self._indexed.get(IndexKey(self.kind, index, value), ())
        return tuple(self._objects[key] for key in sorted(keys))

    def set(self, item: T) -> bool:
        """Store an object; return whether it differs from what was there. Equal objects notify nobody."""
        key = item.meta.key
        before = self._objects.get(key)
        self._objects[key] = item
        if before == item:
            return False
        self._reindex(key, before, item)
        return True

    def delete(self, key: ObjectKey) -> bool:
        """Forget an object; return whether it was there."""
        before = self._objects.pop(key, None)
        if before is None:
            return False
        self._reindex(key, before, None)
        return True

    def replace(self, items: Iterable[T]) -> tuple[ObjectKey, ...]:
        """Make the store equal to a complete list; return the keys that were missing from it and are gone now."""
        seen = set()
        for item in items:
            seen.add(item.meta.key)
            self.set(item)
        gone = tuple(key for key in self._objects if key not in seen)
        for key in gone:
            self.delete(key)
        self.synced = True
        return gone

    def _reindex(self, key: ObjectKey, before: T | None, after: T | None) -> None:
        had, has = self._index_keys(before), self._index_keys(after)
        for index in had:
            if index not in has:
                self._drop(index, key)
        for index in has:
            self._indexed.setdefault(index, {})[key] = None
        self._listener(key)
        for index in dict.fromkeys((*had, *has)):
            self._listener(index)

    def _drop(self, index: IndexKey, key: ObjectKey) -> None:
        members = self._indexed[index]
        del members[key]
        if not members:
            del self._indexed[index]

    def _index_keys(self, item: T | None) -> dict[IndexKey, None]:
        if item is None:
            return {}
        return {
            IndexKey(self.kind, index, value): None
            for index, function in self._functions.items()
            for value in function(item)
        }
