"""`diff`: what a sync would create, update and delete in each gateway cluster."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import unified_diff
from itertools import islice
from typing import Annotated

from apisix_ingress.commands.arguments.parameters import Option
from apisix_ingress.commands.common.both_sides import both_sides
from apisix_ingress.commands.common.connection import Connection, connects
from apisix_ingress.commands.common.output import (
    EXIT_ERROR,
    EXIT_FOUND,
    EveryClusterOption,
    ManifestsOption,
    one_of,
    print_report_json,
    print_stderr,
)
from apisix_ingress.commands.common.setup import Step, print_painted
from apisix_ingress.diagnostics.collect.rejections import with_rejections
from apisix_ingress.diagnostics.reports.diff import difference
from apisix_ingress.diagnostics.reports.status_table import table
from apisix_ingress.errors import GatewayError
from apisix_ingress.model.formats.markdown import fence_of, literal
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.secrets.redaction import escape

_RED = ("delete", "hold", "refuse", "reject")
_COLOURS = {"create": "green", "update": "yellow", "keep": "dim", **dict.fromkeys(_RED, "red")}
_SAID = {
    "create": "to create",
    "update": "to update",
    "delete": "to delete",
    "hold": "held back",
    "keep": "kept",
    "refuse": "refused",
    "reject": "rejected by the gateway",
}
_WITH_BODIES = ("create", "update", "reject")
_HEADER = ("CHANGE", "RECORD", "NAME", "OBJECT", "FIELDS")
_CONTEXT = 2
"""Number of equal lines shown around differences."""

_MOST_COMPARED = 2_000
"""Lines of a body whose differences are searched one by one, which can take quadratic time."""

FormatOption = Annotated[str, one_of(("text", "json", "markdown"))]
PruneOption = Annotated[
    bool, Option("--prune", help="The manifests are all objects: records of objects that are not in them are deleted.")
]
StatOption = Annotated[bool, Option("--stat", help="Only counts and names, without bodies.")]


@connects(controller=False)
def diff(
    filename: ManifestsOption = None,
    cluster: EveryClusterOption = "",
    prune: PruneOption = False,
    stat: StatOption = False,
    output: FormatOption = "text",
    *,
    connection: Connection,
) -> None:
    """Show what a sync would write to each gateway cluster, or to the one in --cluster.

    Objects come from the API server; manifests show what would change if they were applied to it. With --prune, the
    manifests are all objects, and the API server is not read. Nothing is written; secrets are masked.

    Exit 0 if nothing would be written, 1 if something would, 2 on an error or if a gateway cluster does not respond.

    Examples:
        apisix-ingress diff -f manifests/ --config config.yaml
        apisix-ingress diff -f manifests/ --prune --config config.yaml
        apisix-ingress diff --stat --kubeconfig ~/.kube/config
        apisix-ingress diff -f manifests/ -o markdown >> $GITHUB_STEP_SUMMARY
    """
    settings = connection.settings()
    names = [cluster] if cluster else [each.name for each in settings.clusters]
    report = _once()

    async def read(step: Step) -> list[JsonObject | GatewayError]:
        return [await compared(name, step) for name in names]

    async def compared(name: str, step: Step) -> JsonObject | GatewayError:
        try:
            wanted, snapshot = await both_sides(filename or (), settings, name, step, whole=prune, report=report)
            step(f"asking gateway cluster {name} whether it would accept the records")
            return difference(wanted, await with_rejections(wanted, snapshot, settings))
        except GatewayError as error:
            return error

    found = connection.run(read)
    failed = [each for each in found if isinstance(each, GatewayError)]
    documents = [each for each in found if not isinstance(each, GatewayError)]
    if not documents:
        raise failed[0]
    _print(documents, output, stat=stat)
    print_stderr(f"error: {each}" for each in failed)
    if failed:
        raise SystemExit(EXIT_ERROR)
    changes = (change for document in documents for change in document["changes"])
    raise SystemExit(EXIT_FOUND if any(change["act"] != "keep" for change in changes) else 0)


def _once() -> Callable[[Iterable[str]], None]:
    """Return a function that prints lines to stderr, each once: objects have the same problems for every cluster."""
    shown: set[str] = set()

    def report(lines: Iterable[str]) -> None:
        new = [line for line in dict.fromkeys(lines) if line not in shown]
        shown.update(new)
        print_stderr(new)

    return report


def _print(documents: Sequence[JsonObject], output: str, *, stat: bool) -> None:
    """Print one document for each gateway cluster; in JSON, the first contains the others."""
    match output:
        case "json":
            first, *others = map(without_bodies, documents) if stat else documents
            print_report_json({**first, "elsewhere": others})
        case "markdown":
            print("\n\n".join("\n".join(map(escape, markdown_lines(each, stat=stat))) for each in documents))
        case _:
            for each in documents:
                print_painted(stat_lines(each) if stat else lines(each))


def without_bodies(document: JsonObject) -> JsonObject:
    """Return the document without the bodies of records."""
    changes = [
        {name: change[name] for name in change if name not in ("before", "after")} for change in document["changes"]
    ]
    return {**document, "changes": changes}


def stat_lines(document: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield a table of the changes, and the number of each."""
    if document["changes"]:
        rows = [_row(change) for change in document["changes"]]
        header, *shown = table(_HEADER, rows)
        yield header, "dim"
        yield from ((line, _COLOURS[row[0]]) for line, row in zip(shown, rows, strict=True))
    yield from ((f"note: {note}", "") for note in document["notes"])
    yield summary(document), ""


