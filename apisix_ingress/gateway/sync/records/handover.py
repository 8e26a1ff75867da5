"""Records that were refused because another one still has what they take over: a plugin, a credential.

Who waits for whom is kept here, and whether they wait for each other in a circle: then none of them could ever be
written, and one has to let go first. What is tried when is decided elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import replace

from apisix_ingress.gateway.sync.records.observed import Applied
from apisix_ingress.model.json import mapping_in
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record, taken

LET_GO_INTERVAL = 60.0
"""Seconds between two times that one record lets go, if the first one was not followed by what it wants."""


class Handover:
    """Refused records by the one that has what they take over, and when which of them let go."""

    def __init__(self) -> None:
        self._holders: dict[RecordKey, RecordKey] = {}
        self._successors: dict[RecordKey, dict[RecordKey, None]] = {}
        self._let_go_at: dict[RecordKey, float] = {}

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

    def circle(self, key: RecordKey) -> tuple[RecordKey, ...]:
        """Return the records that wait for each other in a circle with this one, itself included; else nothing."""
        seen: dict[RecordKey, None] = {}
        holder = self._holders.get(key)
        while holder is not None and holder not in seen:
            seen[holder] = None
            holder = self._holders.get(holder)
        return tuple(seen) if key in seen else ()

    def may_let_go(self, key: RecordKey, now: float) -> bool:
        """Say whether a record is in a circle, and did not let go in vain a short time ago."""
        return now - self._let_go_at.get(key, -math.inf) >= LET_GO_INTERVAL and bool(self.circle(key))

    def let_go(self, key: RecordKey, now: float) -> None:
        """Note that a record let go, or that the gateway does not let it."""
        self._let_go_at[key] = now

    def done(self, key: RecordKey) -> None:
        """Note that a record is as it is wanted, or rejected for another reason: it may let go again at any time."""
        self._let_go_at.pop(key, None)


def letting_go(record: Record, applied: Applied | None) -> Record:
    """Return a record without those of its plugins that another one still has; it stands for it for a moment.

    What it has and keeps nobody waits for, with whatever configuration, and it goes on guarding requests.
    """
    held, wanted = applied.takes if applied else frozenset(), mapping_in(record.body.get("plugins"))
    kept = {name: config for name, config in wanted.items() if taken(record.key.kind, {name: config}) <= held}
    return replace(record, body={**record.body, "plugins": kept})
