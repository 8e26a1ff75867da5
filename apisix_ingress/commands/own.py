"""The commands about the program itself: `crds`, `check-config` and `version`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import yaml

import crds as definitions
from apisix_ingress import __version__
from apisix_ingress.commands.arguments.parameters import Argument
from apisix_ingress.commands.common.output import (
    Output,
    OutputOption,
    Report,
    ReportOption,
    print_json,
    print_stderr,
    settings_of,
)
from apisix_ingress.settings.warnings import cautions

FileArgument = Annotated[Path, Argument(metavar="FILE", help="Configuration file (YAML).")]


def crds(output: OutputOption = Output.yaml) -> None:
    """Print the CustomResourceDefinitions.

    Exit 0 always.

    Examples:
        apisix-ingress crds | kubectl apply --server-side -f -
    """
    if output == Output.json:
        print_json({"apiVersion": "v1", "kind": "List", "items": definitions.manifests()})
        return

    yaml.safe_dump_all(definitions.manifests(), sys.stdout, sort_keys=False, explicit_start=True, width=1000)


def check_config(file: FileArgument, output: ReportOption = Report.text) -> None:
    """Validate a configuration file, including the environment.

    Exit 0 if the configuration is valid, 2 if not.

    Examples:
        apisix-ingress check-config config.yaml
    """
    settings = settings_of(file)
    found, names = list(cautions(settings)), [cluster.name for cluster in settings.clusters]
    if output == Report.json:
        print_json({"file": str(file), "clusters": names, "cautions": found})
        return
    print_stderr(f"warning: {line}" for line in found)
    print(f"{file}: ok, gateway clusters: {', '.join(names)}")


def version(output: ReportOption = Report.text) -> None:
    """Print the version.

    Exit 0 always.

    Examples:
        apisix-ingress version
    """
    if output == Report.json:
        print_json({"version": __version__})
    else:
        print(__version__)
