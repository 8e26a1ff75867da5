"""Records that were refused because another one still has what they take over: a plugin, a credential.

Who waits for whom is kept here, and whether they wait for each other in a circle: then none of them could ever be
written, and one has to let go first. What is tried when is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record


class Handover:
    """Refused records by the one that has what they take over."""

    def __init__(self) -> None:
        self._holders: dict[RecordKey, RecordKey] = {}
        self._successors: dict[RecordKey, dict[RecordKey, None]] = {}

    def wait(self, key: RecordKey, holder: RecordKey) -> None:
        """Note that a record was refused for the sake of another one."""
        self.tried(key)
        self._holders[key] = holder
        self._successors.setdefault(holder, {})[key] = None

    def tried(self, key: RecordKey) -> None:
        """Note that a record is tried again, or not wanted any more: why it was refused before does not count."""
        holder = self._holders.pop(key, None)
        if holder is None:
            return
        successors = self._successors[holder]
        del successors[key]
        if not successors:
            del self._successors[holder]

    def freed(self, holder: RecordKey) -> tuple[RecordKey, ...]:
        """Return the records that may be tried again, now that one was written or is gone."""
        found = tuple(self._successors.get(holder, ()))
        for key in found:
            self.tried(key)
        return found

    def is_circular(self, key: RecordKey) -> bool:
        """Say whether a record waits for one that waits, maybe by way of others, for it."""
        seen: set[RecordKey] = set()
        holder = self._holders.get(key)
        while holder is not None and holder != key and holder not in seen:
            seen.add(holder)
            holder = self._holders.get(holder)
        return holder == key


def without_plugins(record: Record) -> Record:
    """Return a record that has nothing another one could take over; it stands for the record for a moment."""
    return replace(record, body={**record.body, "plugins": {}})
