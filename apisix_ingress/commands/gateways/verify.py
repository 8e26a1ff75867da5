"""`verify`: sends the same requests to two gateways and reports differences between their responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from apisix_ingress.commands.arguments.parameters import Argument, Option
from apisix_ingress.commands.common.connection import Connection, check_duration, connects
from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    ManifestsOption,
    Report,
    ReportOption,
    fail,
    print_stderr,
)
from apisix_ingress.commands.common.setup import Step, print_report, run_with_progress
from apisix_ingress.diagnostics.collect.cluster_state import api_server
from apisix_ingress.diagnostics.collect.inventory import listed
from apisix_ingress.kube.manifests.loader import load
from apisix_ingress.model.formats.duration import parse_duration
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.verify import accesslog, ingresses, requestfile
from apisix_ingress.verify.client import GatewayClient
from apisix_ingress.verify.model import SAFE_METHODS, Address, Probe
from apisix_ingress.verify.report import Summary, lines, page
from apisix_ingress.verify.session import Options, Session
from translation.core.scope import written_class

_PORTS = "HOST[:HTTP_PORT[,HTTPS_PORT]]"
OldArgument = Annotated[str, Argument(metavar="OLD", help=f"The gateway in use: {_PORTS}; default ports 80, 443.")]
NewArgument = Annotated[str, Argument(metavar="NEW", help="The gateway to compare, in the same form.")]
LiveOption = Annotated[bool, Option("--live", help="Take the Ingresses from the API server.")]
RequestsOption = Annotated[
    list[Path] | None,
    Option(
        "--requests",
        metavar="FILE",
        help="File with requests, one per line: [METHOD] URL [-H 'Name: value'].",
    ),
]
LogOption = Annotated[
    list[Path] | None,
    Option("--access-log", metavar="FILE", help="Access log: nginx's combined format, or JSON lines."),
]
LogHostOption = Annotated[str, Option(metavar="HOST", help="Host of log lines without one.")]
ClassOption = Annotated[str, Option("--class", metavar="NAME", help="Only Ingresses of this class.")]
MethodsOption = Annotated[str, Option("--methods", metavar="safe|all", help="all: also methods that may change data.")]
RateOption = Annotated[float, Option(limits=(0.1, None), metavar="NUMBER", help="Requests per second to each gateway.")]
ConcurrencyOption = Annotated[
    int, Option(limits=(1, 64), metavar="NUMBER", help="Maximum number of concurrent requests.")
]
SamplesOption = Annotated[
    int, Option(limits=(20, 5000), metavar="NUMBER", help="Number of requests to each gateway if traffic is split.")
]
LimitOption = Annotated[
    int, Option(limits=(1, None), metavar="NUMBER", help="Maximum number of distinct requests per round.")
]
RequestTimeoutOption = Annotated[
    str, Option(metavar="DURATION", help="Timeout of a connection and of a response, each.", check=check_duration)
]
HeaderOption = Annotated[
    str,
    Option("--backend-header", metavar="NAME", help="Response header that identifies the backend."),
]
FieldOption = Annotated[
    str,
    Option(
        "--backend-field",
        metavar="PATH",
        help="Field of a JSON body that identifies the backend, e.g. pod.",
    ),
]
IgnoreOption = Annotated[
    list[str] | None,
    Option("--ignore-header", metavar="NAME", help="Ignore differences in this header."),
]
WatchOption = Annotated[str, Option("--watch", metavar="DURATION", help="Repeat for this long.")]
HtmlOption = Annotated[Path | None, Option("--html", metavar="FILE", help="Write an HTML page.")]


@connects(gateways=False, controller=False)
def verify(
    old: OldArgument,
    new: NewArgument,
    filename: ManifestsOption = None,
    live: LiveOption = False,
    ingress_class: ClassOption = "",
    requests: RequestsOption = None,
    access_log: LogOption = None,
    log_host: LogHostOption = "",
    methods: MethodsOption = "safe",
    rate: RateOption = 20.0,
    concurrency: ConcurrencyOption = 4,
    samples: SamplesOption = 200,
    limit: LimitOption = 5000,
    request_timeout: RequestTimeoutOption = "10s",
    backend_header: HeaderOption = "",
    backend_field: FieldOption = "",
    ignore_header: IgnoreOption = None,
    watch: WatchOption = "",
    html: HtmlOption = None,
    output: ReportOption = Report.text,
    *,
    connection: Connection,
) -> None:
    """Compare the responses of two gateways.

    Requests come from Ingresses (-f or --live), from access logs and from files; each is sent to both gateways.
    Values that vary from one request to the next are found by repetition and not reported. With --watch, the page of
    --html is updated after each round, and after Ctrl-C the report covers the complete rounds.

    Exit 0 if all responses are equal, 1 if some differ, 2 on an error.

    Examples:
        apisix-ingress verify 10.0.0.1 10.0.0.2 -f ingresses/ --html report.html
        apisix-ingress verify 10.0.0.1 10.0.0.2:8080 --live --watch 10m
    """
    if methods not in ("safe", "all"):
        fail(f"--methods {methods}: must be safe or all")
    summary = Summary(_address(old), _address(new))
    items = [*_of_files(filename or []), *(_of_api(connection) if live else ())]
    sources = [
        _of_ingresses([item for item in items if ingress_class in ("", written_class(item))], samples),
        *(_of_requests(path) for path in requests or []),
        *(_of_log(path, log_host, summary) for path in access_log or []),
    ]
    probes = _chosen(chain.from_iterable(sources), summary, every_method=methods == "all", limit=limit)
    if not probes:
        fail("no requests: add Ingresses with -f or --live, or use --requests or --access-log")
    named = bool(backend_header or backend_field)
    options = Options(rate, concurrency, frozenset(name.lower() for name in ignore_header or ()), named)
    client = {
        "timeout": parse_duration(request_timeout),
        "backend_header": backend_header,
        "backend_field": backend_field,
    }
    duration = parse_duration(watch) if watch else 0.0

    def finished() -> None:
        # A watch may run for hours, so the page exists from the first round on.
        if html is not None:
            html.write_text(page(summary.document()), encoding="utf-8")

    try:
        run_with_progress(lambda step: _compare(summary, probes, options, client, duration, step, finished))
    except KeyboardInterrupt:
        if not summary.rounds:
            raise
        print_stderr([f"interrupted: the report covers the {summary.rounds} complete rounds"])
    document = summary.document()
    print_report(document, lines(document), output)
    raise SystemExit(EXIT_FOUND if document["different"] else 0)


async def _compare(
    summary: Summary,
    probes: list[Probe],
    options: Options,
    connection: dict[str, Any],
    duration: float,
    step: Step,
    finished: Callable[[], None],
) -> None:
    """Run rounds until the time is over, at least one; `finished` is called after each."""
    clock = MonotonicClock()
    async with AsyncExitStack() as stack:
        old, new = (GatewayClient(address, **connection) for address in (summary.old, summary.new))
        stack.push_async_callback(old.aclose)
        stack.push_async_callback(new.aclose)
        session = Session(old, new, options, clock=clock)
        end, number = clock.monotonic() + duration, 0
        while not number or clock.monotonic() < end:
            number += 1
            round_ = f"round {number}, " if duration else ""
            summary.add(await session.run(probes, partial(_show_progress, step, round_, len(probes))), clock.now())
            finished()


def _show_progress(step: Step, round_: str, total: int, done: int) -> None:
    step(f"{round_}{done} of {total} requests compared")


def _address(text: str) -> Address:
    host, colon, ports = text.rpartition(":") if not text.endswith("]") and ":" in text else (text, "", "")
    http, _, https = ports.partition(",")
    try:
        found = {"http": int(http) if colon else 80, "https": int(https) if https else 443}
    except ValueError:
        fail(f"{text!r} is not an address; write {_PORTS}, e.g. 10.0.0.1:8080,8443")
    return Address(host.strip("[]"), found)


def _of_files(paths: list[str]) -> list[CustomObject]:
    """Return the Ingresses of manifests; an unreadable one ends the command."""
    if not paths:
        return []
    loaded = load(paths)
    if loaded.errors:
        fail("\n".join(map(str, loaded.errors)))
    return [item for item in loaded.objects if isinstance(item, CustomObject) and item.meta.kind == "Ingress"]


def _of_api(connection: Connection) -> list[CustomObject]:
    """Return the Ingresses of an API server, of every class."""
    settings = connection.settings()
    resource = RESOURCES["Ingress"]

    async def read(step: Step) -> list[CustomObject]:
        step("reading Ingresses")
        async with api_server(settings) as api:
            found = [resource.decode(raw) async for raw in listed(api, resource.path(""))]
        return [item for item in found if isinstance(item, CustomObject)]

    return connection.run(read)


def _of_ingresses(items: list[CustomObject], samples: int) -> Iterator[Probe]:
    return ingresses.probes_of(items, samples=samples)


def _of_requests(path: Path) -> Iterator[Probe]:
    return requestfile.probes_of(_lines(path), path.name)


def _of_log(path: Path, host: str, summary: Summary) -> Iterator[Probe]:
    for probe in accesslog.probes_of(_lines(path), path.name, host=host):
        if probe is None:
            summary.skipped[f"line of {path.name} without a request, or without a host (--log-host)"] += 1
        else:
            yield probe


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from file
    except OSError as error:
        fail(f"{path}: {error.strerror}")


def _chosen(found: Iterable[Probe], summary: Summary, *, every_method: bool, limit: int) -> list[Probe]:
    """Return each probe once, in order; count the ones that are left out."""
    probes: dict[Probe, Probe] = {}
    for probe in found:
        if not every_method and probe.method not in SAFE_METHODS:
            summary.skipped[f"method {probe.method} may change data (--methods all)"] += 1
        elif probe in probes:
            probes[probe] = probes[probe].merged(probe)
        elif len(probes) < limit:
            probes[probe] = probe
        else:
            summary.skipped["beyond --limit"] += 1
    return list(probes.values())
