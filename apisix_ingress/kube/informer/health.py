"""The health of a reflector's connection: time of the last response, the current problem, and backoff.

`reflector` decides what a failure means and what to do about it.
"""

from __future__ import annotations

import random

import structlog

from apisix_ingress.kube.informer.watch_events import ReflectorObserver, ReflectorOptions
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff

log = structlog.get_logger()

_RELIST_REASONS = frozenset(("gone", "rolled_back", "refused"))
"""Failures that cause a new list."""


class WatchHealth:
    """The health of one reflector.

    Args:
        kind: Of the objects, for logs and the observer.
        clock: For ages.
        rng: For jitter.
        options: Backoff times.
        observer: Called for each failure.
    """

    def __init__(
        self, kind: str, *, clock: Clock, rng: random.Random, options: ReflectorOptions, observer: ReflectorObserver
    ) -> None:
        self.problem = ""
        """Why the store is not up to date, as text; empty if it is."""
        self._kind = kind
        self._clock = clock
        self._observer = observer
        self._backoff: ExponentialBackoff[str] = ExponentialBackoff(
            options.backoff_base, options.backoff_cap, 0.5, rng=rng
        )
        self._failing: set[str] = set()
        self._heard_at = clock.monotonic()

    def heard(self) -> None:
        """Record that the API server sent something about the kind."""
        self._heard_at = self._clock.monotonic()

    def age(self) -> float:
        """Return the seconds since the API server last sent anything about the kind."""
        return self._clock.monotonic() - self._heard_at

    def answered(self) -> None:
        """Record that the API server responds, which ends any problem."""
        self.heard()
        if self.problem:
            log.info("reflector.recovered", kind=self._kind)
            self.problem = ""

    def fail(self, reason: str, problem: str, *, already_logged: bool = False) -> float:
        """Record a failure, log it if it is new, and return the seconds to wait."""
        if problem != self.problem:
            line = log.debug if already_logged else log.warning
            line("reflector.failed", kind=self._kind, reason=reason, problem=problem)
        self.problem = problem
        self._observer.failed(self._kind, reason)
        self._failing.add(reason)
        # Each reason has its own backoff, so the first 410 after an outage causes a list immediately.
        return self._backoff.when(reason)

    def forget_failures(self, *, relists: bool = True) -> None:
        """Reset the backoff; without `relists`, keep it for failures that cause a new list.

        Otherwise a watch that breaks after an event or two would cause a list each time it breaks.
        """
        forgotten = self._failing if relists else self._failing - _RELIST_REASONS
        for reason in forgotten:
            self._backoff.forget(reason)
        self._failing = self._failing - forgotten
