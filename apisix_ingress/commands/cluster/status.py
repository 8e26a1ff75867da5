"""`status`: the controller, its gateways and its objects at a glance."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Option
from apisix_ingress.commands.common.completions import complete_kinds
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    Report,
    ReportOption,
    RunningOption,
    fail,
    print_json,
)
from apisix_ingress.commands.common.running import understood
from apisix_ingress.commands.common.setup import Step, print_painted
from apisix_ingress.diagnostics.collect.cluster_state import api_server, look
from apisix_ingress.diagnostics.collect.running_controller import read_status
from apisix_ingress.diagnostics.object_names import find_kind
from apisix_ingress.diagnostics.reports.status import NO_TIMES, Filter, status_document
from apisix_ingress.diagnostics.reports.status_table import status_lines
from apisix_ingress.errors import KubeError
from apisix_ingress.kube.status.event_times import failing_since
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.runtime.clock import MonotonicClock

WATCH_SECONDS = 2.0
"""Seconds between two refreshes with --watch."""

_CLEAR = "\x1b[H\x1b[2J"
"""Moves the cursor of a terminal to the top, and clears the screen."""

NamespaceOption = Annotated[
    str, Option("--namespace", "-n", metavar="NAMESPACE", help="Only objects in this namespace.")
]
KindOption = Annotated[
    list[str] | None,
    Option("--kind", metavar="KIND", help="Only this kind: Ingress, ar, …; may be repeated.", complete=complete_kinds),
]
AllOption = Annotated[bool, Option("--all", "-a", help="Also list objects without a problem.")]
WatchOption = Annotated[bool, Option("--watch", "-w", help="Repeat until interrupted.")]


@connects()
def status(
    namespace: NamespaceOption = "",
    kind: KindOption = None,
    every: AllOption = False,
    watch: WatchOption = False,
    url: RunningOption = "",
    output: ReportOption = Report.text,
    *,
    connection: Connection,
) -> None:
    """Show gateways, objects that need attention, and the leader.

    It reads the API server and the gateways. With --url, the leader answers instead, which needs neither kubeconfig nor
    admin key; `apisix-ingress dashboard` prints its address.

    Exit 0 if everything is healthy, 1 if not, 2 on an error.

    Examples:
        apisix-ingress status --kubeconfig ~/.kube/config --config config.yaml
        apisix-ingress status -n shop --kind ApisixRoute --all
        apisix-ingress status --watch --url http://localhost:8080
    """
    if watch and output != Report.text:
        fail("--watch requires the output format text")
    only = Filter(namespace, frozenset(find_kind(word, RESOURCES) for word in kind or ()), healthy=every)
    while True:
        with understood(url):
            document = _of_controller(url, only, connection) if url else _of_cluster(connection, only)
            _print(document, output, is_repeated=watch)
        if not watch:
            raise SystemExit(0 if document["healthy"] else EXIT_FOUND)
        _pause()


def _of_cluster(connection: Connection, only: Filter) -> JsonObject:
    settings = connection.settings()

    async def see(step: Step) -> JsonObject:
        async with api_server(settings) as api:
            seen, times = await look(api, settings, step=step), NO_TIMES
            with contextlib.suppress(KubeError):
                times = await failing_since(api, settings.kubernetes.watch_namespaces or ("",))
            return status_document(seen, only, times)

    return connection.run(see)


def _of_controller(url: str, only: Filter, connection: Connection) -> JsonObject:
    return connection.run(lambda step: read_status(url, only))


def _print(document: JsonObject, output: str, *, is_repeated: bool) -> None:
    if output == Report.json:
        print_json(document)
        return
    if is_repeated and sys.stdout.isatty():
        sys.stdout.write(_CLEAR)
    print_painted(status_lines(document, MonotonicClock().now()))
    sys.stdout.flush()


def _pause() -> None:
    time.sleep(WATCH_SECONDS)
