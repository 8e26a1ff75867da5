"""Rate limiters for failed keys: per key, an overall token bucket, and their combination.

A limiter returns a delay; it never sleeps and does not know a queue. Randomness is injected, so that a seed makes a
run reproducible.
"""

import random
from collections.abc import Hashable
from typing import Generic, NamedTuple, Protocol, TypeVar

from apisix_ingress.runtime.clock import Clock

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)

# 2**40 times any reasonable base exceeds any reasonable cap; more doublings would overflow a float.
_MAX_DOUBLINGS = 40


class Backoff(NamedTuple):
    """`base` seconds, doubled with each failure, up to `cap`; the share `jitter` (0 to 1) of it is random.

    The delay is between ``(1 - jitter)`` and 1 times its nominal value. So it never exceeds `cap`, and what failed
    together is retried at different times.
    """

    base: float
    cap: float
    jitter: float = 0.0

    def delay(self, failures: int, rng: random.Random) -> float:
        """Return the seconds to wait after a failure that followed this many others."""
        return min(self.cap, self.base * 2.0 ** min(failures, _MAX_DOUBLINGS)) * (1 - self.jitter * rng.random())


class RateLimiter(Protocol[K_contra]):
    """Returns how long a key has to wait (client-go ``TypedRateLimiter``)."""

    def when(self, key: K_contra) -> float:
        """Count one more failure of `key` and return its delay in seconds."""

    def forget(self, key: K_contra) -> None:
        """Forget the failures of `key` after a success or when it no longer exists. Idempotent; frees memory."""

    def failures(self, key: K_contra) -> int:
        """Return how often `key` failed since `forget` was last called for it."""


class _Counting(Generic[K]):
    """Failures per key; a key without failures takes no memory."""

    def __init__(self) -> None:
        self._failures: dict[K, int] = {}

    def forget(self, key: K) -> None:
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def _count(self, key: K) -> int:
        """Count one more failure; return how many there were before."""
        before = self._failures.get(key, 0)
        self._failures[key] = before + 1
        return before


class ExponentialBackoff(_Counting[K]):
    """A `Backoff` for each key."""

    def __init__(self, base: float, cap: float, jitter: float = 0.0, *, rng: random.Random | None = None) -> None:
        if not 0 < base <= cap:
            raise ValueError(f"base must be above 0 and at most cap, got base={base} cap={cap}")
        if not 0 <= jitter <= 1:
            raise ValueError(f"jitter must lie between 0 and 1, got {jitter}")
        super().__init__()
        self._backoff = Backoff(base, cap, jitter)
        self._rng = rng or random.Random()

    def when(self, key: K) -> float:
        """Count one more failure of `key` and return its delay in seconds."""
        return self._backoff.delay(self._count(key), self._rng)


class FastSlow(_Counting[K]):
    """`fast_delay` seconds for the first `fast_tries` failures of a key, then `slow_delay` seconds."""

    def __init__(self, fast_delay: float, slow_delay: float, fast_tries: int) -> None:
        super().__init__()
        self._fast_delay = fast_delay
        self._slow_delay = slow_delay
        self._fast_tries = fast_tries

    def when(self, key: K) -> float:
        """Count one more failure of `key` and return its delay in seconds."""
        return self._fast_delay if self._count(key) < self._fast_tries else self._slow_delay


class Bucket(Generic[K]):
    """A token bucket for all keys: `qps` per second on average, `burst` at once.

    Each call takes a token, even one that does not exist yet: the n-th call beyond the burst returns n / `qps` seconds.
    It does not distinguish keys, so it counts no failures.
    """

    def __init__(self, qps: float, burst: int, *, clock: Clock) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"qps must be above 0 and burst at least 1, got qps={qps} burst={burst}")
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._filled_at = clock.monotonic()

    def when(self, key: K) -> float:
        """Take a token and return the seconds until it exists."""
        now = self._clock.monotonic()
        self._tokens = min(float(self._burst), self._tokens + (now - self._filled_at) * self._qps) - 1
        self._filled_at = now
        return max(0.0, -self._tokens / self._qps)

    def forget(self, key: K) -> None:
        """Do nothing: a spent token stays spent."""

    def failures(self, key: K) -> int:
        """Return 0: a bucket does not distinguish keys."""
        return 0


class MaxOf(Generic[K]):
    """The longest delay of all `limiters`; each of them counts every failure."""

    def __init__(self, *limiters: RateLimiter[K]) -> None:
        if not limiters:
            raise ValueError("at least one limiter is needed")
        self._limiters = limiters

    def when(self, key: K) -> float:
        """Count one more failure of `key` in all limiters and return the longest delay in seconds."""
        return max([limiter.when(key) for limiter in self._limiters])

    def forget(self, key: K) -> None:
        """Forget `key` in all limiters."""
        for limiter in self._limiters:
            limiter.forget(key)

    def failures(self, key: K) -> int:
        """Return the highest count of any limiter."""
        return max(limiter.failures(key) for limiter in self._limiters)
