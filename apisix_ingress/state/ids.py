"""Which name has which id: names whose CRC-32 is equal are told apart here, independent of the order of arrival.

Of the names of one kind that share a short id the lexically smallest keeps it, every other takes its wide id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from apisix_ingress.model.keys import IndexKey, RecordKind
from apisix_ingress.model.names import short_id, wide_id

ID_INDEX = "id"


def id_read(kind: RecordKind, name: str) -> IndexKey:
    """Return the read that stands for the id of a name: it changes when another name with its CRC comes or goes."""
    return IndexKey(kind, ID_INDEX, short_id(name))


class IdTable:
    """Names in use, by kind and short id; `listener` hears of a short id whose holder changed."""

    def __init__(self, listener: Callable[[IndexKey], None]) -> None:
        self._listener = listener
        self._names: dict[IndexKey, Counter[str]] = {}

    def id_of(self, kind: RecordKind, name: str) -> str:
        """Return the id of a name, whether or not the name is in use yet."""
        short = short_id(name)
        names = self._names.get(IndexKey(kind, ID_INDEX, short))
        return wide_id(name) if names and min(names) < name else short

    def use(self, kind: RecordKind, name: str) -> None:
        """Count one more use of a name."""
        read = id_read(kind, name)
        names = self._names.setdefault(read, Counter())
        holder = min(names, default=name)
        names[name] += 1
        if name < holder:
            self._listener(read)

    def release(self, kind: RecordKind, name: str) -> None:
        """Count one use less; a name that nobody uses gives up its short id."""
        read = id_read(kind, name)
        names = self._names[read]
        holder = min(names)
        names[name] -= 1
        if names[name]:
            return
        del names[name]
        if not names:
            del self._names[read]
        elif name == holder:
            self._listener(read)
