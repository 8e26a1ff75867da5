"""`make bench`: raw write rate, cold sync, endpoint changes, edits and restart, one table in one run."""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr
from rich.console import Console
from rich.table import Table

import crds
from apisix_ingress.gateway.admin import AdminBackend, AdminKey
from benchmarks.gateway import CountingGateway
from benchmarks.objects import namespace_of, seed, slice_manifest
from benchmarks.raw import write_rate
from e2e.cluster.client import KubeClient, wait_until
from e2e.cluster.local import LocalCluster
from e2e.controller import Controller

RAW_WRITES = 4000
RECORDS_PER_ROUTE = 2
COLD_TIMEOUT = 300.0


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    figures: str
    note: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--sizes", default="1000,5000", help="numbers of routes, ascending")
    parser.add_argument("--changes", type=int, default=200, help="endpoint changes and edits to measure")
    parser.add_argument("--write-latency", default="1ms", help="added to each write by the counting gateway")
    parser.add_argument("--json", type=Path, help="write the rows to this file as well")
    arguments = parser.parse_args(argv)
    sizes = [int(size) for size in arguments.sizes.split(",")]
    with tempfile.TemporaryDirectory(prefix="apisix-ingress-bench-") as folder:
        rows = list(_measure(Path(folder), sizes, arguments.changes, arguments.write_latency))
    _print(rows, arguments.write_latency)
    if arguments.json:
        arguments.json.write_text(json.dumps([vars_of(row) for row in rows], indent=2))
    return 0


def vars_of(row: Row) -> dict[str, str]:
    """Return a row as JSON."""
    return {"what": row.what, "figures": row.figures, "note": row.note}


def _measure(root: Path, sizes: Sequence[int], changes: int, latency: str) -> Iterator[Row]:
    ceiling = 0.0
    with _gateway(root / "raw", latency) as gateway:
        for concurrency in (1, 16, 64):
            rate = asyncio.run(_raw(gateway, concurrency))
            ceiling = rate if concurrency == 16 else ceiling
            yield Row(f"raw writes, {concurrency} in flight", f"{rate:,.0f}/s")
    with LocalCluster() as cluster, cluster.client() as api:
        api.apply(crds.manifests())
        seeded = 0
        for size in sizes:
            say(f"making the objects of {size:,} routes ...")
            seed(api, seeded, size)
            seeded = size
            yield from _with_routes(root / str(size), cluster, api, size, ceiling, changes, latency)


def _with_routes(
    root: Path, cluster: LocalCluster, api: KubeClient, size: int, ceiling: float, changes: int, latency: str
) -> Iterator[Row]:
    with _gateway(root, latency) as gateway:
        controller = Controller(
            root,
            kubeconfig=cluster.kubeconfig,
            gateways={"default": gateway},
            kubernetes={"status": {"enabled": False}},
        )
        began = time.time_ns()
        with _started(controller) as usage:
            wanted = size * RECORDS_PER_ROUTE
            wait_until(lambda: _written(gateway), lambda writes: writes >= wanted, "the cold sync", COLD_TIMEOUT)
            stats = gateway.stats()
            total, first = (stats["last"] - began) / 1e9, (stats["first"] - began) / 1e9
            least = wanted / ceiling
            yield Row(
                f"cold sync, {size:,} routes",
                f"{total:.2f} s, {stats['writes']:,} writes, first after {first:.2f} s",
                f"{(total - first) / least:.2f}x of what {ceiling:,.0f} writes/s allow from the first write on, "
                f"{total / least:.2f}x from the start of the process",
            )
            yield _row_of_changes("endpoint change", gateway, _endpoint_changes(api, changes, size))
            yield _row_of_changes("route edit", gateway, _edits(api, changes, size))
            yield Row(f"process at {size:,} routes", usage())
        gateway.reset()
        with _started(controller):
            reads = gateway.stats()["counts"].get("GET", 0)
            yield Row(f"restart, {size:,} routes", f"{gateway.stats()['writes']} writes, {reads} reads")


