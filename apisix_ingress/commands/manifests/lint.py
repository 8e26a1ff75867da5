"""`lint`: mistakes in manifests, by code, file and line."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    ConfigOption,
    FilesOption,
    PathsArgument,
    colours,
    fail,
    given_paths,
    one_of,
    painted,
    print_json,
    tell,
)
from apisix_ingress.commands.common.setup import offline_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apisix_ingress.lint.findings import Finding


class Form(StrEnum):
    """Formats of findings."""

    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"


class Threshold(StrEnum):
    """The lowest severity that makes the command fail."""

    error = "error"
    warning = "warning"


SuppressOption = Annotated[
    list[str] | None,
    typer.Option(
        "--suppress",
        metavar="CODE[=OBJECT]",
        help="Suppress findings; may be repeated. OBJECT as 'ApisixRoute default/web'.",
        show_default=False,
    ),
]
FormOption = Annotated[str, one_of(Form)]
ThresholdOption = Annotated[
    str,
    typer.Option(
        "--failure-threshold",
        metavar="|".join(Threshold),
        help="Lowest severity that makes lint exit with 1.",
        autocompletion=lambda: list(Threshold),
    ),
]


def lint(
    paths: PathsArgument = None,
    filename: FilesOption = None,
    output: FormOption = Form.text,
    suppress: SuppressOption = None,
    failure_threshold: ThresholdOption = Threshold.warning,
    config: ConfigOption = None,
) -> None:
    """Find mistakes in manifests, by code, file and line.

    Neither a cluster nor a gateway is needed. docs/reference/codes describes the codes.

    Exit 0 if nothing is found, 1 if something of at least the threshold is, 2 on an error.

    Example: apisix-ingress lint manifests/ --suppress 'AIX0302=ApisixTls default/web'
    """
    given = given_paths(paths, filename, "lint manifests/")
    if failure_threshold not in tuple(Threshold):
        fail(f"--failure-threshold {failure_threshold}: must be one of {', '.join(Threshold)}")
    from apisix_ingress.kube.manifests.loader import load
    from apisix_ingress.lint.findings import find, parse_suppression
    from apisix_ingress.wiring.options import translation_options

    try:
        suppressions = [parse_suppression(text) for text in suppress or ()]
    except ValueError as error:
        fail(f"--suppress: {error}")
    options = translation_options(offline_settings(config))
    loaded = load(given)
    found = find(loaded, options)
    kept = [item for item in found if not any(each.hits(item) for each in suppressions)]
    _print(kept, output)
    tell(f"warning: no objects in {path}" for path in loaded.empty)
    counted = [item for item in kept if failure_threshold == Threshold.warning or item.level == "error"]
    raise SystemExit(EXIT_FOUND if counted else 0)


def _print(found: Sequence[Finding], output: str) -> None:
    from apisix_ingress.lint.formats import as_json, as_sarif, github_lines, text_lines
    from apisix_ingress.model.secrets.redaction import escape

    match output:
        case Form.json:
            print_json(as_json(found))
        case Form.sarif:
            print_json(as_sarif(found))
        case Form.github:
            sys.stdout.writelines(escape(line) + "\n" for line in github_lines(found))
        case _:
            colour = {"error": "red", "warning": "yellow"}
            for line, level in text_lines(found):
                print(painted(escape(line), colour.get(level, "dim"), is_on=colours()))
