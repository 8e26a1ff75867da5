"""Whether a cluster is written to at all: a breaker for one that does not answer, a pause for one that refuses the key.

While the gate is shut a probe looks from time to time whether it can be opened; nobody else sends anything. A probe
that succeeds does not end the outage that people are told of: a gateway may read and not write. Which records wait for
it is not known here.
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
from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff
from apisix_ingress.runtime.tasks import bounded

log = structlog.get_logger()

UNREACHED, FAILING = 3, 8
"""So many different records in a row must fail before the cluster is taken to be down: one alone may be at fault, and
a gateway that fails some of its requests is better written to than not. Fewer are enough if it was not even reached.
"""

KEY_PROBE_INTERVAL = 30.0
"""Seconds between two probes with a refused key: some set-ups lock a client out that tries too often."""

KEY_CHECK_INTERVAL = 5.0
"""Seconds between two looks whether another key is at hand."""

PROBE_BASE, PROBE_CAP, PROBE_JITTER = 0.5, 5.0, 0.5
"""Seconds between probes of a cluster that does not answer, and the share of them that is drawn at random."""

TRIAL = 1.0
"""Seconds, beside those that a write may take, after which a gate that was opened and not shut again means the end."""

REMEDY = (
    "see whether its Admin API runs and can be reached from here; other clusters are not affected, and this one is"
    " probed every few seconds and catches up by itself"
)


class CircuitBreaker:
    """Open at first.

    Args:
        cluster: Its name.
        clock: Measures the time between probes.
        rng: Spreads it.
        listener: Hears of every change, with whether the gate is open now.
        told: Hears of the beginning and the end of every outage, with whether there is one now.
    """

    def __init__(
        self,
        cluster: str,
        *,
        clock: Clock,
        rng: random.Random,
        listener: Callable[[bool], None],
        told: Callable[[bool], None],
    ) -> None:
        self._log = log.bind(cluster=cluster)
        self._clock = clock
        self._listener = listener
        self._told = told
        self._backoff: ExponentialBackoff[str] = ExponentialBackoff(PROBE_BASE, PROBE_CAP, PROBE_JITTER, rng=rng)
        self._failing: set[RecordKey] = set()
        self._error: GatewayError | None = None
        self._outage: Outage | None = None
        # The cause of the last failure: one that comes twice in a row is that of the outage from then on.
        self._latest = ""
        self._succeeded_at = -math.inf
        self._opened = asyncio.Event()
        self._opened.set()
        self._shut = asyncio.Event()
        self._closed = False

    @property
    def is_open(self) -> bool:
        """Whether the cluster may be written to."""
        return self._error is None

    @property
    def is_passable(self) -> bool:
        """Whether a write may start now."""
        return self.is_open and not self._closed

    @property
    def outage(self) -> Outage | None:
        """The outage, if there is one: the gate is shut, or a probe opened it and nothing else has succeeded yet."""
        return self._outage

    @property
    def is_away(self) -> bool:
        """Whether there is an outage since the cluster does not answer, or not now."""
        return self._outage is not None and self._outage.reason in ("unreachable", "failing")

    def has_succeeded_since(self, instant: float) -> bool:
        """Say whether any call but a probe succeeded since an instant of the monotonic clock."""
        return self._succeeded_at >= instant

    def succeeded(self) -> None:
        """Note a success of any call but a probe."""
        self._succeeded_at = self._clock.monotonic()
        if self.is_open:
            self._end_outage()
        if self._failing:
            self._failing.clear()
        if self._backoff.failures(""):
            self._backoff.forget("")

    def failed(self, key: RecordKey, error: GatewayError) -> None:
        """Note that the cluster did not answer the write of a record; shut the gate if others fared like it."""
        self._failing.add(key)
        if len(self._failing) >= (FAILING if error.sent else UNREACHED):
            self.shut(error)

    def shut(self, error: GatewayError, *, since: datetime | None = None) -> None:
        """Shut the gate; while it is shut already, only the cause may change.

        Args:
            error: Why.
            since: When the first request failed; None: just now.
        """
        was_open, self._error = self.is_open, error
        before, cause = self._outage, error.cause or str(error)
        agreed, self._latest = cause == self._latest, cause
        if before is None or was_open or agreed:
            begun = before.since if before is not None else since or self._clock.now()
            self._outage = Outage(reason_of(error), cause, begun)
        if was_open:
            self._opened.clear()
            self._shut.set()
        if self._outage is not None and (before is None or self._outage.reason not in _same(before.reason)):
            self._log_shut(self._outage)
        if was_open:
            self._listener(False)
        if before != self._outage:
            self._told(True)

    def _log_shut(self, outage: Outage) -> None:
        since = outage.since.isoformat(timespec="seconds")
        if outage.reason == "unauthorized":
            self._log.error("cluster.unauthorized", error=outage.cause, since=since)
        elif outage.reason == "redirected":
            self._log.error("cluster.redirects", error=outage.cause, since=since)
        else:
            self._log.error("cluster.unreachable", error=outage.cause, since=since, remedy=REMEDY)

    def close(self) -> None:
        """Let no write start any more, whatever the cluster answers: the process is about to end."""
        self._closed = True
        self._opened.clear()

    async def passable(self) -> None:
        """Return once a write may start."""
        if not self._opened.is_set():
            await self._opened.wait()

    async def attend(self, backend: Backend) -> None:
        """Probe the cluster while the gate is shut, and open it when a probe succeeds. Never returns."""
        while True:
            await self._shut.wait()
            await self._pause(backend)
            try:
                await backend.probe()
            except GatewayError as error:
                self.shut(error)
            else:
                self._open()
                await self._try_out(backend.timeout + TRIAL)

    async def _try_out(self, seconds: float) -> None:
        """Return once the gate is shut again, or the outage is over since it was not for so long."""
        try:
            await bounded(self._shut.wait(), seconds, clock=self._clock)
        except TimeoutError:
            self._end_outage()

    async def _pause(self, backend: Backend) -> None:
        """Wait until the next probe is due."""
        if not isinstance(self._error, GatewayUnauthorized):
            await self._clock.sleep(self._backoff.when(""))
            return
        until = self._clock.monotonic() + KEY_PROBE_INTERVAL
        while (left := until - self._clock.monotonic()) > 0 and not backend.credentials_changed():
            await self._clock.sleep(min(left, KEY_CHECK_INTERVAL))

    def _open(self) -> None:
        self._error = None
        self._failing.clear()
        self._shut.clear()
        if not self._closed:
            self._opened.set()
        self._listener(True)

    def _end_outage(self) -> None:
        if self._outage is not None:
            lasted = self._clock.now() - self._outage.since
            self._outage, self._latest = None, ""
            self._log.info("cluster.recovered", outage_s=round(lasted.total_seconds(), 1))
            self._told(False)


def reason_of(error: GatewayError) -> OutageReason:
    """Return what kind of outage an error stands for."""
    if isinstance(error, GatewayUnauthorized):
        return "unauthorized"
    if isinstance(error, GatewayRedirected):
        return "redirected"
    return "unreachable" if error.status is None else "failing"


def _same(reason: OutageReason) -> tuple[OutageReason, ...]:
    """Return the reasons that are told by the same line of the log."""
    return ("unreachable", "failing") if reason in ("unreachable", "failing") else (reason,)
