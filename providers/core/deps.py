"""The dependencies of providers: state, settings, queues of other providers, and the receiver of their results."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from apisix_ingress.model.admin_address import AdminAddress
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.records import Former
from apisix_ingress.model.target import Target
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.fair_rests import FairRests
from apisix_ingress.runtime.queue.rate_limiters import ExponentialBackoff, FastSlow, MaxOf, RateLimiter
from apisix_ingress.runtime.queue.workqueue import QueueObserver
from apisix_ingress.state.world import World
from providers.core.offload import Offloader
from translation.core.options import Options

K = TypeVar("K", bound=Hashable)


class ChangeSink:
    """Receives the results of translations; this base class discards them."""

    def mark_dirty(self, keys: Collection[RecordKey], *, urgent: bool, former: Former, since: float) -> None:
        """Handle a change of desired records.

        `former` holds the previous records of the owner, `since` is the monotonic time when the change was seen.
        """

    def reported(self, owner: ObjectKey) -> None:
        """Handle a new report on an owner."""

    def cluster_moved(self, name: str, address: AdminAddress | None) -> None:
        """Handle a new Admin API address of a cluster; None restores the address from the settings."""

    def target_changed(self, name: str, target: Target | None) -> None:
        """Handle the gateways of a GatewayProxy; None: it describes none, or nothing refers to it."""


class Enqueuer(Protocol):
    """Queues other owners at their providers."""

    def enqueue(self, owner: ObjectKey, *, urgent: bool = False, since: float | None = None) -> None:
        """Queue an owner at the provider of its kind; `since` is when the change was seen, if not now."""

    @property
    def live(self) -> bool:
        """Whether the first pass over all objects is done."""

    @property
    def may_rest(self) -> bool:
        """Whether namespaces rest after long work; false while a caller waits for all translations."""


@dataclass(frozen=True, slots=True)
class ProviderDeps:
    """Dependencies that are injected into every provider."""

    world: World
    options: Options
    sink: ChangeSink
    router: Enqueuer
    clock: Clock
    rests: FairRests
    rng: random.Random
    observer: Callable[[str], QueueObserver | None]
    """Kind → the observer of its queue."""
    offloader: Offloader
    outcome: Callable[[str, bool], None]
    """Called with the kind of each translated object, and whether it has no problems."""


def limiter(rng: random.Random) -> RateLimiter[K]:
    """Return the rate limiter of a provider queue: fast retries first, then slow ones with jitter (seconds)."""
    return MaxOf(FastSlow(0.1, 5.0, 5), ExponentialBackoff(0.05, 60.0, 0.2, rng=rng))
