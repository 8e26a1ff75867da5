"""Views: what a translation may read.

`TrackingView` records every read, whether or not it finds an object, so that the arrival of a missing object causes a
new translation of the objects that looked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any, Protocol, TypeVar

from apisix_ingress.model.keys import IndexKey, ObjectKey, Read, RecordKind
from apisix_ingress.model.objects import KubeObject, Secret
from apisix_ingress.state.claims import Claimant, Claims, UpstreamClaim
from apisix_ingress.state.hosts.host_holders import HostHolders, below_read, holder_read
from apisix_ingress.state.ids.id_table import IdTable, id_read
from apisix_ingress.state.store import TOP, Store, beyond_top

T = TypeVar("T", bound=KubeObject)
K = TypeVar("K", bound=Hashable)
A = TypeVar("A")

_ATTEMPTS = 100
"""Attempts of a lookup in another thread: a dictionary may change while it is iterated, for microseconds."""


class View(Protocol):
    """The state as a translation sees it: a consistent snapshot, because no translation awaits."""

    def get(self, kind: type[T], key: ObjectKey) -> T | None:
        """Return an object or None; `kind` is the class to which the key's kind is decoded."""

    def find(self, kind: type[T], index: IndexKey) -> tuple[T, ...]:
        """Return the objects with an index value, sorted by key."""

    def record_id(self, kind: RecordKind, name: str) -> str:
        """Return the id of a record name."""

    def claims_on(self, target: ObjectKey) -> tuple[tuple[Claimant, UpstreamClaim], ...]:
        """Return each claim on a Service or ApisixUpstream once, with its oldest claimant; the oldest first."""

    def host_holder(self, host: str) -> str:
        """Return the namespace that holds a host or wildcard; empty without a holder, so that age decides."""

    def holders_below(self, wildcard: str) -> Collection[str] | None:
        """Return the namespaces that hold names below a wildcard; None before hosts have holders: age decides."""


class TrackingView:
    """A view of the stores that records reads, and the Secrets that they found: the stores may change at any time."""

    def __init__(self, stores: Mapping[str, Store[Any]], ids: IdTable, claims: Claims, holders: HostHolders) -> None:
        self._stores = stores
        self._ids = ids
        self._claims = claims
        self._holders = holders
        self.reads: dict[Read, None] = {}
        self.secrets: dict[ObjectKey, Secret] = {}

    def get(self, kind: type[T], key: ObjectKey) -> T | None:
        """Return an object or None, and record the read. A kind that is not watched has no objects."""
        self.reads[key] = None
        store = self._stores.get(key.kind)
        # `model.kinds.table` defines the class of each kind's objects.
        found: T | None = store.get(key) if store is not None else None
        if isinstance(found, Secret):
            self.secrets[key] = found
        return found

    def find(self, kind: type[T], index: IndexKey) -> tuple[T, ...]:
        """Return the objects with an index value, and record the read."""
        self.reads[index] = None
        store = self._stores.get(index.kind)
        found: tuple[T, ...] = store.by_index(index.by, index.value) if store is not None else ()
        return found

    def oldest(self, kind: type[T], index: IndexKey) -> Iterable[T]:
        """Return the objects with a value of a ranked index, the oldest first; record how far the caller reads."""
        self.reads[index] = None
        found: Iterable[T] = self._ranked(index)
        # Nearly always there is at most one: only more than `TOP` need their places.
        return found if isinstance(found, tuple) and len(found) <= TOP else self._followed(index, found)

    def oldest_seconds(self, kind: type[T], index: IndexKey) -> Iterator[T]:
        """Return the objects as `oldest` does, but those of a second in the reverse order of their names."""
        self.reads[index] = None
        found = 0
        for size, group in self._seconds(index):
            found += size
            if found > TOP:
                self.reads[beyond_top(index)] = None
            yield from group

    def _seconds(self, index: IndexKey) -> Iterator[tuple[int, Iterator[Any]]]:
        store = self._stores.get(index.kind)
        return store.by_second(index) if store is not None else iter(())

    def _followed(self, index: IndexKey, found: Iterable[T]) -> Iterator[T]:
        for place, item in enumerate(found):
            if place == TOP:
                self.reads[beyond_top(index)] = None
            yield item

    def _ranked(self, index: IndexKey) -> Iterable[Any]:
        store = self._stores.get(index.kind)
        return store.oldest(index) if store is not None else ()

    def record_id(self, kind: RecordKind, name: str) -> str:
        """Return the id of a record name, and record the read."""
        read = id_read(kind, name)
        self.reads[read] = None
        return self._ids.id_of_read(read)

    def claims_on(self, target: ObjectKey) -> tuple[tuple[Claimant, UpstreamClaim], ...]:
        """Return the distinct claims on a target. This is not a read: a change of claims queues the target."""
        return self._claims.distinct(target)

    def host_holder(self, host: str) -> str:
        """Return the namespace that holds a host or wildcard, and record the read."""
        self.reads[holder_read(host)] = None
        return self._holders.holder(host)

    def holders_below(self, wildcard: str) -> Collection[str] | None:
        """Return the namespaces that hold names below a wildcard, and record the read."""
        self.reads[below_read(wildcard)] = None
        return self._holders.below(wildcard) if self._holders.is_settled else None


