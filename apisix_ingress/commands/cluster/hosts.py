"""`hosts`: what a request for each host gets, and who owns it."""

from __future__ import annotations

from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Argument, Option
from apisix_ingress.commands.common.completions import complete_hosts
from apisix_ingress.commands.common.output import EXIT_FOUND, print_stderr
from apisix_ingress.commands.common.running import LeaderPage, asks_leader
from apisix_ingress.diagnostics.reports.host_table import host_lines, hosts_document
from apisix_ingress.model.formats.near_words import did_you_mean

WordsArgument = Annotated[
    str, Argument(metavar="HOST", help="A host or a part of it, or of an object's name.", complete=complete_hosts)
]
ProblemsOption = Annotated[bool, Option("--problems", help="Only hosts that need attention.")]


@asks_leader
def hosts(words: WordsArgument = "", problems: ProblemsOption = False, *, page: LeaderPage) -> None:
    """List hosts: state, since when, backends, certificate, objects, cause.

    The leader answers. Without --url, it is found by its Lease, and `kubectl port-forward` reaches it, so kubectl must
    be installed.

    Exit 0 if no listed host needs attention, 1 if one does or no host matches, 2 on an error.

    Examples:
        apisix-ingress hosts --problems
        apisix-ingress hosts shop.example.org --context production
        apisix-ingress hosts --url http://localhost:8080 -o json
    """
    with page.open() as read:
        troubled = found = hosts_document(read("hosts", {"q": words, "state": "troubled"}))
        if not problems or (words and not troubled["hosts"]):
            found = hosts_document(read("hosts", {"q": words}))
        is_unknown = bool(words) and not found["hosts"]
        known = read("hosts", {})["items"] if is_unknown else ()
    page.show(troubled if problems else found, host_lines)
    if is_unknown:
        advice = did_you_mean(words, (each["host"] for each in known))
        print_stderr([f"no host matches {words}", *filter(None, [advice])])
    raise SystemExit(EXIT_FOUND if troubled["hosts"] or is_unknown else 0)
