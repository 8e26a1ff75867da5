"""The document of `hosts` and its text form, from the lists of a running controller's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from apisix_ingress.diagnostics.reports.ages import UNKNOWN, age
from apisix_ingress.diagnostics.reports.status_table import table
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.states import HEALTHY_HOSTS

_HEADER = ("HOST", "STATE", "SINCE", "ROUTES", "BACKENDS", "CERTIFICATE", "OBJECTS")
_MOST = 3
"""Objects or backends of a row of the table."""


def hosts_document(items: Sequence[JsonObject]) -> JsonObject:
    """Return the document of `hosts` for the items of the page."""
    return {"hosts": [_host(each) for each in items]}


def _host(item: JsonObject) -> JsonObject:
    owners = {each["text"]: each for each in (*item["owners"], *item["unpublished"])}
    return {
        "host": item["host"],
        "state": item["status"],
        "summary": item.get("summary", item["status"]),
        "since": item.get("since", ""),
        "routes": item["routes"],
        "backends": item.get("backends", []),
        "certificate": _certificate(item["certificate"]) if item["certificate"] else None,
        "objects": [{name: each[name] for name in ("kind", "namespace", "name")} for each in owners.values()],
    }


def _certificate(found: JsonObject) -> JsonObject:
    secret = found["secret"]
    named = {name: secret[name] for name in ("kind", "namespace", "name")} if secret else None
    return {"validity": found["validity"], "expires": found["expires"], "secret": named}


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
    objects = [f"{item['kind']} {item['namespace']}/{item['name']}".replace(" /", " ") for item in each["objects"]]
    shown = (age(each["since"], now), str(each["routes"]), _few(backends), _expiry(each["certificate"], now))
    return (each["host"], each["summary"], *shown, _few(objects))


def _expiry(certificate: JsonObject | None, now: datetime) -> str:
    if certificate is None:
        return UNKNOWN
    day = certificate["expires"][:10]
    return f"{certificate['validity']}, {day}" if day else str(certificate["validity"])


def _few(texts: Sequence[str]) -> str:
    more = len(texts) - _MOST
    return ", ".join([*texts[:_MOST], *([f"and {more} more"] if more > 0 else [])]) or UNKNOWN
