"""`doctor`: checks the environment of the controller, with a remedy for each finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    AdminKeyOption,
    AdminUrlOption,
    ConfigOption,
    KubeconfigOption,
    Report,
    ReportOption,
    colours,
    painted,
)
from apisix_ingress.commands.common.setup import NamespaceOption, print_report, run_with_progress, settings_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from apisix_ingress.diagnostics.doctor.check import Check

_COLOURS = {"OK": "green", "WARN": "yellow", "FAIL": "red", "SKIP": "dim"}


def _account(text: str) -> str:
    namespace, slash, name = text.partition("/")
    if text and not (namespace and slash and name):
        raise typer.BadParameter("must be namespace/name")
    return text


AccountOption = Annotated[
    str,
    typer.Option(
        metavar="NAMESPACE/NAME",
        help="Service account of the controller, whose permissions are checked; by default those of the kubeconfig.",
        show_default=False,
        callback=_account,
    ),
]


def doctor(
    kubeconfig: KubeconfigOption = None,
    admin_url: AdminUrlOption = None,
    admin_key: AdminKeyOption = None,
    namespace: NamespaceOption = None,
    account: AccountOption = "",
    output: ReportOption = Report.text,
    config: ConfigOption = None,
) -> None:
    """Check permissions, CRDs, clocks, keys, plugins and more.

    Checks settings, permissions, CRDs, classes, the leader, clocks, certificates and the webhook; for each gateway its
    address, key, version and plugins. Each finding has a remedy.

    Exit 0 if no check fails (warnings are allowed), 1 if one fails, 2 on an error.

    Example: apisix-ingress doctor --config config.yaml --account apisix-ingress/apisix-ingress
    """
    from apisix_ingress.diagnostics.doctor.report import doctor_document, doctor_lines

    document = doctor_document(_checks(config, kubeconfig, admin_url, admin_key, namespace=namespace, account=account))
    print_report(document, doctor_lines(document), output, paint=_paint)
    raise SystemExit(0 if document["healthy"] else EXIT_FOUND)


def _checks(
    config: Path | None,
    kubeconfig: str | None,
    admin_url: str | None,
    admin_key: str | None,
    *,
    namespace: str | None,
    account: str,
) -> list[Check]:
    from apisix_ingress.diagnostics.doctor.report import examine, refused_settings
    from apisix_ingress.errors import ConfigError

    try:
        settings = settings_for(config, kubeconfig, admin_url=admin_url, admin_key=admin_key, namespace=namespace)
    except ConfigError as error:
        return refused_settings(error)
    return run_with_progress(lambda step: examine(settings, account=account, step=step))


def _paint(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines, each beginning with its level in colour."""
    is_on = colours()
    for line in lines:
        word, space, rest = line.partition(" ")
        yield painted(word, _COLOURS[word], is_on=is_on) + space + rest if word in _COLOURS else line
