"""The metrics of one work queue."""

from prometheus_client.metrics import Counter, Gauge, Histogram

from apisix_ingress.runtime.queue.workqueue import QueueObserver

_NOTED = 200
"""Number of keys whose values are collected before they are passed on: half a millisecond of work."""


class QueueMetrics(QueueObserver):
    """The metrics of one queue.

    A key costs only a few numbers: `settle` passes them on to the series of the client, which need a lock and a lookup.
    """

    def __init__(
        self,
        depth: Gauge,
        adds: Counter,
        retries: Counter,
        waited: Histogram,
        worked: Histogram,
    ) -> None:
        self._depth = depth
        self._adds = adds
        self._retries = retries
        self._waited = waited
        self._worked = worked
        self._keys = self._added = 0
        self._waits: list[float] = []
        self._works: list[float] = []

    def depth(self, keys: int) -> None:
        """Set the number of dirty keys."""
        self._keys = keys

    def added(self) -> None:
        """Count a key that became dirty."""
        self._added += 1

    def retried(self) -> None:
        """Count a retry."""
        self._retries.inc()

    def started(self, waited: float) -> None:
        """Observe the seconds that a key waited."""
        self._waits.append(waited)

    def finished(self, worked: float) -> None:
        """Observe the seconds that processing a key took."""
        self._works.append(worked)
        if len(self._works) >= _NOTED:
            self.settle()

    def settle(self) -> None:
        """Pass on the collected values."""
        self._depth.set(self._keys)
        self._adds.inc(self._added)
        self._added = 0
        for series, noted in ((self._waited, self._waits), (self._worked, self._works)):
            for seconds in noted:
                series.observe(seconds)
            noted.clear()
