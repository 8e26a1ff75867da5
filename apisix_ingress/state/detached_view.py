"""A view for a translation in a thread, while the event loop changes the world.

Each read keeps its first answer, so that a translation never sees two versions of one thing. Nothing is written: a new
name gets its id afterwards, on the event loop. What is done with a result that is out of date is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from apisix_ingress.model.keys import IndexKey, ObjectKey, RecordKind
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.state.claims import Claimant, Claims, UpstreamClaim
from apisix_ingress.state.host_holders import HostHolders
from apisix_ingress.state.id_table import IdTable, id_read
from apisix_ingress.state.store import Store
from apisix_ingress.state.view import TrackingView

T = TypeVar("T", bound=KubeObject)
K = TypeVar("K", bound=Hashable)
A = TypeVar("A")

_ATTEMPTS = 100
"""Times that an answer is looked up: a dictionary may change while it is iterated, for microseconds."""


class DetachedView(TrackingView):
    """A view that may be used in one other thread; `confirm` is called on the event loop when that has ended."""

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
