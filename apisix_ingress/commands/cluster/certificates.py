"""`certificates`: the certificates of hosts, and missing ones."""

from __future__ import annotations

from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Argument, Option
from apisix_ingress.commands.common.output import EXIT_FOUND
from apisix_ingress.commands.common.running import LeaderPage, asks_leader
from apisix_ingress.diagnostics.reports.certificate_table import certificate_lines, certificates_document

WordsArgument = Annotated[
    str, Argument(metavar="WORDS", help="Only certificates with these words: a host, an issuer, a Secret, an object.")
]
ProblemsOption = Annotated[bool, Option("--problems", help="Only certificates that need attention.")]


@asks_leader
def certificates(words: WordsArgument = "", problems: ProblemsOption = False, *, page: LeaderPage) -> None:
    """List certificates: validity, hosts, issuer, Secret; missing ones first.

    The leader answers. Without --url, it is found by its Lease, and `kubectl port-forward` reaches it, so kubectl must
    be installed.

    Exit 0 if every listed certificate is valid, 1 if one is missing, has expired or expires within 14 days, 2 on an
    error.

    Examples:
        apisix-ingress certificates --problems
        apisix-ingress certificates shop.example.org --context production
        apisix-ingress certificates --url http://localhost:8080 -o json
    """
    with page.open() as read:
        document = certificates_document(read("certificates", {"q": words}), only_problems=problems)
    page.show(document, certificate_lines)
    raise SystemExit(EXIT_FOUND if any(each["validity"] != "valid" for each in document["certificates"]) else 0)
