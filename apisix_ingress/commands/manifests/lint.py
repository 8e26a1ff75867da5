"""`lint`: mistakes in manifests, by code, file and line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Option
from apisix_ingress.commands.common.completions import complete_codes
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    EXIT_UNCHECKED,
    FilesOption,
    PathsArgument,
    colours,
    fail,
    given_paths,
    one_of,
    painted,
    print_json,
    print_lines,
    print_report_json,
    print_stderr,
)
from apisix_ingress.commands.common.setup import Step, offline_settings
from apisix_ingress.diagnostics.collect.cluster_state import api_server
from apisix_ingress.diagnostics.collect.inventory import Inventory, take_inventory
from apisix_ingress.kube.manifests.loader import load
from apisix_ingress.lint.assumed import NOTHING, assume
from apisix_ingress.lint.findings import Finding, find, parse_suppression
from apisix_ingress.lint.formats import as_json, as_sarif, github_lines, text_lines
from apisix_ingress.lint.plugins import plugin_rules
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.model.secrets.redaction import escape
from apisix_ingress.settings import Settings
from apisix_ingress.wiring.options import translation_options

SuppressOption = Annotated[
    list[str] | None,
    Option(
        "--suppress",
        metavar="CODE[=OBJECT]",
        help="Suppress findings; may be repeated. OBJECT as 'ApisixRoute default/web'.",
        complete=complete_codes,
    ),
]
FindingsOption = Annotated[str, one_of(("text", "json", "sarif", "github"))]
ThresholdOption = Annotated[
    str,
    one_of(("error", "warning"), "--failure-threshold", description="Lowest severity that makes lint exit with 1."),
]


ApisixOption = Annotated[
    str,
    Option(
        "--apisix",
        metavar="VERSION",
        help="Version of APISIX to check plugins for, e.g. 3.18; none: do not check plugins.",
    ),
]
UncheckedOption = Annotated[
    bool, Option("--allow-unchecked", help="Exit with 0 although something was not checked; it is still listed.")
]
EmptyOption = Annotated[bool, Option("--allow-empty", help="Accept folders and files without manifests.")]
LiveOption = Annotated[bool, Option("--live", help="Also read the objects of the API server.")]


@connects(gateways=False, controller=False)
def lint(
    paths: PathsArgument = None,
    filename: FilesOption = None,
    output: FindingsOption = "text",
    suppress: SuppressOption = None,
    failure_threshold: ThresholdOption = "warning",
    apisix: ApisixOption = "",
    live: LiveOption = False,
    allow_unchecked: UncheckedOption = False,
    allow_empty: EmptyOption = False,
    *,
    connection: Connection,
) -> None:
    """Find mistakes in manifests, by code, file and line.

    Neither a cluster nor a gateway is needed: plugins are checked against the schemas of a version of APISIX that come
    with the program. With --live, the objects of the API server are read too, so that manifests may refer to them.
    docs/reference/codes describes the codes.

    What was not checked is listed with the reason, as a note: an object of another class or of an unsupported kind, a
    route whose Gateway or Services are not among the files. Such a route is checked in every other respect.

    Exit 0 if nothing is found, 1 if something of at least the threshold is, 2 on an error or for a folder without
    manifests, 3 if nothing is found but something was not checked.

    Examples:
        apisix-ingress lint manifests/
        apisix-ingress lint manifests/ --allow-unchecked
        apisix-ingress lint manifests/ --live --context production
        apisix-ingress lint manifests/ --suppress 'AIX0302=ApisixTls default/web'
    """
    given = given_paths(paths, filename, "lint manifests/")

    try:
        suppressions = [parse_suppression(text) for text in suppress or ()]
    except ValueError as error:
        fail(f"--suppress: {error}")
    settings = connection.settings() if live else offline_settings(connection.config)
    rules, loaded, options = plugin_rules(apisix), load(given), translation_options(settings)
    _check_empty(loaded.empty, allowed=allow_empty, is_all=len(loaded.empty) == len(given))
    others = _stored_objects(settings, connection) if live else ()
    assumed = NOTHING if live else assume(loaded.objects, options)
    found = find(loaded, options, plugins=rules, live=others, assumed=assumed)
    kept = [item for item in found if not any(each.hits(item) for each in suppressions)]
    _print(kept, output)
    levels = {item.level for item in kept}
    if levels & ({"error", "warning"} if failure_threshold == "warning" else {"error"}):
        raise SystemExit(EXIT_FOUND)
    raise SystemExit(EXIT_UNCHECKED if "note" in levels and not allow_unchecked else 0)


def _check_empty(paths: Sequence[str], *, allowed: bool, is_all: bool) -> None:
    """End the command if a folder or all files have no manifests: the name is probably wrong."""
    wrong = [path for path in paths if is_all or not Path(path).is_file()]
    if wrong and not allowed:
        fail("\n".join(f"no manifests in {path}: correct the path, or add --allow-empty" for path in wrong))
    print_stderr(f"warning: no objects in {path}" for path in paths)


def _stored_objects(settings: Settings, connection: Connection) -> list[KubeObject]:
    """Return the objects of the API server; kinds that could not be read are named on stderr."""

    async def read(step: Step) -> Inventory:
        async with api_server(settings) as api:
            return await take_inventory(api, settings, step=step)

    found = connection.run(read)
    print_stderr(f"warning: cannot read {kind}: {reason}" for kind, reason in sorted(found.unread.items()))
    return [item for store in found.world.stores.values() for item in store.values()]


def _print(found: Sequence[Finding], output: str) -> None:
    match output:
        case "json":
            print_report_json(as_json(found))
        case "sarif":
            print_json(as_sarif(found))
        case "github":
            print_lines(github_lines(found))
        case _:
            colour = {"error": "red", "warning": "yellow"}
            for line, level in text_lines(found):
                print(painted(escape(line), colour.get(level, "dim"), is_on=colours()))