class DetachedView(TrackingView):
    """A view for a translation in another thread, while the event loop changes the state.

    Each read keeps its first result, so that a translation never sees two versions of anything. The view writes
    nothing: `confirm`, which runs on the event loop after the translation, assigns ids to new names.
    """

    def __init__(self, stores: Mapping[str, Store[Any]], ids: IdTable, claims: Claims, holders: HostHolders) -> None:
        super().__init__(stores, ids, claims, holders)
        self._answers: dict[Hashable, Any] = {}
        self._seen_ids: dict[tuple[RecordKind, str], str] = {}
        self._seen_holders: dict[str, str] = {}
        self._seen_below: dict[str, Collection[str] | None] = {}

    def get(self, kind: type[T], key: ObjectKey) -> T | None:
        """Return an object or None."""
        found: T | None = _first(self._answers, key, partial(super().get, kind, key))
        return found

    def find(self, kind: type[T], index: IndexKey) -> tuple[T, ...]:
        """Return the objects with an index value."""
        return _first(self._answers, index, partial(super().find, kind, index))

    def record_id(self, kind: RecordKind, name: str) -> str:
        """Return the id that a record name has, or would get."""
        self.reads[id_read(kind, name)] = None
        return _first(self._seen_ids, (kind, name), partial(self._ids.expected_id, kind, name))

    def claims_on(self, target: ObjectKey) -> tuple[tuple[Claimant, UpstreamClaim], ...]:
        """Return the distinct claims on a target."""
        return _first(self._answers, ("claims", target), partial(super().claims_on, target))

    def host_holder(self, host: str) -> str:
        """Return the namespace that holds a host or wildcard."""
        return _first(self._seen_holders, host, partial(super().host_holder, host))

    def holders_below(self, wildcard: str) -> Collection[str] | None:
        """Return the namespaces that hold names below a wildcard."""
        return _first(self._seen_below, wildcard, partial(self._below, wildcard))

    def confirm(self) -> bool:
        """Assign ids to new names; return whether no id or host holder has changed since the translation read it.

        Ids and hosts are exclusive, so a result based on outdated ones must not be published.
        """
        ids = [self._ids.id_of(*name) == id_ for name, id_ in self._seen_ids.items()]
        holders = (self._holders.holder(host) == holder for host, holder in self._seen_holders.items())
        below = (self._below(wildcard) == holders for wildcard, holders in self._seen_below.items())
        return all(ids) and all(holders) and all(below)

    def _below(self, wildcard: str) -> Collection[str] | None:
        found = super().holders_below(wildcard)
        return frozenset(found) if found is not None else None

    def _ranked(self, index: IndexKey) -> Iterable[Any]:
        return _first(self._answers, ("ranked", index), lambda: tuple(TrackingView._ranked(self, index)))

    def _seconds(self, index: IndexKey) -> Iterator[tuple[int, Iterator[Any]]]:
        for _, group in groupby(self._ranked(index), key=lambda item: item.meta.age[0]):
            found = tuple(group)
            yield len(found), reversed(found)


def oldest(view: View, kind: type[T], index: IndexKey) -> Iterable[T]:
    """Return the objects with a value of a ranked index, the oldest first; a caller that stops early reads fewer."""
    if isinstance(view, TrackingView):
        return view.oldest(kind, index)
    return sorted(view.find(kind, index), key=lambda item: item.meta.age)


def oldest_seconds(view: View, kind: type[T], index: IndexKey) -> Iterable[T]:
    """Return the objects as `oldest` does, but those of a second in the reverse order of their names."""
    if isinstance(view, TrackingView):
        return view.oldest_seconds(kind, index)
    by_name = sorted(view.find(kind, index), key=lambda item: item.meta.age, reverse=True)
    return sorted(by_name, key=lambda item: item.meta.age[0])


def _first(answers: dict[K, A], question: K, look: Callable[[], A]) -> A:
    """Return the first result of a read; look it up until no concurrent change disturbs the lookup."""
    for attempt in range(_ATTEMPTS):
        if question in answers:
            break
        try:
            answers[question] = look()
        except (KeyError, RuntimeError):
            if attempt == _ATTEMPTS - 1:
                raise
    return answers[question]
