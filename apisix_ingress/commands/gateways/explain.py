"""`explain`: which route answers a request, and why the others don't."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    AdminKeyOption,
    AdminUrlOption,
    ClusterOption,
    ConfigOption,
    KubeconfigOption,
    ManifestsOption,
    Report,
    ReportOption,
    tell,
)
from apisix_ingress.commands.common.setup import offline_settings, print_report, run_with_progress, settings_for

if TYPE_CHECKING:
    from apisix_ingress.diagnostics.reports.explain_evidence import Evidence

UrlArgument = Annotated[str, typer.Argument(metavar="URL", help="https://host/path, host/path or /path.")]
HeadersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--header", "-H", metavar="'NAME: VALUE'", help="A request header; may be repeated.", show_default=False
    ),
]
MethodOption = Annotated[str, typer.Option("--request", "-X", metavar="METHOD", help="Method of the request.")]
AddressOption = Annotated[str, typer.Option(help="Address of the client.", show_default=False)]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Also list routes of other hosts and paths.")]
PortOption = Annotated[int | None, typer.Option(help="Port of the gateway's listener.", show_default=False)]


def explain(
    url: UrlArgument,
    filename: ManifestsOption = None,
    admin_url: AdminUrlOption = None,
    admin_key: AdminKeyOption = None,
    cluster: ClusterOption = "",
    kubeconfig: KubeconfigOption = None,
    header: HeadersOption = None,
    request: MethodOption = "GET",
    remote_addr: AddressOption = "",
    server_port: PortOption = None,
    verbose: VerboseOption = False,
    output: ReportOption = Report.text,
    config: ConfigOption = None,
) -> None:
    """Show what response a request gets, and why.

    With -f, the routes come from manifests, otherwise from a gateway. With --config or --kubeconfig, the objects of the
    API server are read too, which explains missing routes.

    Exit 0 if a route answers, 1 if the gateway answers 404, 502 or 503 or if the result depends on conditions that only
    the gateway can evaluate, 2 on an error.

    Example: apisix-ingress explain 'https://shop.example.org/cart?beta=1' -H 'X-User: 7' -f manifests/
    """
    from apisix_ingress.explain.report import explain as explained
    from apisix_ingress.explain.request import parse_request
    from apisix_ingress.explain.text import lines

    asked = parse_request(url, request, tuple(header or ()), remote_addr, server_port)
    if filename:
        found = _offline(filename, config, cluster)
    else:
        found = _live(config, kubeconfig, admin_url, admin_key, cluster)
    document = explained(
        asked,
        found.records,
        lambda key: found.owners.get(key, ""),
        unapplied=found.unapplied,
        claimants=found.claimants,
    )
    serves = document["outcome"] == "route" and document["answer"]["status"] is None
    if found.note and not serves:
        document["notes"].append(found.note)
    print_report(document, lines(document, verbose=verbose), output)
    raise SystemExit(0 if serves else EXIT_FOUND)


def _offline(paths: list[str], config: Path | None, cluster: str) -> Evidence:
    """Return what manifests give; their problems go to stderr."""
    from apisix_ingress.commands.common.manifests import read_manifests
    from apisix_ingress.diagnostics.claimants import claimants
    from apisix_ingress.diagnostics.collect.live_records import find_cluster
    from apisix_ingress.diagnostics.reports.explain_evidence import Evidence
    from apisix_ingress.wiring.options import translation_options

    settings = offline_settings(config)
    find_cluster(settings, cluster)  # routes go to every cluster, but there has to be one of that name
    found = read_manifests(paths, settings)
    tell([*found.warnings(), *found.problems()])
    outcome = found.outcome
    owners = {key: str(owner) for key, owner in outcome.owners.items()}
    asking = tuple(claimants(outcome.world, translation_options(settings)))
    return Evidence(outcome.bodies(), owners, claimants=asking)


def _live(
    config: Path | None, kubeconfig: str | None, admin_url: str | None, admin_key: str | None, cluster: str
) -> Evidence:
    """Return the records of a gateway cluster, and the desired records if an API server is configured."""
    from apisix_ingress.diagnostics.reports.explain_evidence import of_everything, of_gateway

    settings = settings_for(config, kubeconfig, admin_url=admin_url, admin_key=admin_key)
    if config is None and kubeconfig is None:
        return run_with_progress(lambda step: of_gateway(settings, cluster))
    return run_with_progress(lambda step: of_everything(settings, cluster, step))
