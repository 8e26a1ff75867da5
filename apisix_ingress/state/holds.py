"""Holds: the records of an owner, recognized by their names and ids, whether or not this process wrote them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.names import is_id_of, short_id, truncated, wide_id

_Mark: TypeAlias = tuple[RecordKind, str, str]
_Scope: TypeAlias = tuple[frozenset[str] | None, frozenset[str] | None]


class Hold(NamedTuple):
    """Records of an owner that cannot be translated.

    Attributes:
        kind: Their kind.
        prefix: Prefix of their names.
        ids: Their ids, for kinds whose ids are not hashes.
        names: Their names.
        hosts: A record is protected only if all its hosts are among these; None for any hosts.
        sources: A record is protected only if all objects that it was generated from (namespace/name) are among these
            or, with the empty name, in these namespaces; None for any objects.
    """

    kind: RecordKind
    prefix: str = ""
    ids: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    hosts: frozenset[str] | None = None
    sources: frozenset[str] | None = None

    @property
    def scope(self) -> _Scope:
        """What restricts the protection."""
        return self.hosts, self.sources

    @property
    def marks(self) -> Iterable[_Mark]:
        """The keys under which `Holds.covers` finds the hold of a gateway's record."""
        yield from ((self.kind, id_, "") for id_ in self.ids)
        if self.prefix:
            yield (self.kind, "", self.prefix)
        for name in self.names:
            yield (self.kind, _NAMED, truncated(name))
            yield (self.kind, short_id(name), _NAMED)
            yield (self.kind, wide_id(name), _NAMED)


_NAMED = "="
"""Distinguishes whole names from prefixes in marks, and ids of names from other ids; no prefix or id has this value."""


class Holds:
    """The holds of all owners."""

    def __init__(self) -> None:
        self._of: dict[ObjectKey, tuple[Hold, ...]] = {}
        # Number of holds per mark, for fast lookups: a sweep checks thousands of records against thousands of holds.
        self._marks: dict[_Mark, Counter[_Scope]] = {}

    def __len__(self) -> int:
        return len(self._of) + len(self._marks)

    def replace(self, owner: ObjectKey, after: tuple[Hold, ...]) -> tuple[Hold, ...]:
        """Replace the holds of an owner; return the previous ones."""
        before = self._of.pop(owner, ())
        if after:
            self._of[owner] = after
        if before != after:
            for mark, scope in ((mark, hold.scope) for hold in after for mark in hold.marks):
                self._marks.setdefault(mark, Counter())[scope] += 1
            for mark, scope in ((mark, hold.scope) for hold in before for mark in hold.marks):
                self._unmark(mark, scope)
        return before

    def covers(
        self,
        key: RecordKey,
        name: str,
        hosts: tuple[str, ...] | None = None,
        sources: tuple[str, ...] | None = None,
    ) -> bool:
        """Return whether a record is one of an owner; the arguments are those of `Desired.is_held`."""
        whole: _Mark = (key.kind, _NAMED, name) if is_id_of(key.id, name) else (key.kind, key.id, _NAMED)
        prefixes: Iterator[_Mark] = ((key.kind, "", name[:end]) for end in range(1, len(name) + 1))
        marks = chain(((key.kind, key.id, ""), whole), prefixes)
        scopes = (each for mark in marks for each in self._marks.get(mark, ()))
        return any(_covers(of_hosts, hosts) and _includes(of_sources, sources) for of_hosts, of_sources in scopes)

    def _unmark(self, mark: _Mark, scope: _Scope) -> None:
        marked = self._marks[mark]
        marked[scope] -= 1
        if not marked[scope]:
            del marked[scope]
        if not marked:
            del self._marks[mark]


def _covers(allowed: frozenset[str] | None, hosts: tuple[str, ...] | None) -> bool:
    return allowed is None or hosts is None or allowed.issuperset(hosts)


def _includes(allowed: frozenset[str] | None, sources: tuple[str, ...] | None) -> bool:
    if allowed is None or sources is None:
        return True
    return all(each in allowed or f"{each.partition('/')[0]}/" in allowed for each in sources)
