"""The document of `changes` and its text form, from the list of a running controller's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from apisix_ingress.diagnostics.reports.ages import age
from apisix_ingress.model.json import JsonObject

_FIELDS = ("at", "change", "cluster", "name", "times")
_COLOURS = {"created": "green", "updated": "yellow", "deleted": "red"}


def changes_document(items: Sequence[JsonObject]) -> JsonObject:
    """Return the document of `changes` for the items of the page."""
    return {"changes": [_change(each) for each in items]}


def _change(item: JsonObject) -> JsonObject:
    owner = item["owner"]
    named = {name: owner[name] for name in ("kind", "namespace", "name")} if owner else None
    record = f"{item['kind']}/{item['id']}"
    found: JsonObject = {name: item[name] for name in _FIELDS}
    return {**found, "record": record, "object": named, "words": item.get("words", [])}


def change_lines(document: JsonObject, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield a line for each change, and indented what changed, each with its colour, empty for none."""
    found = document["changes"]
    if not found:
        yield "nothing changed in the last hour", ""
    for each in found:
        owner = each["object"]
        whose = f" of {owner['kind']} {owner['namespace']}/{owner['name']}".replace(" /", " ") if owner else ""
        times = f", {each['times']} times" if each["times"] > 1 else ""
        what = f"{each['change']} {each['record']} ({each['name'] or 'unnamed'}){whose} in cluster {each['cluster']}"
        yield f"{age(each['at'], now)} ago: {what}{times}", _COLOURS.get(each["change"], "")
        yield from ((f"  {word}", "") for word in each["words"])
