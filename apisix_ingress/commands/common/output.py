"""Shared by the commands: options, exit statuses, formats, and how mistakes are reported."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NoReturn

from apisix_ingress.commands.arguments.parameters import Argument, Option
from apisix_ingress.diagnostics.reports.references import with_references
from apisix_ingress.model.formats.yaml_output import print_yaml
from apisix_ingress.model.secrets.redaction import escape, escape_in_quotes
from apisix_ingress.settings import load_settings

EXIT_FOUND = 1
"""The command succeeded and found something: problems, a difference, no route."""
EXIT_ERROR = 2
"""The command failed."""
EXIT_UNCHECKED = 3
"""The command succeeded and found nothing, but something was not checked."""


class Output(StrEnum):
    """Formats of printed documents."""

    yaml = "yaml"
    json = "json"


class Report(StrEnum):
    """Formats of reports."""

    text = "text"
    json = "json"


ConfigOption = Annotated[Path | None, Option("--config", metavar="FILE", help="Configuration file (YAML).")]
FilesOption = Annotated[
    list[str] | None,
    Option("--filename", "-f", metavar="PATH", help="The same as PATH; may be repeated."),
]
PathsArgument = Annotated[
    list[str] | None,
    Argument(metavar="PATH", help="Manifest files or directories; - is stdin."),
]
AdminUrlOption = Annotated[str | None, Option(metavar="URL", help="URL of the Admin API.")]
AdminKeyOption = Annotated[str | None, Option(metavar="KEY", help="Admin key; safer in the environment.")]
ManifestsOption = Annotated[
    list[str] | None,
    Option("--filename", "-f", metavar="PATH", help="Manifests, a file or a folder; - is stdin."),
]
ClusterOption = Annotated[str, Option("--cluster", metavar="NAME", help="Gateway cluster; by default the first.")]
EveryClusterOption = Annotated[str, Option("--cluster", metavar="NAME", help="Gateway cluster; by default every one.")]
ApplyOption = Annotated[bool, Option("--apply", help="Write; without it, only print what would be written.")]
KubeconfigOption = Annotated[str | None, Option(metavar="FILE", help="Kubeconfig file.")]


def one_of(words: Iterable[str], *names: str, description: str = "Format.") -> Option:
    """Return an option that accepts one of several values, by default `-o`."""
    known = tuple(str(word) for word in words)
    return Option(*(names or ("--output", "-o")), metavar="|".join(known), help=description, words=known)


OutputOption = Annotated[str, one_of(Output)]
RunningOption = Annotated[
    str,
    Option(
        "--url",
        metavar="URL",
        help="Query the leader at this address, e.g. http://localhost:8080.",
    ),
]
"""The running controller that a command asks instead of the API server and the gateways."""
ReportOption = Annotated[str, one_of(Report)]


def given_paths(paths: list[str] | None, filename: list[str] | None, example: str) -> list[str]:
    """Return the manifests in arguments and options; without any, end with an example."""
    found = [*(paths or ()), *(filename or ())]
    return found or fail(f"no manifests given, e.g. apisix-ingress {example}")


def fail(message: str) -> NoReturn:
    """End with an error without control characters; one line of text is one line of the message."""
    for line in message.removesuffix("\n").split("\n"):
        print(f"error: {escape(line)}", file=sys.stderr)
    raise SystemExit(EXIT_ERROR)


def print_stderr(lines: Iterable[str]) -> None:
    """Print lines to stderr, whatever the command prints."""
    for line in lines:
        print(escape(line), file=sys.stderr)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines without control characters."""
    for line in lines:
        print(escape(line))


def colours(stream: Any = None) -> bool:
    """Return whether a stream, by default stdout, supports colours: a terminal without NO_COLOR (no-color.org)."""
    target = sys.stdout if stream is None else stream
    return bool(target.isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, colour: str, *, is_on: bool) -> str:
    """Return a text in one of the colours red, green, yellow, cyan and dim, or as it is."""
    codes = {"red": 31, "green": 32, "yellow": 33, "cyan": 36, "dim": 2}
    return f"\x1b[{codes[colour]}m{text}\x1b[0m" if is_on else text


def print_report_json(document: Any) -> None:
    """Print a report as JSON, with object references of one shape."""
    print_json(with_references(document))


def print_json(document: Any) -> None:
    """Print a document as JSON, with control characters as escape sequences of JSON."""
    print(escape_in_quotes(json.dumps(document, indent=2, ensure_ascii=False)))


def settings_of(config: Path | None, overrides: dict[str, Any] | None = None) -> Any:
    """Return the settings of file, environment and flags."""
    return load_settings(config, overrides or {}, os.environ)


def print_document(document: dict[str, Any], output: str) -> None:
    """Print a document as JSON or YAML."""
    if output == Output.json:
        print_json(document)
    else:
        print_yaml(document, sys.stdout)
