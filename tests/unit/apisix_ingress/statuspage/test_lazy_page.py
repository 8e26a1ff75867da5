"""The page is loaded with the first request, and once."""

from types import SimpleNamespace
from typing import Any

import aiohttp

from apisix_ingress.observability.http_server import HttpServer, Readiness
from apisix_ingress.observability.metrics import Metrics
from apisix_ingress.statuspage.lazy_page import LazyStatusPage
from tests.unit.apisix_ingress.statuspage.harness import make_harness


async def test_page_is_loaded_with_the_first_request() -> None:
    harness = make_harness()
    facts, controller = harness.facts, harness.controller
    state: Any = SimpleNamespace(
        world=facts.world,
        options=facts.options,
        clusters=SimpleNamespace(syncs=harness.clusters),
        clock=facts.clock,
        identity=facts.identity,
        **vars(controller),
    )
    page = LazyStatusPage(state, harness.journal, "local")
    server = HttpServer("127.0.0.1", 0, readiness=Readiness(), metrics=Metrics(pod="p", namespace="n"), pages=page)
    async with server, aiohttp.ClientSession() as session:
        await server.serve()
        loaded = [page.is_loaded]
        for path, status in (("/status", 200), ("/", 200), ("/statusx", 404), ("/status/nothing", 404)):
            async with session.get(f"http://127.0.0.1:{server.port}{path}") as reply:
                assert reply.status == status, path
        loaded.append(page.is_loaded)
        async with session.post(f"http://127.0.0.1:{server.port}/status") as reply:
            assert reply.status == 405
    assert loaded == [False, True]
