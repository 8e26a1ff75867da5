"""Measures memory and translation time for growing numbers of routes: in one process, without network.

    python -m benchmarks.scale 1000 10000 100000

Each size runs in its own process. A route consists of an ApisixRoute with one backend, its Service, and its
EndpointSlice with two addresses; a namespace has 100 routes. Each additional gateway cluster stores a digest of each
record, the records it references, and its name: `--clusters` measures that.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator

from apisix_ingress.gateway.adminapi.admin_key import SETTINGS
from apisix_ingress.gateway.adminapi.responses import found_of, records_of
from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.records.table import RecordTable
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKind
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.state.world import World
from providers.core.deps import ChangeSink
from providers.core.registry import Registry, resources
from translation.core.options import Options

CHANGES = 200


def objects(count: int) -> Iterator[JsonObject]:
    """Yield the objects of a number of routes, as the API server lists them."""
    for number in range(count):
        space, name = f"ns-{number // 100}", f"bench-{number}"
        if number % 100 == 0:
            yield _object("v1", "Namespace", "", space, {})
        ports = [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]
        yield _object("v1", "Service", space, name, {"spec": {"clusterIP": "10.96.0.1", "ports": ports}})
        yield slice_of(number, space, name, 0)
        match = {"hosts": [f"{name}.example.org"], "paths": ["/*"]}
        backends = [{"serviceName": name, "servicePort": 80}]
        http = [{"name": "all", "match": match, "backends": backends}]
        yield _object("apisix.apache.org/v2", "ApisixRoute", space, name, {"spec": {"http": http}})


def slice_of(number: int, space: str, name: str, turn: int) -> JsonObject:
    """Return the endpoints of a route; each turn changes one of them."""
    first, second = (f"10.{place % 256}.{number // 250 % 256}.{number % 250 + 1}" for place in (turn, 255))
    body = {
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in (first, second)],
    }
    labels = {"kubernetes.io/service-name": name}
    return _object("discovery.k8s.io/v1", "EndpointSlice", space, f"{name}-1", body, labels)


def _object(
    version: str, kind: str, space: str, name: str, body: JsonObject, labels: dict[str, str] | None = None
) -> JsonObject:
    meta = {
        "name": name,
        "namespace": space,
        "uid": f"{kind}-{space}-{name}",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": labels or {},
    }
    return {"apiVersion": version, "kind": kind, "metadata": meta, **body}


def measure(count: int, clusters: int) -> dict[str, float]:
    """Fill a world, translate it, hold the records for a number of clusters, and change endpoints one by one."""
    raw = list(objects(count))
    gc.collect()
    gc.freeze()
    began, held = time.process_time(), _resident()
    world = World(resources(Options()))
    registry = Registry(world, Options(), ChangeSink(), clock=MonotonicClock(), rng=random.Random(0))
    for item in raw:
        world.stores[item["kind"]].set(RESOURCES[item["kind"]].decode(item))
    decoded = time.process_time()
    registry.settle()
    translated = time.process_time()
    wanted = list(world.desired.keys())
    records = len(wanted)
    for key in wanted:  # once for all clusters
        record = world.desired.of_owner(world.desired.owners_of(key)[0])[key]
        _ = record.payload, record.digest
    encoded, after = time.process_time(), _resident()
    audited = _audit(world)
    tables = [_table_of(world) for _ in range(clusters)]
    of_clusters = _resident() - after
    changed = time.process_time()
    for number in range(0, count, max(1, count // CHANGES)):
        item = slice_of(number, f"ns-{number // 100}", f"bench-{number}", 1)
        world.stores["EndpointSlice"].set(RESOURCES["EndpointSlice"].decode(item))
        registry.settle()
    changes = min(CHANGES, count)
    return {
        "routes": count,
        "records": records,
        "decode_us_per_object": (decoded - began) / len(raw) * 1e6,
        "translate_us_per_record": (translated - decoded) / records * 1e6,
        "encode_us_per_record": (encoded - translated) / records * 1e6,
        "audit_us_per_record": audited / records * 1e6,
        "cpu_s": encoded - began,
        "mib": (after - held) / 2**20,
        "mib_per_cluster": of_clusters / 2**20 / len(tables) if tables else 0.0,
        "change_us": (time.process_time() - changed) / changes * 1e6,
    }


def _audit(world: World) -> float:
    """Return the CPU seconds needed to compare a gateway's routes and upstreams with the desired records."""
    pages: dict[RecordKind, list[bytes]] = {}
    for key in list(world.desired.keys()):
        record = world.desired.of_owner(world.desired.owners_of(key)[0])[key]
        path = f"/apisix/{key.kind}/{key.id}".encode()
        pages.setdefault(key.kind, []).append(b'{"key":"%s","value":%s}' % (path, record.payload))
    began = time.process_time()
    for kind, items in pages.items():
        for _, body, *_ in filter(None, records_of(kind, b'{"list":[%s]}' % b",".join(items), SETTINGS)):
            found_of(kind, body)
    return time.process_time() - began


def _table_of(world: World) -> RecordTable:
    table = RecordTable()
    for key in list(world.desired.keys()):
        record = world.desired.of_owner(world.desired.owners_of(key)[0])[key]
        table.found(table.slot(key), ObservedRecord(record.digest, record.refs, record.name))
    return table


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def main() -> int:
    """Measure each size in its own process and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("sizes", type=int, nargs="+")
    parser.add_argument("--clusters", type=int, default=2)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.sizes[0], arguments.clusters)))
        return 0
    for number, size in enumerate(arguments.sizes):
        command = [sys.executable, "-m", "benchmarks.scale", "--one", "--clusters", str(arguments.clusters), str(size)]
        got = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        if number == 0:
            print("| " + " | ".join(got) + " |\n" + "|---" * len(got) + "|")
        print("| " + " | ".join(f"{value:,.0f}" if value >= 10 else f"{value:.2f}" for value in got.values()) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
