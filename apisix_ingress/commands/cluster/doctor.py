"""`doctor`: checks the environment of the controller, with a remedy for each finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from apisix_ingress.commands.arguments.parameters import BadParameter, Option
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    Report,
    ReportOption,
    colours,
    painted,
)
from apisix_ingress.commands.common.setup import print_report
from apisix_ingress.diagnostics.doctor.check import Check
from apisix_ingress.diagnostics.doctor.report import doctor_document, doctor_lines, examine, refused_settings
from apisix_ingress.errors import ConfigError

_COLOURS = {"OK": "green", "WARN": "yellow", "FAIL": "red", "SKIP": "dim"}


def _account(text: str) -> str:
    namespace, slash, name = text.partition("/")
    if text and not (namespace and slash and name):
        raise BadParameter("must be namespace/name")
    return text


AccountOption = Annotated[
    str,
    Option(
        metavar="NAMESPACE/NAME",
        help="Service account of the controller, whose permissions are checked; by default those of the kubeconfig.",
        check=_account,
    ),
]


@connects()
def doctor(
    account: AccountOption = "",
    output: ReportOption = Report.text,
    *,
    connection: Connection,
) -> None:
    """Check permissions, CRDs, clocks, keys, plugins and more.

    Checks settings, permissions, CRDs, classes, the leader, clocks, certificates and the webhook; for each gateway its
    address, key, version and plugins. Each finding has a remedy.

    Exit 0 if no check fails (warnings are allowed), 1 if one fails, 2 on an error.

    Examples:
        apisix-ingress doctor --config config.yaml
        apisix-ingress doctor --account ingress/apisix-ingress --context production
    """
    document = doctor_document(_checks(connection, account))
    print_report(document, doctor_lines(document), output, paint=_paint)
    raise SystemExit(0 if document["healthy"] else EXIT_FOUND)


def _checks(connection: Connection, account: str) -> list[Check]:
    try:
        settings = connection.settings()
    except ConfigError as error:
        return refused_settings(error)
    return connection.run(lambda step: examine(settings, account=account, step=step))


def _paint(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines, each beginning with its level in colour."""
    is_on = colours()
    for line in lines:
        word, space, rest = line.partition(" ")
        yield painted(word, _COLOURS[word], is_on=is_on) + space + rest if word in _COLOURS else line
