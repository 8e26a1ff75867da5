"""`migrate`: what becomes of Ingresses of ingress-nginx."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    ConfigOption,
    FilesOption,
    PathsArgument,
    given_paths,
    one_of,
    print_json,
    tell,
)
from apisix_ingress.commands.common.setup import offline_settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apisix_ingress.model.objects import KubeObject
    from translation.core.options import Options
    from translation.nginx.migration import MigrationReport


class Form(StrEnum):
    """Formats of the report."""

    text = "text"
    json = "json"
    markdown = "markdown"
    html = "html"


FormOption = Annotated[str, one_of(Form)]

EXIT_REFUSED = 3


def migrate(
    paths: PathsArgument = None,
    filename: FilesOption = None,
    output: FormOption = Form.text,
    config: ConfigOption = None,
) -> None:
    """Report how Ingresses of ingress-nginx would be served.

    The report has a verdict on each annotation, Ingress and host. Neither a cluster nor a gateway is needed; include
    Services, Secrets, ConfigMaps and IngressClasses for a complete
    report. The section ingress_nginx of the configuration has the flags of ingress-nginx.

    Exit 0 if everything is exact, 1 if something is approximate, 3 if something is refused, 2 on an error.

    Example: apisix-ingress migrate manifests/ -o html > report.html
    """
    given = given_paths(paths, filename, "migrate manifests/")
    from apisix_ingress.kube.manifests.loader import load
    from apisix_ingress.wiring.options import translation_options
    from translation.nginx.options import NginxOptions

    options = translation_options(offline_settings(config))
    loaded = load(given)
    tell(f"error: {error}" for error in loaded.errors)
    report = _report(loaded.objects, replace(options, nginx=options.nginx or NginxOptions()))
    _print(report, output)
    raise SystemExit({"refused": EXIT_REFUSED, "approximate": EXIT_FOUND}.get(report.level, 0))


def _report(objects: Iterable[KubeObject], options: Options) -> MigrationReport:
    from apisix_ingress.diagnostics.collect.offline import stored
    from apisix_ingress.model.objects import CustomObject, IngressClass, Meta
    from translation.nginx.migration import migration_report

    nginx = options.nginx
    assert nginx is not None
    # Files often lack the class; the name that ingress-nginx gives it tells.
    named = IngressClass(Meta("IngressClass", "", nginx.ingress_class), nginx.controller_class)
    world = stored([named, *objects], options)
    items = [item for item in world.stores["Ingress"].values() if isinstance(item, CustomObject)]
    return migration_report(items, world.view(), options, nginx)


def _print(report: MigrationReport, output: str) -> None:
    from apisix_ingress.diagnostics.reports.migration import as_html, as_json, markdown_lines, text_lines
    from apisix_ingress.model.secrets.redaction import escape

    match output:
        case Form.json:
            print_json(as_json(report))
        case Form.markdown:
            print("\n".join(escape(line, "\n") for line in markdown_lines(report)))
        case Form.html:
            sys.stdout.write(as_html(report))
        case _:
            print("\n".join(escape(line, "\n") for line in text_lines(report)))
