"""`changes`: what the controller changed in the gateways in the last hour."""

from __future__ import annotations

from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Argument
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.output import Report, ReportOption, RunningOption, print_json
from apisix_ingress.commands.common.setup import print_painted

WordsArgument = Annotated[str, Argument(metavar="WORDS", help="Only changes with these words: an object, a record …")]


@connects(gateways=False)
def changes(
    words: WordsArgument = "",
    url: RunningOption = "",
    output: ReportOption = Report.text,
    *,
    connection: Connection,
) -> None:
    """List what changed in the gateways in the last hour.

    The leader answers. Without --url, it is found by its Lease, and `kubectl port-forward` reaches it, so kubectl must
    be installed.

    Exit 0 on success, 2 on an error.

    Examples:
        apisix-ingress changes
        apisix-ingress changes 'ApisixRoute shop/web' --context production
        apisix-ingress changes --url http://localhost:8080 -o json
    """
    from apisix_ingress.commands.common.running import controller_url, read_items
    from apisix_ingress.diagnostics.reports.change_list import change_lines, changes_document
    from apisix_ingress.runtime.clock import MonotonicClock

    with controller_url(url, connection) as address:
        document = changes_document(read_items(address, "changes", {"q": words}, connection))
    if output == Report.json:
        print_json(document)
    else:
        print_painted(change_lines(document, MonotonicClock().now()))
