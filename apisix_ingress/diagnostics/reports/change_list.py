"""The document of `changes` and its text form, from the list of a running controller's page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from apisix_ingress.diagnostics.reports.ages import age
from apisix_ingress.diagnostics.reports.references import bare, text_of
from apisix_ingress.model.json import JsonObject

_FIELDS = ("at", "change", "cluster", "name", "times", "words")
_COLOURS = {"created": "green", "restored": "yellow", "updated": "yellow", "deleted": "red"}


def changes_document(found: JsonObject) -> JsonObject:
    """Return the document of `changes` for the list of the page."""
    changes = [_change(each) for each in found["items"]]
    return {"began": found["began"], "note": found.get("note", ""), "changes": changes}


def _change(item: JsonObject) -> JsonObject:
    named = {name: item[name] for name in _FIELDS}
    return {**named, "record": f"{item['kind']}/{item['id']}", "object": bare(item["owner"])}


def change_lines(document: JsonObject, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield a line for each change, and indented what changed, each with its colour, empty for none."""
    found = document["changes"]
    if not found:
        yield "nothing changed in the last hour", ""
    for each in found:
        name = f" ({each['name']})" if each["name"] else ""
        whose = f" of {text_of(each['object'])}" if each["object"] else ""
        times = f", the last of {each['times']} changes" if each["times"] > 1 else ""
        what = f"{each['change']} {each['record']}{name}{whose} in cluster {each['cluster']}{times}"
        yield f"{age(each['at'], now)} ago: {what}", _COLOURS.get(each["change"], "")
        yield from ((f"  {word}", "") for word in each["words"])
    yield f"The leader has led for {age(document['began'], now)}. {document['note']}".rstrip(), ""
