"""`make bench`: controllers side by side against a real API server and a counting gateway.

    python -m benchmarks run --sizes 100,1000 --adapters ours,aic-1.8.4 --out results.jsonl
    python -m benchmarks report results.jsonl

The first run with a shape creates its objects (a minute for 5,000 routes), and the first run with another controller
builds it; the cache folder keeps both. Some controllers are not built here: their error message lists the required
programs.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks import adapter, gateway
from benchmarks.adapter import Adapter
from benchmarks.deletion.measure import measure as measure_deletions
from benchmarks.gateway import CountingGateway
from benchmarks.machine import QUIET, busy_share
from benchmarks.raw import client_rate
from benchmarks.reporting.report import report
from benchmarks.reporting.results import Book, Result
from benchmarks.scenarios import SCENARIOS, Bench, Figures
from benchmarks.seeds import cluster_with
from benchmarks.subject import Subject
from benchmarks.world import Shape, World
from e2e import netns

RAW_WRITES = 4000
CONCURRENCIES = (1, 16, 64)
DELETION = "deletion"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and save the results, or report them; return the exit status."""
    arguments = _parser().parse_args(argv)
    # SIGTERM must also stop the cluster and the controllers, which would otherwise keep running.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    if arguments.command == "report":
        report(arguments.results, arguments.plots)
        return 0
    with tempfile.TemporaryDirectory(prefix="apisix-ingress-bench-") as folder:
        for result in _measure(arguments.logs or Path(folder), arguments):
            figures = ", ".join(f"{name} {value:g}" for name, value in result.figures.items())
            print(f"{result.title}, {result.shape.name}, {result.scenario}: {figures}", flush=True)
    report(arguments.out, None)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure")
    run.add_argument("--adapters", default="ours", help="names or files, measured in this order; default %(default)s")
    run.add_argument("--sizes", default="100,1000", help="numbers of routes; default %(default)s")
    scenarios = f"default %(default)s; also {DELETION}, which does not depend on the sizes; ahead stands alone"
    run.add_argument("--scenarios", default=",".join(SCENARIOS), help=scenarios)
    run.add_argument("--kind", choices=["ApisixRoute", "Ingress", "HTTPRoute"], default="ApisixRoute")
    run.add_argument("--hosts", type=int, default=1, help="that the routes are spread over")
    run.add_argument("--class", dest="ingress_class", default="apisix", help="ingressClassName of the objects")
    run.add_argument("--namespaces", type=int, default=50, help="that the objects are spread over")
    run.add_argument("--backends", type=int, choices=[1, 2], default=1, help="Services of a route (not of an Ingress)")
    run.add_argument("--write-latency", default="1ms", help="added to each write by the counting gateway")
    run.add_argument("--runs", type=int, default=1, help="number of repetitions; the report has medians")
    run.add_argument("--changes", type=int, default=100, help="single changes and edits")
    run.add_argument("--idle", type=float, default=30.0, metavar="SECONDS")
    run.add_argument("--logs", type=Path, help="folder for the controllers' files and logs")
    run.add_argument("--out", type=Path, default=Path("benchmark-results.jsonl"), help="JSONL; results are appended")
    drawn = commands.add_parser("report", help="table of medians, and plots")
    drawn.add_argument("results", type=Path)
    drawn.add_argument("--plots", type=Path, help="folder for PNG files; needs matplotlib")
    return parser


def _measure(root: Path, arguments: argparse.Namespace) -> Iterator[Result]:
    book = Book(arguments.out, arguments.write_latency)
    root.mkdir(parents=True, exist_ok=True)
    program = gateway.build(root.absolute())
    subjects = [(each, each.ready()) for each in map(adapter.load, arguments.adapters.split(","))]
    scenarios = set(arguments.scenarios.split(","))
    deletions = DELETION in scenarios
    if deletions and not netns.in_namespace():
        netns.enter()  # after the builds, which may download modules
    for turn in range(arguments.runs):
        for size in map(int, arguments.sizes.split(",") if scenarios != {DELETION} else ()):
            shape = _shape(size, arguments)
            with CountingGateway(program, root / "raw", write_latency=arguments.write_latency) as raw:
                yield book.add("raw", "the gateway itself", "raw", shape, _rates(raw))
            for each, known in subjects:
                folder, busy = root.absolute() / f"{each.name}-{size}-{turn}", _busy()
                for scenario, figures in _scenarios(folder, program, each, known, shape, arguments):
                    yield book.add(each.name, each.title, scenario, shape, figures, busy)
        for each, known in subjects if deletions else ():
            folder, busy = root.absolute() / f"{each.name}-{DELETION}-{turn}", _busy()
            figures = measure_deletions(each, known, program, folder)
            yield book.add(each.name, each.title, DELETION, Shape(1, namespaces=1), figures, busy)


def _busy() -> float:
    """Return the share of the processors that other programs use, with a warning if it is too large."""
    busy = busy_share()
    if busy > QUIET:
        print(f"warning: other programs use {busy:.0%} of the processors", file=sys.stderr, flush=True)
    return busy


def _shape(size: int, arguments: argparse.Namespace) -> Shape:
    namespaces, hosts = (min(each, size) for each in (arguments.namespaces, arguments.hosts))
    return Shape(size, arguments.kind, namespaces, arguments.backends, hosts, arguments.ingress_class)


def _rates(raw: CountingGateway) -> Figures:
    """Return the gateway's throughput with a plain client and with the controller's client."""
    rates = {f"writes_per_second_{each}": raw.ceiling(each, RAW_WRITES) for each in CONCURRENCIES}
    client = client_rate(raw.admin_url, raw.admin_key, concurrency=CONCURRENCIES[1], writes=RAW_WRITES)
    return {**rates, f"client_writes_per_second_{CONCURRENCIES[1]}": asyncio.run(client)}


def _scenarios(
    folder: Path, program: Path, each: Adapter, known: dict[str, str], shape: Shape, arguments: argparse.Namespace
) -> Iterator[tuple[str, Figures]]:
    raising = partial(gateway.raise_revision, program)
    wanted = [name for name in arguments.scenarios.split(",") if name != DELETION]
    with (
        CountingGateway(program, folder, write_latency=arguments.write_latency) as counting,
        cluster_with(shape, raising) as cluster,
        cluster.client() as api,
    ):
        where = {**known, "kubeconfig": str(cluster.kubeconfig), "admin_key": counting.admin_key}
        where |= {"gateway_url": counting.url, "admin_url": counting.admin_url}
        api.apply(each.manifests(where))
        subject = Subject(each, where, folder)
        bench = Bench(api, counting, World(shape), subject, arguments.changes, arguments.idle)
        try:
            if "ahead" in wanted:
                yield "ahead", bench.ahead()
                return
            for name in ("cold", *(name for name in wanted if name != "cold")):
                yield name, SCENARIOS[name](bench)
        finally:
            bench.close()


if __name__ == "__main__":
    sys.exit(main())
