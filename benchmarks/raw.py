"""The throughput of the controller's Admin API client when it does nothing but write."""

import asyncio
import time

from pydantic import SecretStr

from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import owner_labels, short_id
from apisix_ingress.model.records import Record


def upstream(number: int) -> Record:
    """Return an upstream like the upstreams of the cold sync."""
    name = f"raw_{number}_80"
    body = {
        "id": short_id(name),
        "name": name,
        "type": "roundrobin",
        "labels": owner_labels("apisix-ingress"),
        "nodes": [{"host": f"10.0.{number // 250}.{number % 250}", "port": 8080, "weight": 100}],
    }
    return Record(RecordKey("upstreams", short_id(name)), name, body)


async def client_rate(url: str, key: str, *, concurrency: int, writes: int) -> float:
    """Return the writes per second with a number of requests in flight."""
    admin_key = AdminKey(lambda: SecretStr(key))
    backend = AdminClient(url, admin_key, controller="bench", timeout=30.0, concurrency=concurrency)
    try:
        return await _rate(backend, concurrency, writes)
    finally:
        await backend.aclose()


async def _rate(backend: AdminClient, concurrency: int, writes: int) -> float:
    records = iter([upstream(number) for number in range(writes)])

    async def write() -> None:
        for record in records:
            await backend.put(record)

    await _open(backend, concurrency)
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(concurrency):
            group.create_task(write())
    return writes / (time.perf_counter() - began)


async def _open(backend: AdminClient, connections: int) -> None:
    """Open the connections before the measurement begins."""
    async with asyncio.TaskGroup() as group:
        for number in range(connections):
            group.create_task(backend.put(upstream(number)))
