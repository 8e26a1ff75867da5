"""The metrics of the whole program, scraped over HTTP: every documented metric changes when it should."""

import asyncio
import base64
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from trustme import CA

from apisix_ingress.observability.metrics import NAMESPACE
from apisix_ingress.runtime.loop_lag import WatchedLoop
from tests.fakes.adminapi import AdminFault, FakeAdminApi
from tests.fakes.kube.apiserver import FakeApiServer, Fault
from tests.flow.program import BOUND, QUICK, SERVED, App, meta, put_world, route, running

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"
DOCUMENTED = set(
    re.findall(r"^\| `(\w+)` \| (?:counter|gauge|histogram|summary) \|", DOCUMENT.read_text(), re.MULTILINE)
)

Labels = Mapping[str, str]


class Scrape(dict[tuple[str, frozenset[tuple[str, str]]], float]):
    """The samples of one scrape."""

    def sum(self, name: str, labels: Labels) -> float | None:
        """Return the sum over the series with these labels, None if there is none."""
        wanted = set(labels.items())
        found = [value for (each, own), value in self.items() if each == f"{NAMESPACE}_{name}" and wanted <= own]
        return sum(found) if found else None


async def scrape(app: App) -> Scrape:
    url = f"http://127.0.0.1:{app.port}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as reply:
        text = await reply.text()
    # The parser would add `_total` to the names of 1.8's counters if they were declared as counters.
    bare = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    samples = (sample for family in text_string_to_metric_families(bare) for sample in family.samples)
    return Scrape({(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples})


class Moves(NamedTuple):
    """The expectation for one metric: it rises, or reaches a value."""

    name: str
    labels: Labels
    to: float | None = None
    """None: any increase."""

    def holds(self, before: Scrape, now: Scrape) -> bool:
        value = now.sum(self.name, self.labels)
        if self.to is not None:
            return value == self.to
        return value is not None and value > (before.sum(self.name, self.labels) or 0)


Act = Callable[[App], Awaitable[None] | None]


class Case(NamedTuple):
    """An event, and the metrics that change because of it."""

    act: Act
    moves: tuple[Moves, ...]


def rises(name: str, /, **labels: str) -> Moves:
    return Moves(name, labels)


def becomes(name: str, to: float, /, **labels: str) -> Moves:
    return Moves(name, labels, to)


# Events.


def nothing(app: App) -> None:
    """Time passes, the cluster is audited."""


def apply_a_route(app: App) -> None:
    app.server.put(route("more"))


def apply_a_route_that_is_rejected(app: App) -> None:
    app.server.faults.append(Fault("create", "events", status=403))
    app.gateway.faults.append(AdminFault("PUT", "routes/", status=400))
    app.server.put(route("bad"))


def edit_the_gateway(app: App) -> None:
    routes = app.gateway.records["routes"]
    del routes[min(routes)]


async def lose_the_gateway(app: App) -> None:
    app.gateway.faults.append(AdminFault(status=503))
    for number in range(12):
        app.server.put(route(f"late{number}"))


def lose_the_lease(app: App) -> None:
    lease = app.server.all("leases")[0]
    app.server.put({**lease, "spec": {**lease["spec"], "holderIdentity": "somebody-else"}})


def end_the_watches(app: App) -> None:
    app.server.faults.append(Fault("watch", status=500, times=20))
    for plural in app.server.kinds:
        app.server.order(plural, "cut")


def lose_objects_from_the_list(app: App) -> None:
    body = '{"metadata": {"resourceVersion": "9000"}, "items": []}'
    app.server.faults.append(Fault("list", "apisixroutes", status=200, body=body, times=1))
    app.server.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    app.server.compact()
    app.server.order("apisixroutes", "cut")


def slow_the_status_down(app: App) -> None:
    app.server.faults.append(Fault("patch", "apisixroutes", status=500, delay=0.5))
    for number in range(20):
        app.server.put(route(f"slow{number}"))


def serve_a_certificate(app: App) -> None:
    leaf = CA().issue_cert("web.example.org")
    pair = {"tls.crt": leaf.cert_chain_pems[0], "tls.key": leaf.private_key_pem}
    data = {name: base64.b64encode(pem.bytes()).decode() for name, pem in pair.items()}
    app.server.put({"apiVersion": "v1", "kind": "Secret", "metadata": meta("cert"), "data": data})
    spec = {"hosts": ["web.example.org"], "secret": {"name": "cert", "namespace": "default"}}
    app.server.put({"apiVersion": "apisix.apache.org/v2", "kind": "ApisixTls", "metadata": meta("web"), "spec": spec})


CASES = (
    Case(
        nothing,
        (
            becomes("is_leader", 1),
            becomes("records_desired", 30, kind="routes"),
            becomes("records_applied", 30, kind="routes"),
            rises("cache_sync_total", result="success"),
            rises("check_cluster_health_total", name="default"),
            rises("apisix_requests", op="read", resource="route"),
            rises("apisix_request_latencies_count", operation="list"),
            rises("admin_request_seconds_count", operation="list"),
            rises("watch_age_seconds", kind="Service"),
        ),
    ),
    Case(
        apply_a_route,
        (
            rises("events_total", operation="add", resource="route"),
            rises("queue_adds_total", queue="ApisixRoute"),
            rises("queue_wait_seconds_count", queue="ApisixRoute"),
            rises("queue_work_seconds_count", queue="ApisixRoute"),
            rises("sync_operation_total", resource="route", result="success"),
            becomes("records_desired", 31, kind="routes"),
            becomes("records_applied", 31, kind="routes"),
            rises("apisix_requests", op="write", resource="route"),
            rises("apisix_status_codes", resource="route", status_code="201"),
            rises("record_writes_total", cluster="default", kind="routes", operation="put", outcome="ok"),
            rises("sync_lag_seconds_count", cluster="default"),
            rises("status_writes_total", kind="ApisixRoute", outcome="ok"),
        ),
    ),
    Case(
        apply_a_route_that_is_rejected,
        (
            rises("apisix_status_codes", resource="route", status_code="400"),
            becomes("records_quarantined", 1, kind="routes"),
            rises("record_writes_total", kind="routes", outcome="GatewayRejected"),
            rises("kube_events_dropped_total"),
        ),
    ),
    Case(edit_the_gateway, (rises("drift_repaired_total", cluster="default"),)),
    Case(
        lose_the_gateway,
        (
            becomes("breaker_open", 1, cluster="default"),
            rises("outage_start_timestamp_seconds", cluster="default"),
            rises("sync_pending_age_seconds", cluster="default"),
            rises("sync_backlog", cluster="default"),
        ),
    ),
    Case(lose_the_lease, (becomes("is_leader", 0),)),
    Case(
        end_the_watches,
        (rises("watch_failures_total", kind="Service", reason="unavailable"),),
    ),
    Case(
        lose_objects_from_the_list,
        (becomes("deletes_held", 30, kind="ApisixRoute"), rises("list_seconds_count", kind="ApisixRoute")),
    ),
    Case(
        slow_the_status_down,
        (
            rises("queue_depth", queue="status"),
            rises("queue_oldest_age_seconds", queue="status"),
            rises("queue_retries_total", queue="status"),
            rises("status_writes_total", kind="ApisixRoute", outcome="KubeUnavailable"),
        ),
    ),
    Case(
        serve_a_certificate,
        (rises("certificate_expiry_timestamp_seconds", secret_namespace="default", secret_name="cert"),),
    ),
)
HELD = becomes("mass_delete_held", 1, cluster="default")
LAG, STALL = "event_loop_lag_seconds", 0.5


@pytest.fixture(autouse=True)
def quick_reflectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apisix_ingress.kube.informer.reflector.ReflectorOptions", partial(QUICK, hold_seconds=3.0))


async def until_moved(app: App, before: Scrape, moves: tuple[Moves, ...]) -> None:
    """Scrape until every metric has changed; some change back soon."""
    waiting, now = list(moves), before
    try:
        async with asyncio.timeout(BOUND):
            while waiting:
                await asyncio.sleep(0.01)
                now = await scrape(app)
                waiting = [move for move in waiting if not move.holds(before, now)]
    except TimeoutError:
        pytest.fail(f"never moved: {[(*move, now.sum(move.name, move.labels)) for move in waiting]}")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.act.__name__)