@contextmanager
def _gateway(root: Path, latency: str) -> Iterator[CountingGateway]:
    root.mkdir(parents=True, exist_ok=True)
    with CountingGateway(root, write_latency=latency) as gateway:
        yield gateway


@contextmanager
def _started(controller: Controller) -> Iterator[Callable[[], str]]:
    """Start a controller; yield a function that tells its CPU seconds and peak memory so far."""
    controller.start()
    pid = controller.process.pid

    def usage() -> str:
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        seconds = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
        return f"{seconds:.1f} CPU s, {peak / 1024:.0f} MB peak"

    try:
        yield usage
    finally:
        controller.stop()


async def _raw(gateway: CountingGateway, concurrency: int) -> float:
    key = AdminKey(lambda: SecretStr(gateway.admin_key))
    backend = AdminBackend.connect(
        gateway.admin_url, key, controller="bench", timeout=30.0, concurrency=concurrency, tls=None
    )
    try:
        return await write_rate(backend, concurrency=concurrency, writes=RAW_WRITES)
    finally:
        await backend.aclose()


def _written(gateway: CountingGateway) -> int:
    return int(gateway.stats()["writes"])


def _endpoint_changes(api: KubeClient, count: int, size: int) -> Iterator[Callable[[], str]]:
    for turn in range(count):
        number, version = turn * 7919 % size, size + turn

        def change(number: int = number, version: int = version) -> str:
            patch = {"endpoints": slice_manifest(number, version)["endpoints"]}
            api.patch("EndpointSlice", f"r{number}", patch, namespace=namespace_of(number))
            return f"bench-{number % 50}_r{number}_80"

        yield change


def _edits(api: KubeClient, count: int, size: int) -> Iterator[Callable[[], str]]:
    for turn in range(count):
        number = turn * 7919 % size

        def edit(number: int = number, turn: int = turn) -> str:
            match = {"hosts": [f"h{number}.example.org"], "paths": [f"/edited-{turn}-{number}/*"]}
            rule = {"name": "rule", "match": match, "backends": [{"serviceName": f"r{number}", "servicePort": 80}]}
            api.patch("ApisixRoute", f"r{number}", {"spec": {"http": [rule]}}, namespace=namespace_of(number))
            return f"bench-{number % 50}_r{number}_rule"

        yield edit


def _row_of_changes(what: str, gateway: CountingGateway, changes: Iterator[Callable[[], str]]) -> Row:
    """Make changes one by one; measure from just before the PATCH until the gateway has the record."""
    gateway.reset()
    seconds: list[float] = []
    for change in changes:
        began, before = time.time_ns(), _written(gateway)
        name = change()
        _wait_for_write(gateway, before, name)
        at, _, _, body = gateway.log()[-1]
        assert body is not None
        assert body["name"] == name
        seconds.append((at - began) / 1e9)
    cuts = statistics.quantiles([second * 1000 for second in seconds], n=20)
    writes = _written(gateway) / len(seconds)
    return Row(what, f"p50 {cuts[9]:.1f} ms, p95 {cuts[18]:.1f} ms", f"{writes:.2f} writes each, API write included")


def _wait_for_write(gateway: CountingGateway, before: int, name: str) -> None:
    wait_until(lambda: _written(gateway), lambda writes: writes > before, f"{name} to be written")


def say(text: str) -> None:
    """Tell what takes time, on stderr."""
    print(text, file=sys.stderr, flush=True)


def _print(rows: Sequence[Row], latency: str) -> None:
    table = Table(title=f"apisix-ingress, counting gateway, {latency} added to each write", title_justify="left")
    for column in ("what", "figures", "note"):
        table.add_column(column)
    for row in rows:
        table.add_row(row.what, row.figures, row.note)
    Console(width=150 if not sys.stdout.isatty() else None).print(table)


if __name__ == "__main__":
    sys.exit(main())
