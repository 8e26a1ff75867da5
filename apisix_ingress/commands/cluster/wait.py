"""`wait`: waits until an object is in effect in every gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Argument, BadParameter, Option
from apisix_ingress.commands.common.completions import complete_kinds_with_conditions
from apisix_ingress.commands.common.connection import Connection, check_duration, connects
from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    Report,
    ReportOption,
)
from apisix_ingress.commands.common.setup import Step, print_report, run_with_progress
from apisix_ingress.diagnostics.collect.cluster_state import api_server
from apisix_ingress.diagnostics.object_names import parse_object
from apisix_ingress.diagnostics.reports.wait import Verdict, wait_live
from apisix_ingress.model.formats.duration import parse_duration
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.runtime.clock import MonotonicClock

KindArgument = Annotated[
    str, Argument(metavar="KIND", help="Ingress, ApisixRoute, ar, …", complete=complete_kinds_with_conditions)
]
NameArgument = Annotated[str, Argument(metavar="NAMESPACE/NAME", help="Namespace and name of the object.")]


def _only_live(word: str) -> str:
    if word != "live":
        raise BadParameter("must be live")
    return word


TimeoutOption = Annotated[str, Option(metavar="DURATION", help="Timeout, such as 90s or 5m.", check=check_duration)]
ForOption = Annotated[str, Option("--for", metavar="live", help="State to wait for.", check=_only_live)]


@connects(deadline=False)
def wait(
    kind: KindArgument,
    name: NameArgument,
    for_: ForOption = "live",
    timeout: TimeoutOption = "60s",
    output: ReportOption = Report.text,
    *,
    connection: Connection,
) -> None:
    """Wait until an object is in effect in every gateway.

    It waits for the current version of the object. The state of custom resources comes from their conditions; for an
    Ingress, the gateways are read.

    Exit 0 once it is live, 1 if it is rejected or on a timeout, 2 on an error.

    Examples:
        apisix-ingress wait ApisixRoute shop/web --timeout 90s
        apisix-ingress wait ing shop/web
    """
    key, seconds = _object(kind, name), parse_duration(timeout)
    settings = connection.settings()

    async def work(step: Step) -> Verdict:
        async with api_server(settings) as api:
            return await wait_live(api, settings, key, seconds=seconds, clock=MonotonicClock(), step=step)

    document = _document(key, run_with_progress(work))
    print_report(document, _lines(document), output)
    raise SystemExit(0 if document["outcome"] == "live" else EXIT_FOUND)


def _object(kind: str, name: str) -> ObjectKey:
    return parse_object(kind, name, [each for each, row in RESOURCES.items() if row.status])


def _document(key: ObjectKey, verdict: Verdict) -> JsonObject:
    last = verdict.last
    return {"object": str(key), "outcome": verdict.outcome, "reason": last.reason, "message": last.message}


def _lines(document: JsonObject) -> Iterator[str]:
    if document["outcome"] == "live":
        yield f"{document['object']} is live"
    else:
        yield f"{document['object']} is not live: {document['outcome']}: {document['reason']}: {document['message']}"