async def test_documented_metrics_change(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path, case: Case
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
        before = await scrape(app)
        done = case.act(app)
        if done is not None:
            await done
        await until_moved(app, before, case.moves)
        server.faults.clear()
        gateway.faults.clear()


async def test_a_held_back_sweep_is_in_the_metrics(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    names = put_world(server)
    async with running(server, gateway, tmp_path) as app:
        await app.until_served(*names)
    for name in names:
        server.remove("apisixroutes", name)
    async with running(server, gateway, tmp_path) as app:
        await until_moved(app, Scrape(), (HELD,))


def block_the_loop() -> None:
    time.sleep(STALL)


def test_a_blocked_loop_is_in_the_metrics(tmp_path: Path) -> None:
    async def block() -> None:
        async with FakeApiServer(SERVED.values()) as server, FakeAdminApi() as gateway:
            put_world(server)
            async with running(server, gateway, tmp_path) as app:
                await scrape(app)
                block_the_loop()
                assert ((await scrape(app)).sum(LAG, {}) or 0.0) >= STALL

    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        runner.run(block())


async def scrape_without(app: App, name: str, labels: Labels) -> Scrape:
    """Scrape until there is no such series."""
    async with asyncio.timeout(BOUND):
        while (now := await scrape(app)).sum(name, labels) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return now


async def test_an_unused_certificate_is_not_in_the_metrics(
    server: FakeApiServer, gateway: FakeAdminApi, tmp_path: Path
) -> None:
    put_world(server)
    name, labels = "certificate_expiry_timestamp_seconds", {"secret_name": "cert"}
    async with running(server, gateway, tmp_path) as app:
        serve_a_certificate(app)
        await until_moved(app, Scrape(), (rises(name, **labels),))
        server.remove("apisixtlses", "web")
        ended = await scrape_without(app, name, labels)
        assert ended.sum("records_desired", {"kind": "ssls"}) == 0


def test_every_documented_metric_has_a_test() -> None:
    reported = {move.name.removesuffix("_count") for case in CASES for move in case.moves} | {HELD.name, LAG}
    # The webhook is optional, and has its own tests.
    assert reported == {name for name in DOCUMENTED if not name.startswith("webhook_")}
