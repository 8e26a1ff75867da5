"""`changes`: what the controller changed in the gateways in the last hour."""

from __future__ import annotations

from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Argument
from apisix_ingress.commands.common.running import LeaderPage, asks_leader
from apisix_ingress.diagnostics.reports.change_list import change_lines, changes_document

WordsArgument = Annotated[str, Argument(metavar="WORDS", help="Only changes with these words: an object, a record …")]


@asks_leader
def changes(words: WordsArgument = "", *, page: LeaderPage) -> None:
    """List what changed in the gateways in the last hour.

    The leader answers. Without --url, it is found by its Lease, and `kubectl port-forward` reaches it, so kubectl must
    be installed.

    Exit 0 on success, 2 on an error.

    Examples:
        apisix-ingress changes
        apisix-ingress changes 'ApisixRoute shop/web' --context production
        apisix-ingress changes --url http://localhost:8080 -o json
    """
    with page.open() as read:
        page.show(changes_document(read("changes", {"q": words})), change_lines)
