"""The reverse index of reads: read → owners whose translation made it, recorded by a `TrackingView`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from apisix_ingress.model.keys import ObjectKey, Read


class Dependents:
    """The reads of each owner's last translation, and the owners of each read.

    `unread` is called with each read that its last owner dropped.
    """

    def __init__(self, unread: Callable[[Read], None] = lambda read: None) -> None:
        self._unread = unread
        # A set of seven reads would need 0.7 KB.
        self._reads: dict[ObjectKey, tuple[Read, ...]] = {}
        # Nearly every read has one owner, which is stored without a mapping.
        self._owners: dict[Read, ObjectKey | dict[ObjectKey, None]] = {}

    def record(self, owner: ObjectKey, reads: Iterable[Read]) -> None:
        """Replace an owner's reads; without reads, forget the owner."""
        after = dict.fromkeys(reads)
        for read in self._reads.get(owner, ()):
            if read not in after:
                self._drop(read, owner)
        for read in after:
            if self._owners.setdefault(read, owner) is not owner:
                self._add(read, owner)
        if after:
            self._reads[owner] = tuple(after)
        else:
            self._reads.pop(owner, None)

    def of(self, read: Read) -> tuple[ObjectKey, ...]:
        """Return the owners whose last translation made this read."""
        found = self._owners.get(read, {})
        return tuple(found) if isinstance(found, dict) else (found,)

    def is_read(self, read: Read) -> bool:
        """Return whether the last translation of any owner made this read."""
        return read in self._owners

    def reads_of(self, owner: ObjectKey) -> frozenset[Read]:
        """Return the reads of the owner's last translation."""
        return frozenset(self._reads.get(owner, ()))

    def _add(self, read: Read, owner: ObjectKey) -> None:
        owners = self._owners[read]
        if isinstance(owners, dict):
            owners[owner] = None
        elif owners != owner:
            self._owners[read] = {owners: None, owner: None}

    def _drop(self, read: Read, owner: ObjectKey) -> None:
        owners = self._owners[read]
        if isinstance(owners, dict):
            del owners[owner]
        if owners == owner or not owners:
            del self._owners[read]
            self._unread(read)
