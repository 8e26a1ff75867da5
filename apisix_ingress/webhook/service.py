"""The webhook as a whole: server, checks, and a schema cache for each gateway cluster."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.settings import WebhookSettings, split_address
from apisix_ingress.state.world import World
from apisix_ingress.webhook.admission import Limits, Observer, Result
from apisix_ingress.webhook.checks.all_checks import CHECKED, Checks
from apisix_ingress.webhook.review import Review, Verdict
from apisix_ingress.webhook.schemas.cache import Read, SchemaCache
from apisix_ingress.webhook.schemas.plugin_configs import Books
from apisix_ingress.webhook.server import WebhookServer
from apisix_ingress.webhook.server_certificate import ServerCertificate
from translation.core.options import Options

NOT_READY = Verdict(warnings=("the object was not checked: the controller is starting; it checks the object later",))


class Webhook:
    """Answers API servers; use ``async with``, and `run` while it is open.

    Args:
        address: Host (empty: every interface) and port to listen on.
        certificate: The server certificate.
        world: Stores and records of the controller; only read.
        options: The settings of translations.
        gateways: Gateway cluster → function that reads from its Admin API.
        ready: Whether the stores are complete.
        observer: Receives every request.
        clock: Provides the time.
        rng: Spreads the requests of several replicas.
        limits: The limits of the server.
        shows_others: Whether clients may learn about problems in other objects.
    """

    def __init__(
        self,
        address: tuple[str, int],
        certificate: ServerCertificate,
        *,
        world: World,
        options: Options,
        gateways: Mapping[str, Read],
        ready: Callable[[], bool],
        observer: Observer,
        clock: Clock,
        rng: random.Random,
        limits: Limits | None = None,
        shows_others: bool = True,
    ) -> None:
        self._caches = {name: SchemaCache(name, read, clock=clock, rng=rng) for name, read in gateways.items()}
        self._ready = ready
        self._checks = Checks(
            world,
            options,
            self._books,
            clock.now,
            lambda cluster: self._caches[cluster].request_refresh(),
            shows_others,
        )
        self._server = WebhookServer(
            *address, certificate=certificate, judge=self.judge, observer=observer, clock=clock, limits=limits
        )

    async def __aenter__(self) -> Self:
        """Listen and serve.

        Raises:
            ConfigError: The address cannot be used.
        """
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop serving."""
        await self._server.__aexit__(kind, error, trace)

    @property
    def port(self) -> int:
        """The port of the server."""
        return self._server.port

    async def run(self) -> None:
        """Keep schemas and certificate up to date, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._server.run(), name="webhook-server")
            for name, cache in self._caches.items():
                group.create_task(cache.run(), name=f"schemas-{name}")

    def judge(self, review: Review) -> Verdict:
        """Answer a request."""
        return self._checks.verdict(review) if self._ready() else NOT_READY

    def schema_ages(self) -> dict[str, float]:
        """Return the age of each cluster's schemas in seconds; a cluster that never returned any is absent."""
        return {name: cache.age for name, cache in self._caches.items() if cache.age is not None}

    def _books(self) -> Books:
        return {name: cache.book for name, cache in self._caches.items()}


class ReviewMetrics:
    """Counts requests. Unchecked kinds share one label: an API server may be configured to send any kind."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def answered(self, kind: str, result: Result, seconds: float) -> None:
        """Count a request."""
        self._metrics.reviews.at(kind if kind in CHECKED else "other", result).inc()
        self._metrics.review_seconds.at(result).observe(seconds)


async def open_webhook(
    settings: WebhookSettings,
    world: World,
    options: Options,
    gateways: Mapping[str, Read],
    *,
    ready: Callable[[], bool],
    metrics: Metrics,
    clock: Clock,
    rng: random.Random,
    held: AsyncExitStack,
) -> Webhook:
    """Return the configured webhook; it listens, and is closed by `held`.

    Raises:
        ConfigError: The address or the certificate is invalid.
    """
    webhook = Webhook(
        split_address(settings.listen),
        ServerCertificate(settings.cert_file, settings.key_file, clock, settings.client_ca_file),
        world=world,
        options=options,
        gateways=gateways,
        ready=ready,
        observer=ReviewMetrics(metrics),
        clock=clock,
        rng=rng,
        # If references need grants, not every client of the port may learn about other namespaces.
        shows_others=bool(settings.client_ca_file) or options.cross_namespace == "allow",
    )

    def scrape() -> None:
        for cluster, age in webhook.schema_ages().items():
            metrics.schema_age.at(cluster).set(age)

    metrics.on_scrape(scrape)
    return await held.enter_async_context(webhook)
