"""The stores as they would be with one object stored, for checks. The stores themselves do not change."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TypeVar, cast

from apisix_ingress.model.keys import IndexKey, ObjectKey, RecordKind
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.names import short_id
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.state.view import TrackingView
from apisix_ingress.state.world import World
from translation.core.options import Options
from translation.policies import PolicyInputs

T = TypeVar("T", bound=KubeObject)


class OverlayView(TrackingView):
    """A view of the stores with one object over them; reads are not recorded.

    Ids are simple: correct except for names with the same CRC, and nothing is published.

    Args:
        world: The stores.
        item: The object.
        shows_secrets: Whether Secrets exist in the view; without them a response cannot depend on their content.
    """

    def __init__(self, world: World, item: CustomObject, *, shows_secrets: bool = True) -> None:
        stores = world.stores if shows_secrets else {kind: at for kind, at in world.stores.items() if kind != "Secret"}
        super().__init__(stores, world.ids, world.claims, world.host_holders)
        self._item = item
        self._budget = world.budget
        # A large object may have thousands of values in an index, and a translation may look up each of them.
        self._values: dict[str, frozenset[str]] = {}

    def get(self, kind: type[T], key: ObjectKey) -> T | None:
        """Return an object or None; `kind` is the trimmed class that the key's kind decodes to."""
        if key == self._item.meta.key:
            return cast("T", self._item)  # its kind is the key's
        return super().get(kind, key)

    def find(self, kind: type[T], index: IndexKey) -> tuple[T, ...]:
        """Return the objects under an index value, sorted by key."""
        found = super().find(kind, index)
        if index.kind != self._item.meta.kind:
            return found
        return tuple(sorted((*self._others(found), *self._own(index)), key=lambda each: each.meta.key))

    def oldest(self, kind: type[T], index: IndexKey) -> Iterable[T]:
        """Return the objects under a value of a ranked index, the oldest first."""
        found = super().oldest(kind, index)
        if index.kind != self._item.meta.kind:
            return found
        own: Iterable[T] = self._own(index)
        return heapq.merge(self._others(found), own, key=lambda each: each.meta.age)

    def oldest_seconds(self, kind: type[T], index: IndexKey) -> Iterator[T]:
        """Return the objects as `oldest` does, but those of a second in the reverse order of their names."""
        for _, group in groupby(self.oldest(kind, index), key=lambda each: each.meta.age[0]):
            yield from reversed(tuple(group))

    def inputs(self, options: Options) -> PolicyInputs:
        """Return what policies compare the outcome of the object with; this version was never published."""
        secrets = tuple(self.secrets.values())
        return PolicyInputs(self._item.meta.key, self._item, self, options, secrets, self._budget)

    def record_id(self, kind: RecordKind, name: str) -> str:
        """Return the id that a record name has unless another name shares it."""
        return short_id(name)

    def _others(self, found: Iterable[T]) -> Iterator[T]:
        return (each for each in found if each.meta.key != self._item.meta.key)

    def _own(self, index: IndexKey) -> tuple[T, ...]:
        """Return the object if it is under an index value of its kind."""
        if index.by not in self._values:
            self._values[index.by] = frozenset(RESOURCES[index.kind].indexes[index.by](self._item))
        return (cast("T", self._item),) if index.value in self._values[index.by] else ()
