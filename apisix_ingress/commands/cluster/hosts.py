"""`hosts`: what a request for each host gets, and who owns it."""

from __future__ import annotations

from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Argument, Option
from apisix_ingress.commands.common.completions import complete_hosts
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    Report,
    ReportOption,
    RunningOption,
    print_json,
    print_stderr,
)
from apisix_ingress.commands.common.setup import print_painted

WordsArgument = Annotated[
    str, Argument(metavar="HOST", help="A host or a part of it, or of an object's name.", complete=complete_hosts)
]
ProblemsOption = Annotated[bool, Option("--problems", help="Only hosts that need attention.")]


@connects(gateways=False)
def hosts(
    words: WordsArgument = "",
    problems: ProblemsOption = False,
    url: RunningOption = "",
    output: ReportOption = Report.text,
    *,
    connection: Connection,
) -> None:
    """List hosts: state, since when, backends, certificate, objects.

    The leader answers. Without --url, it is found by its Lease, and `kubectl port-forward` reaches it, so kubectl must
    be installed.

    Exit 0 if no listed host needs attention, 1 if one does or no host matches, 2 on an error.

    Examples:
        apisix-ingress hosts --problems
        apisix-ingress hosts shop.example.org --context production
        apisix-ingress hosts --url http://localhost:8080 -o json
    """
    from apisix_ingress.commands.common.running import controller_url, read_items
    from apisix_ingress.diagnostics.reports.host_table import host_lines, hosts_document
    from apisix_ingress.model.formats.near_words import did_you_mean
    from apisix_ingress.runtime.clock import MonotonicClock

    with controller_url(url, connection) as address:
        troubled = read_items(address, "hosts", {"q": words, "state": "troubled"}, connection)
        found = troubled
        if not problems or (words and not troubled):
            found = read_items(address, "hosts", {"q": words}, connection)
        is_unknown = bool(words) and not found
        known = read_items(address, "hosts", {}, connection) if is_unknown else ()
    document = hosts_document(troubled if problems else found)
    if output == Report.json:
        print_json(document)
    else:
        print_painted(host_lines(document, MonotonicClock().now()))
    if is_unknown:
        print_stderr(
            [f"no host matches {words}", *filter(None, [did_you_mean(words, (each["host"] for each in known))])]
        )
    raise SystemExit(EXIT_FOUND if troubled or is_unknown else 0)
