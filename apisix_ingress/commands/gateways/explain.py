"""`explain`: which route handles a request, and why the others don't."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NoReturn

from apisix_ingress.commands.arguments.parameters import Argument, Option
from apisix_ingress.commands.common.completions import complete_hosts
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.manifests import Manifests, read_manifests
from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    EveryClusterOption,
    ManifestsOption,
    Report,
    ReportOption,
    RunningOption,
    fail,
    print_stderr,
)
from apisix_ingress.commands.common.running import understood
from apisix_ingress.commands.common.setup import offline_settings, print_report
from apisix_ingress.diagnostics.claimants import claimants
from apisix_ingress.diagnostics.collect.live_records import find_cluster
from apisix_ingress.diagnostics.collect.running_controller import read_explanation
from apisix_ingress.diagnostics.record_owners import written_owners
from apisix_ingress.diagnostics.reports.explain_evidence import Evidence, Found, of_everything, of_gateways
from apisix_ingress.diagnostics.reports.references import with_texts
from apisix_ingress.diagnostics.reports.rejected_offline import with_rejections
from apisix_ingress.diagnostics.wanted_certificates import missing_texts, wanted_certificates
from apisix_ingress.errors import GatewayError
from apisix_ingress.explain.answer import Claimant, unread
from apisix_ingress.explain.patterns import RouteFacts, fits_host
from apisix_ingress.explain.report import explain as explained
from apisix_ingress.explain.report import of_clusters
from apisix_ingress.explain.request import ProbeRequest, parse_request
from apisix_ingress.explain.text import lines
from apisix_ingress.lint.plugins import plugin_rules
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.wiring.options import translation_options

UrlArgument = Annotated[
    str, Argument(metavar="URL", help="https://host/path, host/path or /path.", complete=complete_hosts)
]
HeadersOption = Annotated[
    list[str] | None,
    Option("--header", "-H", metavar="'NAME: VALUE'", help="A request header; may be repeated."),
]
MethodOption = Annotated[str, Option("--request", "-X", metavar="METHOD", help="Method of the request.")]
AddressOption = Annotated[str, Option(metavar="IP", help="Address of the client.")]
GatewayAddressOption = Annotated[str, Option(metavar="IP", help="Address of the gateway.")]
VerboseOption = Annotated[bool, Option("--verbose", "-v", help="Also list routes of other hosts and paths.")]
PortOption = Annotated[int | None, Option(metavar="PORT", help="Port of the gateway's listener.")]


@connects(controller=False)
def explain(
    url: UrlArgument,
    filename: ManifestsOption = None,
    cluster: EveryClusterOption = "",
    header: HeadersOption = None,
    request: MethodOption = "GET",
    remote_addr: AddressOption = "",
    server_port: PortOption = None,
    server_addr: GatewayAddressOption = "",
    verbose: VerboseOption = False,
    controller: RunningOption = "",
    output: ReportOption = Report.text,
    *,
    connection: Connection,
) -> None:
    """Show what response a request gets, and why.

    The answer is that of each gateway cluster, or of the one in --cluster; with -f, that of the manifests alone, whose
    plugins are checked as by lint. With --config or --kubeconfig, objects are read too, which explains missing routes.
    With --url, the leader answers, which needs neither kubeconfig nor admin key; `apisix-ingress dashboard` prints its
    address.

    Exit 0 if a backend answers, or the gateway itself without an error, such as a redirect; 1 if the gateway responds
    with an error such as 404 or 503, if the route depends on conditions that only the gateway can evaluate, or if the
    gateway does not respond, so that the answer is not verified; 2 on an error of the command.

    Examples:
        apisix-ingress explain https://shop.example.org/cart -f manifests/
        apisix-ingress explain shop.example.org/ -H 'X-User: 7' --config config.yaml
        apisix-ingress explain shop.example.org/ --url http://localhost:8080
    """
    asked = parse_request(url, request, tuple(header or ()), remote_addr, server_port, server_addr=server_addr)
    if controller:
        if filename or server_addr:
            fail("--url cannot be combined with -f or --server-addr")
        question = {"url": url, "method": request, "headers": "\n".join(header or ()), "remote_addr": remote_addr}
        question |= {"server_port": str(server_port or ""), "cluster": cluster}
        with understood(controller):
            _finish(_of_controller(controller, question, connection), verbose=verbose, output=output)
    if filename:
        _finish(_document(asked, _offline(filename, connection.config, cluster, asked)), verbose=verbose, output=output)
    _finish(_of_gateways(asked, _live(connection, cluster)), verbose=verbose, output=output)


def _document(asked: ProbeRequest, found: Evidence) -> JsonObject:
    document = explained(
        asked,
        found.records,
        lambda key: found.owners.get(key, ""),
        unapplied=found.unapplied,
        claimants=found.claimants,
        missing=found.missing,
        now=MonotonicClock().now(),
    )
    if found.note and not _serves(document):
        document["notes"].append(found.note)
    return document


def _of_gateways(asked: ProbeRequest, found: Found) -> JsonObject:
    """Return the document of the first gateway cluster that was read, with the answers of the others."""
    failed = {name: each for name, each in found.items() if isinstance(each, GatewayError)}
    if len(failed) == len(found):
        raise next(iter(failed.values()))
    read = {name: each for name, each in found.items() if not isinstance(each, GatewayError)}
    document = of_clusters({name: _document(asked, each) for name, each in read.items()})
    document["elsewhere"] += [{"cluster": name, **unread(str(error))} for name, error in failed.items()]
    return document


def _serves(document: JsonObject) -> bool:
    """Return whether the request gets a response other than an error."""
    return all(
        each["kind"] in ("backend", "redirect", "reply") and (each["status"] or 0) < 400 and not each["unverified"]
        for each in (document["answer"], *document.get("elsewhere", ()))
    )


def _finish(document: JsonObject, *, verbose: bool, output: str) -> NoReturn:
    """Print the document and exit."""
    print_report(document, lines(document, verbose=verbose), output)
    raise SystemExit(0 if _serves(document) else EXIT_FOUND)


def _of_controller(controller: str, question: dict[str, str], connection: Connection) -> JsonObject:
    """Return the document of a running controller."""
    found: JsonObject = with_texts(connection.run(lambda step: read_explanation(controller, question)))
    return found


def _offline(paths: list[str], config: Path | None, cluster: str, asked: ProbeRequest) -> Evidence:
    """Return the records of manifests; print the problems of objects that name the host to stderr."""
    settings = offline_settings(config)
    options = translation_options(settings)
    find_cluster(settings, cluster)  # every cluster gets the routes, but a cluster of that name must exist
    found = read_manifests(paths, settings)
    outcome, rules = found.outcome, plugin_rules("")
    mistakes = list(rules.problems(found.loaded.objects, outcome, options)) if rules is not None else []
    records, unapplied = with_rejections(outcome, mistakes)
    owners = {key: str(owner) for key, owner in written_owners(outcome.world, outcome.owners).items()}
    asking = tuple(claimants(outcome.world, options))
    _print_problems(found, mistakes, _naming(asked.host, records, owners, asking))
    reports = outcome.world.reports
    problems = {owner: report.problems for owner, report in reports.items() if report.problems}
    missing = missing_texts(wanted_certificates(outcome.world, problems))
    return Evidence(records, owners, unapplied, asking, missing)


def _naming(
    host: str, records: Mapping[RecordKey, FrozenJson], owners: Mapping[RecordKey, str], asking: Sequence[Claimant]
) -> set[str]:
    """Return the objects that name a host."""
    routes = ((key, body) for key, body in records.items() if key.kind == "routes")
    found = {owners.get(key, "") for key, body in routes if fits_host(RouteFacts(key.id, body), host)}
    return found | {each.owner for each in asking if each.distance(host, "/") is not None}


def _print_problems(found: Manifests, mistakes: Iterable[tuple[ObjectKey, Problem]], names: set[str]) -> None:
    """Print the problems of files and of some objects, and the number of the others."""
    skipped = tuple(f"warning: {owner}: skipped" for owner in found.outcome.left_out if str(owner) not in names)
    print_stderr(line for line in found.warnings() if not line.startswith(skipped))
    print_stderr(f"error: {error}" for error in (*found.loaded.errors, *found.loaded.unread))
    problems = [(str(owner), problem) for owner, problem in (*found.outcome.problems, *mistakes)]
    print_stderr(f"{problem.severity}: {owner}: {problem}" for owner, problem in problems if owner in names)
    if others := sum(owner not in names for owner, _ in problems):
        print_stderr([f"{others} problem{'s' if others > 1 else ''} of other objects; list them with lint"])


def _live(connection: Connection, cluster: str) -> Found:
    """Return the records of gateway clusters, and the desired records if an API server is configured."""
    settings = connection.settings()
    if not connection.names_api_server:
        return connection.run(lambda step: of_gateways(settings, cluster))
    return connection.run(lambda step: of_everything(settings, cluster, step))
