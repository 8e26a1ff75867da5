"""Views: what a translator may ask.

The tracking one notes every read, found or missing, so that the arrival of a missing thing wakes whoever looked for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar, cast

from apisix_ingress.model.keys import IndexKey, ObjectKey, Read, RecordKind
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.state.claims import Claimant, Claims, UpstreamClaim
from apisix_ingress.state.host_holders import HostHolders, below_read, holder_read
from apisix_ingress.state.id_table import IdTable, id_read
from apisix_ingress.state.store import NEAR, Store, far

T = TypeVar("T", bound=KubeObject)


class View(Protocol):
    """The world as a translation sees it: one consistent snapshot, since no translation awaits."""

    def get(self, kind: type[T], key: ObjectKey) -> T | None:
        """Return an object or None; `kind` is the trimmed class that the key's kind decodes to."""

    def find(self, kind: type[T], index: IndexKey) -> tuple[T, ...]:
        """Return the objects under an index value, sorted by key."""

    def record_id(self, kind: RecordKind, name: str) -> str:
        """Return the id of a record name."""

    def claims_on(self, target: ObjectKey) -> tuple[tuple[Claimant, UpstreamClaim], ...]:
        """Return each claim on a Service or ApisixUpstream once, with the oldest who makes it; the oldest first."""

    def host_holder(self, host: str) -> str:
        """Return the namespace that holds a host or wildcard; empty: nobody does, and age decides."""

    def holders_below(self, wildcard: str) -> Collection[str] | None:
        """Return the namespaces that hold names below a wildcard; None before hosts are held: age decides."""


class TrackingView:
    """A view of the stores that remembers what was read."""

    def __init__(self, stores: Mapping[str, Store[Any]], ids: IdTable, claims: Claims, holders: HostHolders) -> None:
        self._stores = stores
        self._ids = ids
        self._claims = claims
        self._holders = holders
        self.reads: dict[Read, None] = {}

    def get(self, kind: type[T], key: ObjectKey) -> T | None:
        """Return an object or None, and note the read. A kind that is not watched has no objects."""
        self.reads[key] = None
        store = self._stores.get(key.kind)
        # The kind names the class that its store was filled with (model.resources).
        return cast("T | None", store.get(key)) if store is not None else None

    def find(self, kind: type[T], index: IndexKey) -> tuple[T, ...]:
        """Return the objects under an index value, and note the read."""
        self.reads[index] = None
        store = self._stores.get(index.kind)
        return cast("tuple[T, ...]", store.by_index(index.by, index.value)) if store is not None else ()

    def oldest(self, kind: type[T], index: IndexKey) -> Iterator[T]:
        """Yield the objects under a value of a ranked index, the oldest first; noted is how far it was looked."""
        self.reads[index] = None
        for place, item in enumerate(self._ranked(index)):
            if place == NEAR:
                self.reads[far(index)] = None
            yield cast("T", item)

    def _ranked(self, index: IndexKey) -> Iterable[KubeObject]:
        store = self._stores.get(index.kind)
        return store.oldest(index.by, index.value) if store is not None else ()

    def record_id(self, kind: RecordKind, name: str) -> str:
        """Return the id of a record name, and note the read."""
        self.reads[id_read(kind, name)] = None
        return self._ids.id_of(kind, name)

    def claims_on(self, target: ObjectKey) -> tuple[tuple[Claimant, UpstreamClaim], ...]:
        """Return the distinct claims on a target. Not a read: whoever changes them queues the target itself."""
        return self._claims.distinct(target)

    def host_holder(self, host: str) -> str:
        """Return the namespace that holds a host or wildcard, and note the read."""
        self.reads[holder_read(host)] = None
        return self._holders.holder(host)

    def holders_below(self, wildcard: str) -> Collection[str] | None:
        """Return the namespaces that hold names below a wildcard, and note the read."""
        self.reads[below_read(wildcard)] = None
        return self._holders.below(wildcard) if self._holders.is_settled else None


def oldest(view: View, kind: type[T], index: IndexKey) -> Iterable[T]:
    """Return the objects under a value of a ranked index, the oldest first; whoever stops early reads no further."""
    if isinstance(view, TrackingView):
        return view.oldest(kind, index)
    return sorted(view.find(kind, index), key=lambda item: item.meta.age)
