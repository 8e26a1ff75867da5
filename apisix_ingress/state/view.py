"""Views: what a translator may ask.

The tracking one notes every read, found or missing, so that the arrival of a missing thing wakes whoever looked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from apisix_ingress.model.keys import IndexKey, ObjectKey, Read, RecordKind
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.state.claims import Claimant, Claims, UpstreamClaim
from apisix_ingress.state.host_holders import HostHolders, below_read, holder_read
from apisix_ingress.state.id_table import IdTable, id_read
from apisix_ingress.state.store import NEAR, Store, far

T = TypeVar("T", bound=KubeObject)
K = TypeVar("K", bound=Hashable)
A = TypeVar("A")

_ATTEMPTS = 100
"""Times that an answer is looked up: a dictionary may change while it is iterated, for microseconds."""


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
        # The kind names the class that its store was filled with (model.kinds.table).
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


class DetachedView(TrackingView):
    """A view for a translation in one other thread, while the event loop changes the world.

    Each read keeps its first answer, so that a translation never sees two versions of one thing. Nothing is written: a
    new name gets its id in `confirm`, which is called on the event loop when the translation has ended.
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
        """Return the objects under an index value."""
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
        """Give new names their ids, and say whether ids and holders of hosts are still what the translation saw.

        Only one may have these: a result that rests on others must not be published.
        """
        ids = [self._ids.id_of(*name) == id_ for name, id_ in self._seen_ids.items()]
        holders = (self._holders.holder(host) == holder for host, holder in self._seen_holders.items())
        below = (self._below(wildcard) == holders for wildcard, holders in self._seen_below.items())
        return all(ids) and all(holders) and all(below)

    def _below(self, wildcard: str) -> Collection[str] | None:
        found = super().holders_below(wildcard)
        return frozenset(found) if found is not None else None

    def _ranked(self, index: IndexKey) -> Iterable[KubeObject]:
        return _first(self._answers, ("ranked", index), lambda: tuple(TrackingView._ranked(self, index)))


def oldest(view: View, kind: type[T], index: IndexKey) -> Iterable[T]:
    """Return the objects under a value of a ranked index, the oldest first; whoever stops early reads no further."""
    if isinstance(view, TrackingView):
        return view.oldest(kind, index)
    return sorted(view.find(kind, index), key=lambda item: item.meta.age)


def _first(answers: dict[K, A], question: K, look: Callable[[], A]) -> A:
    """Return the answer that was given first, or look for it until nothing changes meanwhile."""
    for attempt in range(_ATTEMPTS):
        if question in answers:
            break
        try:
            answers[question] = look()
        except (KeyError, RuntimeError):
            if attempt == _ATTEMPTS - 1:
                raise
    return answers[question]
