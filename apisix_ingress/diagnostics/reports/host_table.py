"""The document of `hosts` and its text form, from the lists of a running controller's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from apisix_ingress.diagnostics.reports.ages import UNKNOWN, age
from apisix_ingress.diagnostics.reports.references import bare, text_of
from apisix_ingress.diagnostics.reports.status_table import table
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.states import HEALTHY_HOSTS

_HEADER = ("HOST", "STATE", "SINCE", "ROUTES", "BACKENDS", "CERTIFICATE", "OBJECTS", "CAUSE")
_MOST = 3
"""Objects or backends of a row of the table."""


def hosts_document(found: JsonObject) -> JsonObject:
    """Return the document of `hosts` for the list of the page."""
    return {"hosts": [_host(each) for each in found["items"]]}


def _host(item: JsonObject) -> JsonObject:
    owners = {each["text"]: each for each in (*item["owners"], *item["unpublished"])}
    return {
        "host": item["host"],
        "state": item["status"],
        "summary": item.get("summary", item["status"]),
        "since": item.get("since", ""),
        "cause": item.get("cause", ""),
        "routes": item["routes"],
        "backends": item.get("backends", []),
        "certificate": _certificate(item["certificate"]) if item["certificate"] else None,
        "objects": [bare(each) for each in owners.values()],
    }


def _certificate(found: JsonObject) -> JsonObject:
    return {"validity": found["validity"], "expires": found["expires"], "secret": bare(found["secret"])}


def host_lines(document: JsonObject, now: datetime) -> Iterator[tuple[str, str]]:
    """Yield the lines of the table, each with its colour, empty for none."""
    found = document["hosts"]
    if not found:
        yield "no hosts", ""
        return
    header, *lines = table(_HEADER, [_row(each, now) for each in found])
    yield header, "dim"
    for line, each in zip(lines, found, strict=True):
        state = each["state"]
        yield line, "" if state in HEALTHY_HOSTS else "yellow" if state == "unknown" else "red"


def _row(each: JsonObject, now: datetime) -> tuple[str, ...]:
    backends = [f"{backend['name']} ({backend['nodes']})" for backend in each["backends"]]
    shown = (age(each["since"], now), str(each["routes"]), few(backends), _expiry(each["certificate"]))
    return (each["host"], each["summary"], *shown, few([*map(text_of, each["objects"])]), each["cause"] or UNKNOWN)


def _expiry(certificate: JsonObject | None) -> str:
    if certificate is None:
        return UNKNOWN
    day = certificate["expires"][:10]
    return f"{certificate['validity']}, {day}" if day else str(certificate["validity"])


def few(texts: Sequence[str]) -> str:
    """Return the first texts, and how many there are more."""
    more = len(texts) - _MOST
    return ", ".join([*texts[:_MOST], *([f"and {more} more"] if more > 0 else [])]) or UNKNOWN
