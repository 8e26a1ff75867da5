"""`tree`: hosts, paths, routes, upstreams and nodes, each with its owner."""

from __future__ import annotations

from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Argument, Option
from apisix_ingress.commands.common.completions import complete_hosts_and_kinds
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.manifests import read_manifests
from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    ManifestsOption,
    Report,
    ReportOption,
    RunningOption,
    fail,
    print_stderr,
)
from apisix_ingress.commands.common.running import understood
from apisix_ingress.commands.common.setup import Step, print_report
from apisix_ingress.diagnostics.collect.cluster_state import api_server
from apisix_ingress.diagnostics.collect.inventory import take_inventory
from apisix_ingress.diagnostics.collect.running_controller import read_wanted
from apisix_ingress.diagnostics.object_names import find_kind, parse_object
from apisix_ingress.diagnostics.record_owners import written_owners
from apisix_ingress.diagnostics.reports.tree import Wanted, pods_by_address, tree_document
from apisix_ingress.diagnostics.reports.tree_render import dot_lines, mermaid_lines, text_lines
from apisix_ingress.errors import KubeError, UsageError
from apisix_ingress.model.formats.near_words import did_you_mean
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import Pod
from apisix_ingress.settings import Settings

WhatArgument = Annotated[
    str,
    Argument(
        metavar="HOST|KIND",
        help="A host, or a kind of object; default: everything.",
        complete=complete_hosts_and_kinds,
    ),
]
NameArgument = Annotated[str, Argument(metavar="NAMESPACE/NAME", help="Name of the object.")]
DotOption = Annotated[bool, Option("--dot", help="Print a Graphviz graph.")]
MermaidOption = Annotated[bool, Option("--mermaid", help="Print a Mermaid flow chart.")]


@connects(gateways=False, controller=False)
def tree(
    what: WhatArgument = "",
    name: NameArgument = "",
    filename: ManifestsOption = None,
    dot: DotOption = False,
    mermaid: MermaidOption = False,
    url: RunningOption = "",
    output: ReportOption = Report.text,
    *,
    connection: Connection,
) -> None:
    """Draw hosts, routes, upstreams and pods with their owners.

    The tree shows the desired state; use status and diff to compare it with the gateways. Objects come from the API
    server, from manifests (-f) or from the leader (--url), which does not know the names of Pods.

    Exit 0 if something matches, 1 if nothing does, 2 on an error.

    Examples:
        apisix-ingress tree shop.example.org
        apisix-ingress tree ApisixRoute shop/web --mermaid
        apisix-ingress tree --url http://localhost:8080
    """
    if dot and mermaid:
        fail("--dot and --mermaid are mutually exclusive")
    host, about = _requested(what, name)
    with understood(url):
        wanted = _wanted(filename, url, connection)
        document = tree_document(wanted, host=host, about=about)
        is_empty = not (document["hosts"] or document["streams"])
        if is_empty:
            _check_host(host)
        lines = (dot_lines if dot else mermaid_lines if mermaid else text_lines)(document)
        print_report(document, lines, output)
    if is_empty:
        about_what = f" for {about or host}" if about or host else ""
        advice = _similar(host, wanted)
        print_stderr([f"no routes{about_what}{f'; {advice}' if advice else ''}"])
    raise SystemExit(EXIT_FOUND if is_empty else 0)


def _wanted(paths: list[str] | None, url: str, connection: Connection) -> Wanted:
    """Return the records of manifests, of a running controller or of the API server."""
    if paths and url:
        fail("--url cannot be combined with -f")
    if url:
        return connection.run(lambda step: read_wanted(url))
    settings = connection.settings()
    return _of_files(paths, settings) if paths else connection.run(lambda step: _of_api(settings, step))


def _requested(what: str, name: str) -> tuple[str, ObjectKey | None]:
    """Return the host or the object named by the arguments."""
    return ("", parse_object(what, name, RESOURCES)) if name else (what, None)


def _similar(host: str, wanted: Wanted) -> str:
    """Return a question that names the host most similar to one without routes, or an empty string."""
    return did_you_mean(host, (each["host"] for each in tree_document(wanted)["hosts"])) if host else ""


def _check_host(word: str) -> None:
    """End with an error if the argument is a kind without the name of an object, rather than a host."""
    try:
        kind = find_kind(word, RESOURCES)
    except UsageError:
        return
    form = ", as NAMESPACE/NAME" if RESOURCES[kind].namespaced else ""
    fail(f"{word} is a kind: add the name of the object{form}")


def _of_files(paths: list[str], settings: Settings) -> Wanted:
    """Return the records of manifests; print their problems to stderr."""
    found = read_manifests(paths, settings)
    print_stderr([*found.warnings(), *found.problems()])
    pods = pods_by_address(item for item in found.loaded.objects if isinstance(item, Pod))
    owners = written_owners(found.outcome.world, found.outcome.owners)
    return Wanted(found.outcome.bodies(), owners, pods)


async def _of_api(settings: Settings, step: Step) -> Wanted:
    """Return the records of the API server's objects; kinds that could not be read are reported on stderr."""
    async with api_server(settings) as api:
        inventory = await take_inventory(api, settings, step=step)
    print_stderr(f"warning: cannot read {kind}: {reason}" for kind, reason in sorted(inventory.unread.items()))
    winners = inventory.winners()
    if inventory.unread and not winners:
        raise KubeError("the tree cannot be drawn without these kinds")
    bodies = {key: record.body for key, (_, record) in winners.items()}
    owners = written_owners(inventory.world, {key: owner for key, (owner, _) in winners.items()})
    return Wanted(bodies, owners, pods_by_address(inventory.world.stores["Pod"].values()))
