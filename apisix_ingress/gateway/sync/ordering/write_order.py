"""The order of outstanding writes that a queue of keys cannot express: deletes after writes.

Make before break, also between records without references to each other: a delete waits for every write of its batch or
an earlier one that could replace it, so that the new route exists before the old one is deleted. `scopes` defines which
writes these are. Orders are stored in slots; this module has the indexes over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from apisix_ingress.gateway.sync.ordering.blockers import Blockers
from apisix_ingress.gateway.sync.ordering.scopes import awaited, scopes_of
from apisix_ingress.gateway.sync.records.slot import Delete, RecordSlot, Write
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import UNKNOWN, Former, Record

BULK = 32
"""More outstanding writes than this are a bulk, such as a first sync."""

FEW = 8
"""A namespace with at most this many outstanding writes is not affected by the bulk of another one."""


class WriteOrder:
    """The outstanding writes by batch. A write that deletes wait for is *counted* from its order to its end."""

    def __init__(self) -> None:
        self._batch = 0
        self._last_batch = 0
        self._counted: dict[RecordKey, Write] = {}
        self._namespaces: Counter[str] = Counter()
        # The same by scope, built by the first delete that needs it and dropped when nothing is outstanding: usually,
        # even in a sync of thousands of records, no delete does.
        self._blockers: Blockers | None = None

    def begin_batch(self, cancelled: Iterable[Write | Delete] = ()) -> None:
        """Begin a batch for the following orders: a new one, or the first of those whose orders it cancels.

        What waits for an order that is cancelled has to wait for what replaces it.
        """
        self._last_batch += 1
        self._batch = min((order.batch for order in cancelled), default=self._last_batch)

    def order(self, slot: RecordSlot, record: Record | None, namespace: str, former: Former = UNKNOWN) -> None:
        """Order a record to be written, or deleted (None). Repeating the same kind of order keeps the batch.

        An order during a flight becomes outstanding when `take_next` is called at its end. Deletes wait for its write
        at once, since the record is being deleted.
        """
        before = slot.order if slot.flight is None else slot.next_order
        if record is not None:
            batch = before.batch if isinstance(before, Write) else self._batch
            following: Write | Delete = Write(batch, record, namespace)
        else:
            before = before or slot.order  # a delete that is ordered again during its own flight keeps its batch
            following = before if isinstance(before, Delete) else Delete(self._batch, former)
        if slot.flight is None:
            self._set(slot, following)
        else:
            slot.next_order = following
            if not isinstance(slot.order, Write):
                self._count(slot.key, following)

    def take_next(self, slot: RecordSlot, *, in_place: bool) -> None:
        """Make the order from during the flight outstanding; `in_place`: in the batch of the order it replaces."""
        before, following, slot.next_order = slot.order, slot.next_order, None
        assert following is not None
        if in_place and isinstance(before, Write) and isinstance(following, Write):
            following = following._replace(batch=before.batch)
        self._set(slot, following)

    def drop(self, slot: RecordSlot) -> None:
        """Drop the order of a record."""
        self._uncount(slot.key)
        slot.order = None

    def stop_counting(self, slot: RecordSlot) -> None:
        """Stop deletes from waiting for a write that keeps failing."""
        self._uncount(slot.key)
        if isinstance(slot.order, Write):
            slot.order = None

    def wait(self, slot: RecordSlot, record: Record | None, namespace: str) -> None:
        """Keep the batch of a record that waits for another one; deletes do not wait for it meanwhile."""
        self._uncount(slot.key)
        if record is None:
            slot.order = slot.order if isinstance(slot.order, Delete) else None
        elif not isinstance(slot.order, Write):
            slot.order = Write(self._batch, record, namespace)

    def resume(self, slot: RecordSlot) -> None:
        """Count the write of a record again, in its previous batch, when it no longer waits for another one."""
        if isinstance(slot.order, Write):
            self._set(slot, slot.order)

    def may_delete(self, slot: RecordSlot) -> bool:
        """Return whether a delete is due; if not, `due` will return its key when it is."""
        self._uncount(slot.key)
        if not isinstance(slot.order, Delete):
            slot.order = Delete(self._batch)
        scopes = awaited(slot.key, slot.order.former)
        if not self._counted or not scopes:
            return True
        if self._blockers is None:
            self._blockers = Blockers()
            for other, write in self._counted.items():
                self._blockers.enter(other, write.batch, scopes_of(write.record, write.namespace))
        return not self._blockers.defer(slot.key, slot.order.batch, scopes)

    def due(self) -> list[RecordKey]:
        """Return the deletes that may be due now."""
        if self._blockers is None:
            return []
        found = self._blockers.freed()
        if self.is_clear and not self._counted:
            self._blockers = None
        return found

    @property
    def is_bulk(self) -> bool:
        """Whether many writes are outstanding."""
        return len(self._counted) > BULK

    def is_in_bulk(self, key: RecordKey) -> bool:
        """Return whether many writes are outstanding, among them many of the namespace or of many namespaces."""
        write = self._counted.get(key)
        own = self._namespaces[write.namespace] if write is not None else 0
        return self.is_bulk and (own > FEW or len(self._namespaces) > BULK)

    def is_counted(self, key: RecordKey) -> bool:
        """Return whether a write of a record is counted, including its flight."""
        return key in self._counted

    @property
    def is_clear(self) -> bool:
        """Whether no delete waits for a write."""
        return self._blockers is None or not self._blockers.deferred

    def _set(self, slot: RecordSlot, order: Write | Delete) -> None:
        slot.order = order
        self._count(slot.key, order)

    def _count(self, key: RecordKey, order: Write | Delete) -> None:
        self._uncount(key)
        if isinstance(order, Write):
            self._counted[key] = order
            self._namespaces[order.namespace] += 1
            if self._blockers is not None:
                self._blockers.enter(key, order.batch, scopes_of(order.record, order.namespace))

    def _uncount(self, key: RecordKey) -> None:
        write = self._counted.pop(key, None)
        if write is None:
            return
        self._namespaces[write.namespace] -= 1
        if not self._namespaces[write.namespace]:
            del self._namespaces[write.namespace]
        if self._blockers is not None:
            self._blockers.leave(key)
