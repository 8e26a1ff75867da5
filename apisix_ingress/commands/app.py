"""The typer application: each command with its options and its help. The modules of the commands implement them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from apisix_ingress.commands.cluster.bundle import bundle
from apisix_ingress.commands.cluster.doctor import doctor
from apisix_ingress.commands.cluster.status import status
from apisix_ingress.commands.cluster.tree import tree
from apisix_ingress.commands.cluster.wait import wait
from apisix_ingress.commands.common.connection import connects
from apisix_ingress.commands.common.help import HelpCommand, HelpGroup
from apisix_ingress.commands.common.output import (
    AdminKeyOption,
    AdminUrlOption,
    ConfigOption,
    KubeconfigOption,
    Output,
    OutputOption,
    Report,
    ReportOption,
    print_json,
    settings_of,
    tell,
)
from apisix_ingress.commands.gateways.adopt import adopt
from apisix_ingress.commands.gateways.diff import diff
from apisix_ingress.commands.gateways.explain import explain
from apisix_ingress.commands.gateways.orphans import orphans
from apisix_ingress.commands.gateways.verify import verify
from apisix_ingress.commands.manifests.lint import lint
from apisix_ingress.commands.manifests.migrate import migrate
from apisix_ingress.commands.manifests.translate import translate
from apisix_ingress.commands.run import start

app = typer.Typer(
    name="apisix-ingress",
    cls=HelpGroup,
    help="Ingress controller for Kubernetes: Ingress and apisix.apache.org/v2 objects become Apache APISIX records.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


for _command in (
    connects(lint, gateways=False, controller=False),
    connects(migrate, gateways=False, controller=False),
    translate,
    connects(explain, controller=False),
    connects(diff, controller=False),
    connects(orphans, controller=False),
    connects(adopt, controller=False),
    connects(status),
    connects(tree, gateways=False, controller=False),
    connects(wait),
    connects(doctor),
    connects(bundle),
    connects(verify, gateways=False, controller=False),
):
    app.command(cls=HelpCommand)(_command)


@app.command(cls=HelpCommand)
def run(
    config: ConfigOption = None,
    kubeconfig: KubeconfigOption = None,
    admin_url: AdminUrlOption = None,
    admin_key: AdminKeyOption = None,
    manifests: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Manifests to watch instead of an API server.", show_default=False),
    ] = None,
    http_listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Listen address of health and metrics.", show_default=False),
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.", show_default=False)
    ] = None,
    log_format: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="auto, console or json.", show_default=False)
    ] = None,
) -> None:
    """Run the controller until SIGTERM, SIGINT or SIGHUP.

    Exit 0 after a requested stop, 2 if it cannot start.

    Examples:
        apisix-ingress run --config config.yaml
        apisix-ingress run --kubeconfig ~/.kube/config --log-level debug
    """
    start(
        config=None if config is None else str(config),
        kubeconfig=kubeconfig,
        admin_url=admin_url,
        admin_key=admin_key,
        manifests=manifests,
        http_listen=http_listen,
        log_level=log_level,
        log_format=log_format,
    )


@app.command(cls=HelpCommand)
def crds(output: OutputOption = Output.yaml) -> None:
    """Print the CustomResourceDefinitions.

    Exit 0 always.

    Examples:
        apisix-ingress crds | kubectl apply --server-side -f -
    """
    import crds as definitions

    if output == Output.json:
        print_json({"apiVersion": "v1", "kind": "List", "items": definitions.manifests()})
        return
    import yaml

    yaml.safe_dump_all(definitions.manifests(), sys.stdout, sort_keys=False, explicit_start=True, width=1000)


@app.command("check-config", cls=HelpCommand)
def check_config(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Configuration file (YAML).")],
    output: ReportOption = Report.text,
) -> None:
    """Validate a configuration file, including the environment.

    Exit 0 if the configuration is valid, 2 if not.

    Examples:
        apisix-ingress check-config config.yaml
    """
    from apisix_ingress.settings.warnings import cautions

    settings = settings_of(file)
    found, names = list(cautions(settings)), [cluster.name for cluster in settings.clusters]
    if output == Report.json:
        print_json({"file": str(file), "clusters": names, "cautions": found})
        return
    tell(f"warning: {line}" for line in found)
    print(f"{file}: ok, gateway clusters: {', '.join(names)}")


@app.command(cls=HelpCommand)
def version(output: ReportOption = Report.text) -> None:
    """Print the version.

    Exit 0 always.

    Examples:
        apisix-ingress version
    """
    from apisix_ingress import __version__

    if output == Report.json:
        print_json({"version": __version__})
    else:
        print(__version__)
