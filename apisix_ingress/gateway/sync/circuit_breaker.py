"""The circuit breaker of a cluster: it stops writes while the cluster does not respond or rejects the admin key.

While the breaker is tripped, the cluster is probed from time to time and nothing else is sent. A successful probe
resets the breaker, but does not end the reported outage: a gateway may answer reads and fail writes.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from datetime import datetime

import structlog

from apisix_ingress.errors import GatewayError, GatewayRedirected, GatewayUnauthorized
from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.sync.observer import Outage, OutageReason
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.rate_limiters import Backoff
from apisix_ingress.runtime.tasks import ends_within

log = structlog.get_logger()

UNREACHED, FAILING = 3, 8
"""Number of different records whose writes must fail in a row before the cluster is considered down: a single record
may be the cause, and writes to a gateway that fails some requests are useful. Fewer suffice if no connection was
possible.
"""

KEY_PROBE_INTERVAL = 30.0
"""Seconds between two probes with a rejected key: some setups lock out clients that try too often."""

KEY_CHECK_INTERVAL = 5.0
"""Seconds between two checks whether the admin key was replaced."""

PROBES = Backoff(0.5, 5.0, 0.5)
"""The time between probes of a cluster that does not respond."""

TRIAL = 1.0
"""Seconds, in addition to the timeout of a write, after which the outage ends if the breaker has not tripped again."""

REMEDY = (
    "check that its Admin API is running and reachable from here; other clusters are not affected, and this one is"
    " probed every few seconds and catches up automatically"
)


class CircuitBreaker:
    """The breaker of one cluster, not tripped at first.

    Args:
        cluster: The name of the cluster.
        clock: Measures the time between probes.
        rng: Randomizes that time.
        on_change: Called after it tripped or was reset.
        on_outage: Called when an outage begins (True), changes its cause (True) or ends (False).
    """

    def __init__(
        self,
        cluster: str,
        *,
        clock: Clock,
        rng: random.Random,
        on_change: Callable[[], None],
        on_outage: Callable[[bool], None],
    ) -> None:
        self._log = log.bind(cluster=cluster)
        self._clock = clock
        self._on_change = on_change
        self._on_outage = on_outage
        self._rng = rng
        self._probes = 0
        """Number of probes since the last call that succeeded."""
        self._failing: set[RecordKey] = set()
        self._error: GatewayError | None = None
        self._outage: Outage | None = None
        # The cause of the last failure: it becomes the cause of the outage when it occurs twice in a row.
        self._latest = ""
        self._succeeded_at = -math.inf
        self._writable = asyncio.Event()
        self._writable.set()
        self._tripped = asyncio.Event()
        self._stopped = False

    @property
    def is_tripped(self) -> bool:
        """Whether the cluster is probed instead of written to."""
        return self._error is not None

    @property
    def allows_writes(self) -> bool:
        """Whether a write may start now."""
        return self._writable.is_set()

    @property
    def outage(self) -> Outage | None:
        """The outage, if any: the breaker is tripped, or a probe reset it and no other call has succeeded yet."""
        return self._outage

    def has_succeeded_since(self, instant: float) -> bool:
        """Return whether any call except a probe has succeeded since a monotonic time."""
        return self._succeeded_at >= instant

    def succeeded(self) -> None:
        """Record that a call other than a probe succeeded."""
        self._succeeded_at = self._clock.monotonic()
        if not self.is_tripped:
            self._end_outage()
        self._failing.clear()
        self._probes = 0

    def failed(self, error: GatewayError, key: RecordKey | None = None) -> None:
        """Record that a call failed, and trip if that concerns the whole cluster.

        A rejected admin key trips the breaker immediately, whatever the call was for. Otherwise writes of several
        records have to fail in a row; failures of other calls are ignored.

        Args:
            error: Why it failed.
            key: The record that was to be written; None for any other call.
        """
        if isinstance(error, GatewayUnauthorized):
            self.trip(error)
        elif key is not None:
            self._failing.add(key)
            if len(self._failing) >= (FAILING if error.sent else UNREACHED):
                self.trip(error)

    def trip(self, error: GatewayError, *, since: datetime | None = None) -> None:
        """Stop writes; if they are already stopped, only the cause may change.

        Args:
            error: Why.
            since: When the first request failed; None: now.
        """
        was_tripped, self._error = self.is_tripped, error
        before, cause = self._outage, error.cause or str(error)
        agreed, self._latest = cause == self._latest, cause
        if before is None or not was_tripped or agreed:
            begun = before.since if before is not None else since or self._clock.now()
            self._outage = Outage(reason_of(error), cause, begun)
        self._writable.clear()
        self._tripped.set()
        if self._outage is not None and (before is None or _is_other(before, self._outage)):
            self._log_outage(self._outage)
        if not was_tripped:
            self._on_change()
        if before != self._outage:
            self._on_outage(True)

    def _log_outage(self, outage: Outage) -> None:
        since = outage.since.isoformat(timespec="seconds")
        if outage.reason == "unauthorized":
            self._log.error("cluster.unauthorized", error=outage.cause, since=since)
        elif outage.reason == "redirected":
            self._log.error("cluster.redirects", error=outage.cause, since=since)
        else:
            self._log.error("cluster.unreachable", error=outage.cause, since=since, remedy=REMEDY)

    def stop(self) -> None:
        """Start no more writes, whatever the state of the cluster: the process is about to exit."""
        self._stopped = True
        self._writable.clear()

    async def writable(self) -> None:
        """Wait until a write may start."""
        await self._writable.wait()

    async def run_probes(self, backend: Backend) -> None:
        """Probe the cluster while the breaker is tripped, and reset it when a probe succeeds. Never returns."""
        while True:
            await self._tripped.wait()
            await self._pause(backend)
            try:
                await backend.probe()
            except GatewayError as error:
                self.trip(error)
            else:
                self._reset()
                if not await ends_within(self._tripped.wait(), backend.timeout + TRIAL, clock=self._clock):
                    self._end_outage()

    async def _pause(self, backend: Backend) -> None:
        """Wait until the next probe is due."""
        if not isinstance(self._error, GatewayUnauthorized):
            delay = PROBES.delay(self._probes, self._rng)
            self._probes += 1
            await self._clock.sleep(delay)
            return
        until = self._clock.monotonic() + KEY_PROBE_INTERVAL
        while (left := until - self._clock.monotonic()) > 0 and not backend.credentials_changed():
            await self._clock.sleep(min(left, KEY_CHECK_INTERVAL))

    def _reset(self) -> None:
        self._error = None
        self._failing.clear()
        self._tripped.clear()
        if not self._stopped:
            self._writable.set()
        self._on_change()

    def _end_outage(self) -> None:
        if self._outage is not None:
            lasted = self._clock.now() - self._outage.since
            self._outage, self._latest = None, ""
            self._log.info("cluster.recovered", outage_s=round(lasted.total_seconds(), 1))
            self._on_outage(False)


def reason_of(error: GatewayError) -> OutageReason:
    """Return the kind of outage that an error indicates."""
    if isinstance(error, GatewayUnauthorized):
        return "unauthorized"
    if isinstance(error, GatewayRedirected):
        return "redirected"
    return "unreachable" if error.status is None else "failing"


def _is_other(before: Outage, outage: Outage) -> bool:
    """Return whether a new cause of an outage is logged as another outage."""
    return before.reason != outage.reason and not (before.is_away and outage.is_away)
