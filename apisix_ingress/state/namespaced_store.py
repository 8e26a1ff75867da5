"""Parts of a store, one per namespace. To a reflector, each part looks like a store of its own.

Readers see one store, which is complete once every part is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.store import Store


class Fillable(Protocol):
    """The methods that a reflector needs; `Store` and `NamespacedStore` implement them."""

    synced: bool

    def __len__(self) -> int:
        """Return the number of objects."""

    def get(self, key: ObjectKey) -> Any:
        """Return the object, or None."""

    def keys(self) -> tuple[ObjectKey, ...]:
        """Return the keys of all objects."""

    def set(self, item: Any) -> bool:
        """Store an object; return whether it differs from the former one."""

    def delete(self, key: ObjectKey) -> bool:
        """Delete an object; return whether it existed."""


class NamespacedStore:
    """The objects of one namespace in a store.

    Args:
        store: The whole store.
        namespace: The namespace; objects of other namespaces must not be set here.
        waiting: The namespaces that were not listed yet, shared by all parts.
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
        """Store an object; return whether it differs from the former one."""
        return self._store.set(item)

    def delete(self, key: ObjectKey) -> bool:
        """Delete an object; return whether it existed."""
        return self._store.delete(key)


class ObjectPart(NamespacedStore):
    """A single object of a store, which may not exist."""

    def __init__(self, store: Store[Any], key: ObjectKey) -> None:
        super().__init__(store, key.namespace, {key.namespace})
        self._key = key

    def keys(self) -> tuple[ObjectKey, ...]:
        """Return the key of the object, if it exists."""
        return () if self.get(self._key) is None else (self._key,)


def portions(store: Store[Any], namespaces: Sequence[str]) -> dict[str, NamespacedStore]:
    """Return a part of the store for each namespace."""
    waiting = set(namespaces)
    return {namespace: NamespacedStore(store, namespace, waiting) for namespace in namespaces}
