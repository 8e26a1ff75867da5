"""The document of `certificates` and its text form, from the list of a running controller's page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from apisix_ingress.diagnostics.reports.ages import UNKNOWN, until
from apisix_ingress.diagnostics.reports.host_table import few
from apisix_ingress.diagnostics.reports.references import bare, text_of
from apisix_ingress.diagnostics.reports.status_table import table
from apisix_ingress.model.json import JsonObject

_HEADER = ("VALIDITY", "EXPIRES", "HOSTS", "OBJECT", "SECRET", "ISSUER OR CAUSE")
_COLOURS = {"valid": "", "unknown": "yellow", "expires soon": "yellow"}


def certificates_document(found: JsonObject, *, only_problems: bool) -> JsonObject:
    """Return the document of `certificates` for the list of the page."""
    items = map(_certificate, found["items"])
    return {"certificates": [each for each in items if not only_problems or each["validity"] != "valid"]}


def _certificate(item: JsonObject) -> JsonObject:
    named = {name: item[name] for name in ("validity", "expires", "hosts", "issuer", "cause")}
    return {**named, "object": bare(item["owner"]), "secret": bare(item["secret"])}


def certificate_lines(document: JsonObject, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield the lines of the table, each with its colour, empty for none."""
    found = document["certificates"]
    if not found:
        yield "no certificates", ""
        return
    header, *lines = table(_HEADER, [_row(each, now) for each in found])
    yield header, "dim"
    for line, each in zip(lines, found, strict=True):
        yield line, _COLOURS.get(each["validity"], "red")


def _row(each: JsonObject, now: datetime) -> tuple[str, ...]:
    why = each["cause"] or each["issuer"] or UNKNOWN
    names = [text_of(each["object"]) or UNKNOWN, text_of(each["secret"]) or UNKNOWN]
    return (each["validity"], until(each["expires"], now), few(each["hosts"]), *names, why)
