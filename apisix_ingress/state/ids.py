"""Which name has which id: names whose CRC-32 is equal are told apart here, independent of the order of arrival.

Of the names of one kind that share a short id the lexically smallest keeps it, every other takes its wide id. A name
may be asked for before it is used (a route asks for its upstream's), so whoever asked hears when the answer changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from apisix_ingress.model.keys import IndexKey, Read, RecordKind
from apisix_ingress.model.names import short_id, wide_id

ID_INDEX = "id"


def id_read(kind: RecordKind, name: str) -> IndexKey:
    """Return the read that stands for the id of a name: it changes when another name with its CRC comes or goes."""
    return IndexKey(kind, ID_INDEX, short_id(name))


class IdTable:
    """Names in use and names asked for, by kind and short id.

    `listener` hears of a read when the id of one of its names changed.
    """

    def __init__(self, listener: Callable[[IndexKey], None]) -> None:
        self._listener = listener
        self._names: dict[IndexKey, Counter[str]] = {}
        # Nearly always one name each: a tuple is a quarter of the size of a set.
        self._asked: dict[IndexKey, tuple[str, ...]] = {}

    def id_of(self, kind: RecordKind, name: str) -> str:
        """Return the id of a name, whether or not the name is in use yet."""
        read = id_read(kind, name)
        asked = self._asked.get(read, ())
        if name not in asked:
            self._asked[read] = (*asked, name)
        return wide_id(name) if _displaced(name, self._holder(read)) else read.value

    def use(self, kind: RecordKind, name: str) -> None:
        """Count one more use of a name."""
        read = id_read(kind, name)
        holder = self._holder(read)
        self._names.setdefault(read, Counter())[name] += 1
        self._notify(read, holder)

    def release(self, kind: RecordKind, name: str) -> None:
        """Count one use less; a name that nobody uses gives up its short id."""
        read = id_read(kind, name)
        holder = self._holder(read)
        names = self._names[read]
        names[name] -= 1
        if not names[name]:
            del names[name]
        if not names:
            del self._names[read]
        self._notify(read, holder)

    def forget(self, read: Read) -> None:
        """Drop what was asked for under a read that no owner has any more; any other read is ignored."""
        if isinstance(read, IndexKey):
            self._asked.pop(read, None)

    def _holder(self, read: IndexKey) -> str | None:
        return min(self._names.get(read, ()), default=None)

    def _notify(self, read: IndexKey, before: str | None) -> None:
        after = self._holder(read)
        names = (*self._asked.get(read, ()), *self._names.get(read, ()))
        if before != after and any(_displaced(name, before) != _displaced(name, after) for name in names):
            self._listener(read)


def _displaced(name: str, holder: str | None) -> bool:
    """Say whether a name has to leave the short id to its holder."""
    return holder is not None and holder < name
