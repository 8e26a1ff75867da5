"""Stores that are filled namespace by namespace: each portion looks to its filler like a store of its own.

Whoever reads sees one store, complete once every portion is. What fills them is elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.store import Store


class Fillable(Protocol):
    """What one who fills a store needs of it; `Store` and `NamespacedStore` have it."""

    synced: bool

    def __len__(self) -> int:
        """Return the number of objects."""

    def get(self, key: ObjectKey) -> Any:
        """Return the object, or None."""

    def keys(self) -> tuple[ObjectKey, ...]:
        """Return the keys of all objects."""

    def set(self, item: Any) -> bool:
        """Store an object; return whether it differs from what was there."""

    def delete(self, key: ObjectKey) -> bool:
        """Forget an object; return whether it was there."""


class NamespacedStore:
    """The objects of one namespace in a store.

    Args:
        store: The whole.
        namespace: The namespace; nothing of another one may be set here.
        waiting: The namespaces that were not listed yet, shared by all portions.
    """

    def __init__(self, store: Store[Any], namespace: str, waiting: set[str]) -> None:
        self._store = store
        self._namespace = namespace
        self._waiting = waiting

    @property
    def synced(self) -> bool:
        """Whether a first complete list of this namespace has been stored."""
        return self._namespace not in self._waiting

    @synced.setter
    def synced(self, value: bool) -> None:
        if value:
            self._waiting.discard(self._namespace)
        self._store.synced = not self._waiting

    def __len__(self) -> int:
        return len(self.keys())

    def get(self, key: ObjectKey) -> Any:
        """Return the object, or None."""
        return self._store.get(key)

    def keys(self) -> tuple[ObjectKey, ...]:
        """Return the keys of the objects in the namespace."""
        return tuple(filter(lambda key: key.namespace == self._namespace, self._store.keys()))

    def set(self, item: Any) -> bool:
        """Store an object; return whether it differs from what was there."""
        return self._store.set(item)

    def delete(self, key: ObjectKey) -> bool:
        """Forget an object; return whether it was there."""
        return self._store.delete(key)


def portions(store: Store[Any], namespaces: Sequence[str]) -> dict[str, NamespacedStore]:
    """Return a portion for each namespace; together they are the whole store."""
    waiting = set(namespaces)
    return {namespace: NamespacedStore(store, namespace, waiting) for namespace in namespaces}
