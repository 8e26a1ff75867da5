"""Writes of one cluster that nobody answered: which may still be carried out, after what followed them.

The Admin API has no compare-and-set, so an earlier body, or an earlier delete, can take the place of a later one.
Here is only when that can't happen any more, and the cluster is to be looked at. The look itself is an audit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection

from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record


class UnackedWrites:
    """The doubts of one cluster; every time is in seconds of the monotonic clock.

    Attributes:
        overtaken: Records that are as they should be, while an earlier, different write might still be carried out;
            until when it might. What is found of these may be our own doing.
    """

    def __init__(self) -> None:
        self.overtaken: dict[RecordKey, float] = {}
        self._open: dict[RecordKey, list[tuple[Record | None, float]]] = {}
        self._due = math.inf

    def __contains__(self, key: object) -> bool:
        """Say whether a record may be otherwise than expected since an earlier write of it was not answered."""
        return key in self.overtaken or key in self._open

    def note(self, key: RecordKey, record: Record | None, until: float) -> None:
        """Note that a write which nobody answered may be carried out until a time; None is a delete."""
        others = [each for each in self._open.get(key, ()) if each[0] != record]
        self._open[key] = [*others, (record, until)]

    def landed(self, key: RecordKey, record: Record | None, started: float) -> None:
        """Note a write that was carried out some time after its start."""
        others = self._open.get(key, ())
        until = max((until for other, until in others if other != record), default=-math.inf)
        if until > started:
            self.overtaken[key] = max(until, self.overtaken.get(key, until))
            self._due = until if self._due == math.inf else max(self._due, until)

    def come_due(self, now: float) -> bool:
        """Say, once, that what was overtaken has been carried out by now or never will be.

        As long as there are new doubts it waits for the last of them: so looks are no more frequent than they can tell.
        """
        if now < self._due:
            return False
        self._due = math.inf
        return True

    def settle(self, began: float, wanted: Callable[[RecordKey], Record | None]) -> None:
        """Forget what a look that began at a time saw the end of; what it came too early for needs another one."""
        self.overtaken = {key: until for key, until in self.overtaken.items() if until > began}
        for key in self._open:
            self.landed(key, wanted(key), began)

    def prune(self, now: float, flying: Collection[RecordKey]) -> None:
        """Forget doubts that are over, but for records of which a write is under way: it may have begun before."""
        for key in [key for key in self._open if key not in flying]:
            if left := [each for each in self._open[key] if each[1] > now]:
                self._open[key] = left
            else:
                del self._open[key]
