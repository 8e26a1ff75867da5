"""`translate`: prints the records of manifests."""

from __future__ import annotations

import sys
from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Option
from apisix_ingress.commands.common.manifests import read_manifests
from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    ConfigOption,
    FilesOption,
    Output,
    OutputOption,
    PathsArgument,
    given_paths,
    print_document,
    print_stderr,
)
from apisix_ingress.commands.common.setup import offline_settings
from apisix_ingress.diagnostics.collect.offline import document
from apisix_ingress.diagnostics.reports.references import with_references


def translate(
    paths: PathsArgument = None,
    filename: FilesOption = None,
    output: OutputOption = Output.yaml,
    config: ConfigOption = None,
    show_secrets: Annotated[bool, Option("--show-secrets", help="Also print private keys.")] = False,
) -> None:
    """Print the records of manifests.

    Neither a cluster nor a gateway is needed.

    Exit 0 if nothing is wrong, 1 if there are problems, 2 on an error.

    Examples:
        apisix-ingress translate -f examples/quickstart -o json
    """
    given = given_paths(paths, filename, "translate -f examples/quickstart")

    found = read_manifests(given, offline_settings(config))
    shown = document(found.outcome, found.loaded, show_secrets=show_secrets)
    print_document({**shown, "problems": with_references(shown["problems"])}, output)
    # On a terminal, the document already ends with the problems.
    print_stderr([*found.warnings(), *(() if sys.stdout.isatty() else found.problems())])
    raise SystemExit(EXIT_FOUND if shown["problems"] else 0)
