"""Hosts: the state of each and since when, its routes, its owners, its backends and its certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.states import HEALTHY_HOSTS, HOST_STATUSES
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.summary.entry import Entry
from apisix_ingress.statuspage.summary.hosts import EVERY_HOST, Host
from apisix_ingress.statuspage.summary.ordering import ordered
from apisix_ingress.statuspage.views.certificates import certificate_row
from apisix_ingress.statuspage.views.presentation import MOST_SHOWN, object_reference, page_of, paging, rfc3339


def _expiry(each: Host) -> datetime:
    contents = each.certificate.contents if each.certificate is not None else None
    return contents.ends if contents is not None else datetime.max.replace(tzinfo=UTC)


SORTS: Mapping[str, Callable[[Host], Any]] = {
    "state": lambda each: (-HOST_STATUSES.index(each.status), each.name),
    "host": lambda each: each.name,
    "routes": lambda each: (-each.routes.total(), each.name),
    "certificate": lambda each: (_expiry(each), each.name),
}
"""Orders of hosts: the worst state, the name, the most routes, or the first certificate to expire comes first."""

FILTERS = ("troubled", *HOST_STATUSES)
"""Values of the filter for states; troubled: every state that needs attention."""


async def hosts(
    facts: PageInputs, snapshot: Snapshot, query: str, state: str, page: int, *, sort: str = ""
) -> JsonObject:
    """Return a page of the hosts that match every word of a query, and a state unless it is empty.

    Args:
        facts: The inputs.
        snapshot: The collected data.
        query: Words.
        state: One of `FILTERS`.
        page: Number of the page.
        sort: One of `SORTS`; empty: the first of them.
    """
    words = query.lower().split()
    found = [
        each
        async for each in in_turns(snapshot.summary.hosts)
        if _is_so(each, state) and (not words or each.matches(words))
    ]
    found = await ordered(found, SORTS[sort or next(iter(SORTS))])
    return {
        "query": query,
        "state": state,
        "states": list(FILTERS),
        "sort": sort or next(iter(SORTS)),
        **paging(len(found), page),
        "items": await host_rows(facts, snapshot, page_of(found, page)),
    }


async def host_rows(facts: PageInputs, snapshot: Snapshot, found: Sequence[Host]) -> list[JsonObject]:
    """Return hosts for display, with the backends of each."""
    backends: dict[str, dict[str, int]] = {each.name: {} for each in found}
    async for entry in in_turns((*snapshot.by_kind.get("routes", ()), *snapshot.kept.values()) if found else ()):
        for name in backends.keys() & set(entry.hosts or (EVERY_HOST,)):
            backends[name] |= _backends(snapshot, entry)
    return [{**host_row(facts, each), "backends": _bounded_backends(backends[each.name])} for each in found]


def _backends(snapshot: Snapshot, route: Entry) -> dict[str, int]:
    """Return the upstreams of a route: name → number of nodes."""
    used = (snapshot.entries.get(key) for key in sorted(route.record.refs) if key.kind == "upstreams")
    return {clean(each.record.name): len(each.record.body.get("nodes") or ()) for each in used if each is not None}


def _bounded_backends(found: Mapping[str, int]) -> list[JsonObject]:
    return [{"name": name, "nodes": nodes} for name, nodes in islice(sorted(found.items()), MOST_SHOWN)]


def host_row(facts: PageInputs, each: Host) -> JsonObject:
    """Return a host for display."""
    certificate = each.certificate or each.wanted
    return {
        "host": clean(each.name),
        "status": each.status,
        "summary": clean(summary_of(each)),
        "cause": clean(each.cause.text),
        "since": rfc3339(each.cause.since),
        "routes": each.routes.total(),
        "states": {status: count for status, count in each.routes.items() if count},
        "owners": [object_reference(key) for key in each.owners],
        "unpublished": [object_reference(key) for key in each.unpublished],
        "certificate": certificate_row(facts, certificate)
        if (certificate := each.certificate or each.wanted)
        else None,
    }


def summary_of(each: Host) -> str:
    """Return the state of a host with the status that its requests get, e.g. `closed (503)`."""
    response = each.response
    if response is None:
        return each.status
    if response.kind == "redirect":
        return f"{response.status} → {response.location}"
    return f"{each.status} ({response.status})"


def _is_so(each: Host, state: str) -> bool:
    return not state or each.status == state or (state == "troubled" and each.status not in (*HEALTHY_HOSTS, "unknown"))