def _row(change: JsonObject) -> tuple[str, ...]:
    return (change["act"], change["record"], change["name"] or "-", change["owner"] or "-", _fields(change) or "-")


def _fields(change: JsonObject) -> str:
    """Return the fields of a body that differ, or why the record is not written."""
    before, after = change["before"] or {}, change["after"] or {}
    if change["act"] != "update" or change["why"]:
        return str(change["why"])
    return ", ".join(sorted(name for name in {*before, *after} if before.get(name) != after.get(name)))


def markdown_lines(document: JsonObject, *, stat: bool) -> Iterator[str]:
    """Yield the difference as Markdown, for comments on pull requests and job summaries."""
    yield f"### {summary(document)}"
    if document["changes"]:
        yield ""
        yield "| change | record | name | object | fields |"
        yield "|---|---|---|---|---|"
        yield from (f"| {' | '.join(map(literal, _row(change)))} |" for change in document["changes"])
    for note in document["notes"]:
        yield ""
        yield f"> {literal(note)}"
    for change in () if stat else document["changes"]:
        if change["act"] in _WITH_BODIES:
            yield from _folded(change)


def _folded(change: JsonObject) -> Iterator[str]:
    body = [line[2:] for line, _ in _body_lines(change["before"], change["after"])]
    fence = fence_of(body)
    yield ""
    yield f"<details><summary>{change['act']} {html.escape(change['record'])}</summary>"
    yield ""
    yield f"{fence}diff"
    yield from body
    yield fence
    yield ""
    yield "</details>"


def lines(document: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the text form of the document, each line with its colour, empty for none."""
    for change in document["changes"]:
        name = f" ({change['name']})" if change["name"] else ""
        owner = f" of {change['owner']}" if change["owner"] else ""
        why = f": {change['why']}" if change["why"] else ""
        yield f"{change['act']} {change['record']}{name}{owner}{why}", _COLOURS[change["act"]]
        if change["act"] in _WITH_BODIES:
            yield from _body_lines(change["before"], change["after"])
    for note in document["notes"]:
        yield f"note: {note}", ""
    yield summary(document), ""


def summary(document: JsonObject) -> str:
    """Return the number of changes of each kind."""
    counts = [f"{count} {_SAID[act]}" for act, count in document["counts"].items()]
    where = f"cluster {document['cluster']} at {document['url']}"
    return f"{where}: {', '.join([*counts, str(document['unchanged']) + ' unchanged'])}"


def _body_lines(before: JsonObject | None, after: JsonObject | None) -> Iterator[tuple[str, str]]:
    for line in _differences(_pretty(before), _pretty(after)):
        yield f"  {line}", {"+": "green", "-": "red", "@": "cyan"}.get(line[0], "")


def _differences(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Yield the differences of two texts as hunks of a unified diff."""
    if max(len(old), len(new)) > _MOST_COMPARED:
        yield from _coarse_differences(old, new)
        return

    # The first two lines are the names of files.
    yield from islice(unified_diff(old, new, lineterm="", n=_CONTEXT), 2, None)


def _coarse_differences(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Yield one hunk, in linear time: everything between the first and the last difference."""
    if old == new:
        return
    start = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
    start = min(len(old), len(new)) if start is None else start
    rest = min(len(old), len(new)) - start
    end = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    first, after = max(start - _CONTEXT, 0), min(end, _CONTEXT)
    sizes = (len(text) - end + after - first for text in (old, new))
    yield "@@ -{0},{1} +{0},{2} @@".format(first + 1, *sizes)
    yield from (f" {line}" for line in old[first:start])
    yield from (f"-{line}" for line in old[start : len(old) - end])
    yield from (f"+{line}" for line in new[start : len(new) - end])
    yield from (f" {line}" for line in old[len(old) - end : len(old) - end + after])


def _pretty(body: JsonObject | None) -> list[str]:
    return json.dumps(body, indent=2, sort_keys=True, ensure_ascii=False).split("\n") if body is not None else []
