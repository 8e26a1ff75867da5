"""The world as it would be with one object stored: what a check may ask. It leaves no trace in the world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from apisix_ingress.model.keys import IndexKey, ObjectKey, RecordKind
from apisix_ingress.model.kube import CustomObject, KubeObject
from apisix_ingress.model.names import short_id
from apisix_ingress.model.resources import RESOURCES
from apisix_ingress.state.claims import Claimant, Claims, UpstreamClaim
from apisix_ingress.state.store import Store

T = TypeVar("T", bound=KubeObject)


class OverlayView:
    """A view of the stores with one object over them.

    Reads are not noted, and ids are plain: they are right but for names that share a CRC, and nothing is published.
    """

    def __init__(self, stores: Mapping[str, Store[Any]], claims: Claims, item: CustomObject) -> None:
        self._stores = stores
        self._claims = claims
        self._item = item
        # Of a large object an index has thousands of values, and a translation may ask for each of them.
        self._values: dict[str, frozenset[str]] = {}

    def get(self, kind: type[T], key: ObjectKey) -> T | None:
        """Return an object or None; `kind` is the trimmed class that the key's kind decodes to."""
        if key == self._item.meta.key:
            return cast("T", self._item)  # its kind is the key's
        store = self._stores.get(key.kind)
        return cast("T | None", store.get(key)) if store is not None else None

    def find(self, kind: type[T], index: IndexKey) -> tuple[T, ...]:
        """Return the objects under an index value, sorted by key."""
        store = self._stores.get(index.kind)
        if store is None:
            return ()
        found = cast("tuple[T, ...]", store.by_index(index.by, index.value))
        if index.kind != self._item.meta.kind:
            return found
        others = [each for each in found if each.meta.key != self._item.meta.key]
        if index.value in self._values_of(index.by):
            others.append(cast("T", self._item))
        return tuple(sorted(others, key=lambda each: each.meta.key))

    def _values_of(self, index: str) -> frozenset[str]:
        if index not in self._values:
            self._values[index] = frozenset(RESOURCES[self._item.meta.kind].indexes[index](self._item))
        return self._values[index]

    def record_id(self, kind: RecordKind, name: str) -> str:
        """Return the id that a record name has unless another name shares it."""
        return short_id(name)

    def claims_on(self, target: ObjectKey) -> tuple[tuple[Claimant, UpstreamClaim], ...]:
        """Return the claims of objects that are stored."""
        return self._claims.distinct(target)
