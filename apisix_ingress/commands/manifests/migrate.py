"""`migrate`: reports how Ingresses of ingress-nginx would be served, from manifests or from a cluster."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, NoReturn

from apisix_ingress.commands.arguments.parameters import Option
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.output import (
    EXIT_ERROR,
    EXIT_FOUND,
    FilesOption,
    PathsArgument,
    fail,
    one_of,
    print_lines,
    print_report_json,
    print_stderr,
)
from apisix_ingress.commands.common.setup import Step, offline_settings, print_report
from apisix_ingress.diagnostics.collect.cluster_state import api_server
from apisix_ingress.diagnostics.collect.inventory import Inventory, take_inventory
from apisix_ingress.diagnostics.collect.offline import stored
from apisix_ingress.diagnostics.collect.rejected_records import rejected_records
from apisix_ingress.diagnostics.doctor.check import Check
from apisix_ingress.diagnostics.doctor.nginx_preflight import preflight
from apisix_ingress.diagnostics.doctor.report import doctor_document, doctor_lines
from apisix_ingress.diagnostics.reports.migration import as_json, markdown_lines, text_lines
from apisix_ingress.diagnostics.reports.native_files import DIFFERENCES, write_files
from apisix_ingress.kube.manifests.loader import load
from apisix_ingress.lint.structure import structure_problems
from apisix_ingress.model.objects import CustomObject, IngressClass, Meta
from apisix_ingress.settings import Settings
from apisix_ingress.state.world import World
from apisix_ingress.statuspage.migration_page import migration_page
from apisix_ingress.webhook.schemas.published import published_book
from apisix_ingress.wiring.options import translation_options
from translation.core.options import Options
from translation.nginx.migration import REFERRED, MigrationReport, migration_report
from translation.nginx.native.write import TARGETS, native_manifests

EXIT_REFUSED = 3

FormatOption = Annotated[str, one_of(("text", "json", "markdown", "html"))]
ConfigMapOption = Annotated[
    str,
    Option(
        "--config-map",
        metavar="NAMESPACE/NAME",
        help="ConfigMap of ingress-nginx; default: ingress_nginx.config_map of the configuration.",
    ),
]
WriteOption = Annotated[
    Path | None,
    Option("--write", metavar="DIR", help="Write native manifests to this new directory."),
]
TargetOption = Annotated[str, one_of(("apisixroute", "httproute"), "--to", description="Kind of the native manifests.")]
PreflightOption = Annotated[
    bool, Option("--preflight", help="Check the cluster instead: classes, flags, owners, load balancers, status.")
]


@connects(gateways=False, controller=False)
def migrate(
    paths: PathsArgument = None,
    filename: FilesOption = None,
    output: FormatOption = "text",
    write: WriteOption = None,
    to: TargetOption = "apisixroute",
    config_map: ConfigMapOption = "",
    preflight: PreflightOption = False,
    *,
    connection: Connection,
) -> None:
    """Report how Ingresses of ingress-nginx would be served.

    The report lists the support for each annotation, Ingress and host. Without PATH, the objects are read from the API
    server; nothing is written there. Manifests should include Services, Secrets, ConfigMaps and IngressClasses. Set the
    flags of ingress-nginx in the section ingress_nginx of the configuration.

    With --write, native manifests for the same traffic are written to DIR. DIR/DIFFERENCES.md lists the settings that
    they cannot express.

    With --preflight, the cluster is checked instead. The exit status is 1 if a check fails.

    Exit 0 if everything is exact, 1 if something is approximate, 3 if something is refused, an object that an Ingress
    refers to is missing or an Ingress has an unknown class, 2 on an error or if a file or an Ingress in it cannot be
    read.

    Examples:
        apisix-ingress migrate manifests/ -o html > report.html
        apisix-ingress migrate --kubeconfig ~/.kube/config
    """
    given = [*(paths or ()), *(filename or ())]
    if preflight:
        _preflight(_enabled(connection.settings(), config_map), output, given, connection)
    settings = _enabled(offline_settings(connection.config) if given else connection.settings(), config_map)
    unread: tuple[str, ...] = ()
    if given:
        world, options, unread = _of_files(given, settings)
    else:
        world, options = _of_api(settings, connection)
    report = _report(world, options, unread, is_stored=not given)
    _print(report, output)
    closed = write is not None and _write(world, options, report, write, to)
    if report.unread:
        raise SystemExit(EXIT_ERROR)
    if closed or not report.is_complete:
        raise SystemExit(EXIT_REFUSED)
    raise SystemExit({"refused": EXIT_REFUSED, "approximate": EXIT_FOUND}.get(report.level, 0))


def _enabled(settings: Settings, config_map: str) -> Settings:
    """Return the settings with the provider enabled."""
    changes: dict[str, object] = {"enabled": True}
    if config_map:
        if config_map.count("/") != 1 or not all(config_map.split("/")):
            fail(f"--config-map {config_map}: must be NAMESPACE/NAME")
        changes["config_map"] = config_map
    return settings.model_copy(update={"ingress_nginx": settings.ingress_nginx.model_copy(update=changes)})


def _of_files(paths: list[str], settings: Settings) -> tuple[World, Options, tuple[str, ...]]:
    """Return the objects of manifests, and what cannot be read.

    Files often lack the class, so one with the default name is assumed.
    """
    options = translation_options(settings)
    nginx = options.nginx
    assert nginx is not None
    loaded = load(paths)
    if loaded.empty:
        fail("\n".join(f"no manifests in {path}: correct the path" for path in loaded.empty))
    named = IngressClass(Meta("IngressClass", "", nginx.ingress_class), nginx.controller_class)
    unread = tuple(map(str, (*loaded.errors, *(each for each in loaded.unread if "Ingress" in each.message))))
    return stored([named, *loaded.objects], options), options, unread


def _of_api(settings: Settings, connection: Connection) -> tuple[World, Options]:
    """Return the objects of an API server; what cannot be read is reported on stderr."""

    async def read(step: Step) -> Inventory:
        async with api_server(settings) as api:
            return await take_inventory(api, settings, step=step)

    found = connection.run(read)
    print_stderr(f"warning: {kind}: {why}" for kind, why in sorted(found.unread.items()))
    if "Ingress" in found.unread:
        fail("the report needs the Ingresses of the cluster")
    return found.world, found.options


def _report(world: World, options: Options, unread: tuple[str, ...], *, is_stored: bool) -> MigrationReport:
    """Return the report; Ingresses that an API server has stored are valid for it."""
    nginx, items = options.nginx, _ingresses(world)
    assert nginx is not None
    read = [kind for kind in REFERRED if any(True for _ in world.stores[kind].values())]
    rejected = rejected_records(items, world, options, nginx, published_book())
    for key, problem in () if is_stored else structure_problems(items, ()):
        why = f"the API server rejects {problem.path}: {problem.message}"
        rejected[key] = (*rejected.get(key, ()), why)
    return migration_report(items, world.view(), options, nginx, read=read, rejected=rejected, unread=unread)


def _ingresses(world: World) -> list[CustomObject]:
    return [item for item in world.stores["Ingress"].values() if isinstance(item, CustomObject)]


def _write(world: World, options: Options, report: MigrationReport, folder: Path, target: str) -> bool:
    """Write the native manifests; return whether a path is closed or a setting is missing."""
    assert options.nginx is not None
    refused = {each.key: "; ".join(each.why_not_served()) for each in report.ingresses if any(each.why_not_served())}
    items = _ingresses(world)
    found = native_manifests(items, world.view(), options, options.nginx, TARGETS[target], refused=refused)
    try:
        files = write_files(found, folder)
    except FileExistsError:
        fail(f"--write {folder}: the directory is not empty; use a new one")
    except OSError as error:
        fail(f"--write {folder}: {error.strerror}")
    counts = Counter(each.effect for each in found.notes)
    effects = ", ".join(f"{effect}: {count}" for effect, count in sorted(counts.items()))
    summary = effects or ("no differences" if found.hosts else "no hosts")
    number = "1 file" if len(files) == 1 else f"{len(files)} files"
    print_stderr([f"wrote {number} to {folder}; {summary}; see {folder / DIFFERENCES}"])
    return bool(counts["closed"] or counts["not written"])


def _preflight(settings: Settings, output: str, given: list[str], connection: Connection) -> NoReturn:
    """Run the preflight checks and exit."""
    if given or output not in ("text", "json"):
        fail("--preflight reads the API server: it accepts no PATH, and only the formats text and json")

    async def check(step: Step) -> list[Check]:
        async with api_server(settings) as api:
            return await preflight(api, settings, await take_inventory(api, settings, step=step))

    document = doctor_document(connection.run(check))
    print_report(document, doctor_lines(document), output)
    raise SystemExit(0 if document["healthy"] else EXIT_FOUND)


def _print(report: MigrationReport, output: str) -> None:
    match output:
        case "json":
            print_report_json(as_json(report))
        case "markdown":
            print_lines(markdown_lines(report))
        case "html":
            sys.stdout.write(migration_page(report))
        case _:
            print_lines(text_lines(report))
