"""The spot check between audits: every few seconds, a few records of a cluster are read.

If the gateway does not respond within the timeout of one request, the breaker trips, whether or not a write is waiting.
If it does not have what was written, it lost its data or was restored from a backup, and is audited immediately.
Nothing is written here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

import structlog

from apisix_ingress.errors import GatewayError, GatewayUnavailable
from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.sync.circuit_breaker import UNREACHED
from apisix_ingress.gateway.sync.comparison.audit import Audit
from apisix_ingress.gateway.sync.driver import RecordDriver
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.runtime.tasks import bounded

log = structlog.get_logger()

SPREAD = 0.9
"""The next check starts after at least this share of the interval; the rest is random."""

PAUSE = 0.5
"""Seconds between two attempts of one check."""


class SpotCheck:
    """The spot checks of one cluster.

    Args:
        driver: The records of the cluster, which say what to read, and its circuit breaker.
        backend: The client of the cluster.
        audit: Compares bodies.
        request_audit: Called when records are not as they were left.
    """

    def __init__(
        self, driver: RecordDriver, backend: Backend, audit: Audit, *, request_audit: Callable[[], None]
    ) -> None:
        self._log = log.bind(cluster=driver.cluster)
        self._backend = backend
        self._audit = audit
        self._breaker = driver.breaker
        self._sentinels = driver.sentinels
        self._config = driver.config
        self._clock = driver.config.clock
        self._request_audit = request_audit

    async def run_checks(self) -> None:
        """Check from time to time while writes are allowed. Never returns."""
        while True:
            await self._breaker.writable()
            await self._clock.sleep(self._config.check_interval * self._config.rng.uniform(SPREAD, 1.0))
            try:
                await self.run()
            except Exception as error:
                self._log.error("check.crashed", exc_info=error)

    async def run(self) -> None:
        """Read until the cluster responds; trip the breaker if it does not within the timeout of one request."""
        began, since = self._clock.monotonic(), self._clock.now()
        end, unreached, tries = began + self._backend.timeout, 0, 0
        error: GatewayError = GatewayUnavailable("no response")
        while self._breaker.allows_writes:
            tries += 1
            try:
                # The backend limits the first attempt, and its error contains more than a timeout here.
                attempt = self._read_sentinels()
                await (attempt if tries == 1 else bounded(attempt, end - self._now(), clock=self._clock))
                return
            except TimeoutError:
                pass
            except GatewayError as failure:
                error = failure
                self._breaker.failed(error)
                unreached += not error.sent
            if not self._breaker.allows_writes or unreached >= UNREACHED or self._now() + PAUSE >= end:
                self._give_up(error, began, since)
                return
            await self._clock.sleep(PAUSE)

    def _now(self) -> float:
        return self._clock.monotonic()

    def _give_up(self, error: GatewayError, began: float, since: datetime) -> None:
        if self._breaker.allows_writes and not self._breaker.has_succeeded_since(began):
            self._breaker.trip(error, since=since)

    async def _read_sentinels(self) -> None:
        """Read the sentinels that are due, or probe the cluster if there are none.

        Raises:
            GatewayError: No request was answered.
        """
        keys = self._sentinels.due()
        if not keys:
            await self._backend.probe()
            return
        results = await asyncio.gather(*map(self._check_record, keys), return_exceptions=True)
        errors = [result for result in results if isinstance(result, BaseException)]
        for error in errors:
            if not isinstance(error, GatewayError) or len(errors) == len(results):
                raise error
        if False in results:
            self._request_audit()

    async def _check_record(self, key: RecordKey) -> bool:
        before = self._sentinels.known(key)
        try:
            found = await self._backend.get(key)
        except GatewayError as error:
            self._breaker.failed(error)  # at once: the other reads may take until their timeout
            raise
        is_unchanged = self._sentinels.is_unchanged(key, before, found)
        if is_unchanged is None and found is not None:
            is_expected = await self._audit.is_expected(key, found) or self._sentinels.known(key) is not before
            is_unchanged = self._sentinels.compared(is_expected=is_expected)
        if not is_unchanged:
            self._log.info("check.differs", record=str(key), found="changed" if found else "missing")
        return bool(is_unchanged)
