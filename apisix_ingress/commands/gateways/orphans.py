"""`orphans`: records of a gateway without an object, and dangling references."""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.commands.common.both_sides import both_sides
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.output import (
    EXIT_FOUND,
    ClusterOption,
    ManifestsOption,
    Report,
    ReportOption,
)
from apisix_ingress.commands.common.setup import print_report
from apisix_ingress.diagnostics.reports.orphans import orphans as found
from apisix_ingress.model.json import JsonObject

_HEADINGS = {
    "orphans": "managed, without an object (the controller deletes them, unless they are unusually many)",
    "kept": "managed, and stay: their object cannot be translated, or a record that stays refers to them",
    "foreign": "of another owner (never touched)",
    "dangling": "refer to a missing record",
}


@connects(controller=False)
def orphans(
    filename: ManifestsOption = None,
    cluster: ClusterOption = "",
    output: ReportOption = Report.text,
    *,
    connection: Connection,
) -> None:
    """List records without an object, and dangling references.

    Objects come from the manifests, or from the API server without -f. Nothing is written.

    Exit 0 if nothing is found, 1 if any orphaned or dangling record is found, 2 on an error.

    Examples:
        apisix-ingress orphans --kubeconfig ~/.kube/config --config config.yaml
    """
    settings = connection.settings()
    document = found(*connection.run(lambda step: both_sides(filename or (), settings, cluster, step)))
    print_report(document, lines(document), output)
    raise SystemExit(EXIT_FOUND if document["orphans"] or document["dangling"] else 0)


def lines(document: JsonObject) -> Iterator[str]:
    """Yield the document as text."""
    for part, heading in _HEADINGS.items():
        if document[part]:
            yield f"{heading}:"
            yield from (f"  {_line(item)}" for item in document[part])
    counts = ", ".join(f"{len(document[part])} {part}" for part in _HEADINGS)
    yield f"cluster {document['cluster']} at {document['url']}: {counts}"


def _line(item: JsonObject) -> str:
    name = f" ({item['name']})" if item["name"] else ""
    owner = f" of {item['owner']}" if item["owner"] else ""
    missing = f": {item['missing']} is missing" if "missing" in item else ""
    holder = f": belongs to controller {item['holder']}" if item.get("holder") else ""
    return f"{item['record']}{name}{owner}{missing}{holder}"
