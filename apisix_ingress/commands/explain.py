"""`explain`: which route answers a request, and why the others don't."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from apisix_ingress.commands.asking import offline_settings, print_report, run_with_progress, settings_for
from apisix_ingress.commands.shared import (
    EXIT_FOUND,
    AdminKeyOption,
    AdminUrlOption,
    ClusterOption,
    ConfigOption,
    ManifestsOption,
    Report,
    ReportOption,
    tell,
)

if TYPE_CHECKING:
    from apisix_ingress.model.json import FrozenJson
    from apisix_ingress.model.keys import RecordKey

UrlArgument = Annotated[str, typer.Argument(metavar="URL", help="https://host/path, host/path or /path.")]
HeadersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--header", "-H", metavar="'NAME: VALUE'", help="A request header; may be repeated.", show_default=False
    ),
]
MethodOption = Annotated[str, typer.Option("--request", "-X", metavar="METHOD", help="Method of the request.")]
AddressOption = Annotated[str, typer.Option(help="Address of the client.", show_default=False)]
PortOption = Annotated[int | None, typer.Option(help="Port of the gateway's listener.", show_default=False)]


def explain(
    url: UrlArgument,
    filename: ManifestsOption = None,
    admin_url: AdminUrlOption = None,
    admin_key: AdminKeyOption = None,
    cluster: ClusterOption = "",
    header: HeadersOption = None,
    request: MethodOption = "GET",
    remote_addr: AddressOption = "",
    server_port: PortOption = None,
    output: ReportOption = Report.text,
    config: ConfigOption = None,
) -> None:
    """Tell which route answers a request, and why.

    With -f by the records that manifests give, otherwise by those that a gateway has, whoever made them.

    Exit 0 if a route answers, 1 if none does or if it can't be told, 2 on an error.

    Example: apisix-ingress explain 'https://shop.example.org/cart?beta=1' -H 'X-User: 7' -f manifests/
    """
    from apisix_ingress.explain.report import explain as explained
    from apisix_ingress.explain.request import parse_request
    from apisix_ingress.explain.text import lines

    asked = parse_request(url, request, tuple(header or ()), remote_addr, server_port)
    records, owners = _offline(filename, config, cluster) if filename else _live(config, admin_url, admin_key, cluster)
    document = explained(asked, records, lambda key: owners.get(key, ""))
    print_report(document, lines(document), output)
    raise SystemExit(0 if document["outcome"] == "route" else EXIT_FOUND)


def _offline(
    paths: list[str], config: Path | None, cluster: str
) -> tuple[dict[RecordKey, FrozenJson], dict[RecordKey, str]]:
    """Return the records that manifests give, and the object that each is for; their problems go to stderr."""
    from apisix_ingress.commands.manifests import read_manifests
    from apisix_ingress.snapshot import find_cluster

    settings = offline_settings(config)
    find_cluster(settings, cluster)  # routes go to every cluster, but there has to be one of that name
    found = read_manifests(paths, settings)
    tell([*found.warnings(), *found.problems()])
    return found.outcome.bodies(), {key: str(owner) for key, owner in found.outcome.owners.items()}


def _live(
    config: Path | None, admin_url: str | None, admin_key: str | None, cluster: str
) -> tuple[dict[RecordKey, FrozenJson], dict[RecordKey, str]]:
    """Return the records of a gateway cluster, and the object that each says it is for."""
    from apisix_ingress.model.origins import origin
    from apisix_ingress.snapshot import read_snapshot

    settings = settings_for(config, None, admin_url=admin_url, admin_key=admin_key)
    records = dict(run_with_progress(lambda step: read_snapshot(settings, cluster)).bodies)
    owners = {key: str(owner) for key, body in records.items() if (owner := origin(key, body))}
    return records, owners
