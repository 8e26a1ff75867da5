"""Standalone development gateways, and the engine that writes to them over real HTTP."""

import asyncio
import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Sequence
from functools import partial

from pydantic import SecretStr

from apisix_ingress.gateway.adminapi.admin_key import SETTINGS
from apisix_ingress.gateway.adminapi.client import AdminKey
from apisix_ingress.gateway.backend import Backend
from apisix_ingress.gateway.standalone.admin import StandaloneAdmin
from apisix_ingress.gateway.standalone.endpoint import Endpoint
from apisix_ingress.gateway.standalone.fleet import Fleet, Resolve
from apisix_ingress.gateway.standalone.group import StandaloneGroup
from apisix_ingress.gateway.standalone.resolver import urls_of_gateways
from apisix_ingress.gateway.sync.cluster_sync import ClusterSync
from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.term import Term
from e2e.devgateway.process import DevGateway
from tests.fakes.gateway import FakeWanted, make_record
from tests.waiting import until

UPSTREAM = make_record(
    RecordKey("upstreams", "u1"), type="roundrobin", nodes=[{"host": "10.0.0.1", "port": 80, "weight": 1}]
)
ROUTES = [make_record(RecordKey("routes", f"r{number}"), uri=f"/{number}", upstream_id="u1") for number in range(20)]
TIMEOUT = 5.0


def document(gateway: DevGateway) -> JsonObject:
    """Return what a gateway has."""
    request = urllib.request.Request(f"{gateway.admin_url}/configs", headers={"X-API-KEY": gateway.admin_key})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        found: JsonObject = json.load(response)
    return found


def ids(gateway: DevGateway, kind: str) -> set[str]:
    return {item["id"] for item in document(gateway).get(kind, ())}


@contextlib.asynccontextmanager
async def connected(
    *gateways: DevGateway, resolve: Resolve | None = None, key: AdminKey | None = None
) -> AsyncIterator[StandaloneGroup]:
    clock, key = MonotonicClock(), key or AdminKey(lambda: SecretStr(gateways[0].admin_key))
    admin = StandaloneAdmin(gateways[0].admin_url, key, controller="apisix-ingress", timeout=TIMEOUT / 2)

    def connect(url: str) -> Endpoint:
        return Endpoint(admin.elsewhere(url, key, SETTINGS))

    resolve = resolve or partial(urls_of_gateways, [gateway.admin_url for gateway in gateways])
    fleet = Fleet("c1", connect, resolve, seconds=TIMEOUT / 2, clock=clock)
    try:
        yield StandaloneGroup("c1", fleet, controller="apisix-ingress", timeout=TIMEOUT, clock=clock)
    finally:
        await admin.aclose()


@contextlib.asynccontextmanager
async def leading(backend: Backend, wanted: FakeWanted) -> AsyncIterator[ClusterSync]:
    clock, ready = MonotonicClock(), asyncio.Event()
    sync = ClusterSync(SyncConfig("c1", wanted, clock=clock, concurrency=100), backend)
    ready.set()
    task = asyncio.create_task(sync.run(Term(clock, holder="test"), ready))
    try:
        yield sync
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until_applied(sync: ClusterSync, records: Sequence[Record]) -> None:
    def are_applied() -> bool:
        return sync.idle() and all(sync.record_state(record.key).kind == "applied" for record in records)

    await until(are_applied, "the records", state=sync.counts)


def put(gateway: DevGateway, body: JsonObject) -> int:
    """Write a document as another client; return the status."""
    kept = {name: value for name, value in body.items() if not name.startswith("X-")}
    request = urllib.request.Request(
        f"{gateway.admin_url}/configs",
        json.dumps(kept).encode(),
        {"X-API-KEY": gateway.admin_key, "X-Digest": str(hash(json.dumps(body)))},
        method="PUT",
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
