"""`diff`: what a sync would create, update and delete in a gateway cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    AdminKeyOption,
    AdminUrlOption,
    ClusterOption,
    ConfigOption,
    KubeconfigOption,
    ManifestsOption,
    Report,
    ReportOption,
    colours,
    painted,
    print_json,
)
from apisix_ingress.commands.common.setup import run_with_progress, settings_for

if TYPE_CHECKING:
    from apisix_ingress.model.json import JsonObject

_COLOURS = {"create": "green", "update": "yellow", "delete": "red", "hold": "red", "refuse": "red", "keep": "dim"}
_SAID = {
    "create": "to create",
    "update": "to update",
    "delete": "to delete",
    "hold": "held back",
    "keep": "kept",
    "refuse": "refused",
}
_CONTEXT = 2
"""Number of equal lines shown around differences."""


def diff(
    filename: ManifestsOption = None,
    admin_url: AdminUrlOption = None,
    admin_key: AdminKeyOption = None,
    cluster: ClusterOption = "",
    kubeconfig: KubeconfigOption = None,
    output: ReportOption = Report.text,
    config: ConfigOption = None,
) -> None:
    """Show what a sync would write to a gateway.

    Objects come from the manifests, or from the API server without -f. Nothing is written; secrets are masked.

    Exit 0 if nothing would be written, 1 if something would, 2 on an error.

    Example: apisix-ingress diff -f manifests/ --admin-url http://127.0.0.1:9180/apisix/admin
    """
    from apisix_ingress.commands.common.both_sides import both_sides
    from apisix_ingress.diagnostics.reports.diff import difference
    from apisix_ingress.model.secrets.redaction import escape

    settings = settings_for(config, kubeconfig, admin_url=admin_url, admin_key=admin_key)
    document = difference(*run_with_progress(lambda step: both_sides(filename or (), settings, cluster, step)))
    if output == Report.json:
        print_json(document)
    else:
        for line, colour in lines(document):
            shown = escape(line)
            print(painted(shown, colour, is_on=colours()) if colour else shown)
    raise SystemExit(EXIT_FOUND if any(change["act"] != "keep" for change in document["changes"]) else 0)


def lines(document: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the text form of the document, each line with its colour, empty for none."""
    for change in document["changes"]:
        name = f" ({change['name']})" if change["name"] else ""
        owner = f" of {change['owner']}" if change["owner"] else ""
        why = f": {change['why']}" if change["why"] else ""
        yield f"{change['act']} {change['record']}{name}{owner}{why}", _COLOURS[change["act"]]
        if change["act"] in ("create", "update"):
            yield from _body_lines(change["before"], change["after"])
    for note in document["notes"]:
        yield f"note: {note}", ""
    told = [f"{count} {_SAID[act]}" for act, count in document["counts"].items()]
    where = f"cluster {document['cluster']} at {document['url']}"
    yield f"{where}: {', '.join([*told, str(document['unchanged']) + ' unchanged'])}", ""


def _body_lines(before: JsonObject | None, after: JsonObject | None) -> Iterator[tuple[str, str]]:
    from difflib import unified_diff

    old, new = _pretty(before), _pretty(after)
    for number, line in enumerate(unified_diff(old, new, lineterm="", n=_CONTEXT)):
        if number < 2:
            continue  # the names of two files
        yield f"  {line}", {"+": "green", "-": "red", "@": "cyan"}.get(line[0], "")


def _pretty(body: JsonObject | None) -> list[str]:
    return json.dumps(body, indent=2, sort_keys=True, ensure_ascii=False).splitlines() if body is not None else []
