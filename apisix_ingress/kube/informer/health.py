"""How a reflector stands with the API server: when it last heard of it, what is wrong, and how long to wait.

What a failure means, and what is done about it, is decided in `reflector`.
"""

from __future__ import annotations

import random

import structlog

from apisix_ingress.kube.informer.watch_events import ReflectorObserver, ReflectorOptions
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff

log = structlog.get_logger()

_COSTLY = frozenset(("gone", "rolled_back", "refused"))
"""Failures after which a kind is listed anew."""


class WatchHealth:
    """The standing of one reflector.

    Args:
        kind: Of the objects, for logs and the observer.
        clock: For ages.
        rng: For jitter.
        options: How long to wait after failures.
        observer: Told of each failure.
    """

    def __init__(
        self, kind: str, *, clock: Clock, rng: random.Random, options: ReflectorOptions, observer: ReflectorObserver
    ) -> None:
        self.problem = ""
        """Why the store is not kept up to date right now, for people; empty: it is."""
        self._kind = kind
        self._clock = clock
        self._observer = observer
        self._backoff: ExponentialBackoff[str] = ExponentialBackoff(
            options.backoff_base, options.backoff_cap, 0.5, rng=rng
        )
        self._failing: set[str] = set()
        self._heard_at = clock.monotonic()

    def heard(self) -> None:
        """Note that the API server said something about the kind."""
        self._heard_at = self._clock.monotonic()

    def age(self) -> float:
        """Return the seconds since the API server last said anything about the kind."""
        return self._clock.monotonic() - self._heard_at

    def answered(self) -> None:
        """Note that the API server answers: nothing is wrong any more."""
        self.heard()
        if self.problem:
            log.info("reflector.recovered", kind=self._kind)
            self.problem = ""

    def fail(self, reason: str, problem: str, *, told: bool = False) -> float:
        """Note a failure, log it if it is news that nobody told yet, and return the seconds to wait."""
        if problem != self.problem:
            line = log.debug if told else log.warning
            line("reflector.failed", kind=self._kind, reason=reason, problem=problem)
        self.problem = problem
        self._observer.failed(self._kind, reason)
        self._failing.add(reason)
        # Of its own for each reason: after an outage, a first 410 is listed for at once.
        return self._backoff.when(reason)

    def forget_failures(self, *, costly: bool = True) -> None:
        """Let the next failure wait as if it were the first; without `costly` not one that costs a list.

        A watch that breaks after a word or two is no reason to list as often as it breaks.
        """
        forgotten = self._failing if costly else self._failing - _COSTLY
        for reason in forgotten:
            self._backoff.forget(reason)
        self._failing = self._failing - forgotten
