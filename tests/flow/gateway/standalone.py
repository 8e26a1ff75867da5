"""Standalone development gateways, and the engine that writes to them over real HTTP."""

import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from functools import partial

from pydantic import SecretStr

from apisix_ingress.gateway.adminapi.admin_key import SETTINGS
from apisix_ingress.gateway.adminapi.client import AdminKey
from apisix_ingress.gateway.standalone.admin import StandaloneAdmin
from apisix_ingress.gateway.standalone.endpoint import Endpoint
from apisix_ingress.gateway.standalone.fleet import Fleet, Resolve
from apisix_ingress.gateway.standalone.group import StandaloneGroup
from apisix_ingress.gateway.standalone.resolver import urls_of_gateways
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.runtime.clock import MonotonicClock
from e2e.devgateway.process import DevGateway
from tests.fakes.gateway import make_record
from tests.flow.gateway import engine

UPSTREAM = make_record(
    RecordKey("upstreams", "u1"), type="roundrobin", nodes=[{"host": "10.0.0.1", "port": 80, "weight": 1}]
)
ROUTES = [make_record(RecordKey("routes", f"r{number}"), uri=f"/{number}", upstream_id="u1") for number in range(20)]
TIMEOUT = 5.0

leading = partial(engine.leading, concurrency=100)
"""The engine, with enough workers for every record of a test to be in one document."""


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
