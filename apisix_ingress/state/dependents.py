"""The reverse index of reads: read → owners whose translation made it, recorded by a `TrackingView`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from apisix_ingress.model.keys import ObjectKey, Read


class Dependents:
    """The reads of each owner's last translation, and the owners of each read.

    Listeners are called with each read that got its first owner, or that its last owner dropped.
    """

    def __init__(self, unread: Callable[[Read], None] = lambda read: None) -> None:
        self._started: tuple[Callable[[Read], None], ...] = ()
        self._ended: tuple[Callable[[Read], None], ...] = (unread,)
        # A set of seven reads would need 0.7 KB.
        self._reads: dict[ObjectKey, tuple[Read, ...]] = {}
        # Nearly every read has one owner, which is stored without a mapping.
        self._owners: dict[Read, ObjectKey | dict[ObjectKey, None]] = {}

    def follow(self, started: Callable[[Read], None], ended: Callable[[Read], None]) -> None:
        """Add listeners: `started` for a read with its first owner, `ended` for one without its last owner."""
        self._started, self._ended = (*self._started, started), (*self._ended, ended)

    def record(self, owner: ObjectKey, reads: Iterable[Read]) -> None:
        """Replace an owner's reads; without reads, forget the owner."""
        after = dict.fromkeys(reads)
        for read in self._reads.get(owner, ()):
            if read not in after:
                self._drop(read, owner)
        for read in after:
            if read not in self._owners:
                self._owners[read] = owner
                for listener in self._started:
                    listener(read)
            elif self._owners[read] is not owner:
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
            for listener in self._ended:
                listener(read)
