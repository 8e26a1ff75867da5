"""Hosts: the state of each, its routes, its owners and its certificate."""

from __future__ import annotations

from typing import get_args

from apisix_ingress.model.json import JsonObject
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.summary.hosts import Host, RouteStatus
from apisix_ingress.statuspage.views.certificates import certificate_row
from apisix_ingress.statuspage.views.presentation import object_reference, page_of, paging

STATUSES: tuple[RouteStatus, ...] = get_args(RouteStatus)


async def hosts(facts: PageInputs, snapshot: Snapshot, query: str, state: str, page: int) -> JsonObject:
    """Return a page of the hosts that match every word of a query, and a state unless it is empty."""
    words = query.lower().split()
    found = [
        each
        async for each in in_turns(snapshot.summary.hosts)
        if _is_so(each, state) and (not words or each.matches(words))
    ]
    return {
        "query": query,
        "state": state,
        **paging(len(found), page),
        "items": [host_row(facts, each) for each in page_of(found, page)],
    }


def host_row(facts: PageInputs, each: Host) -> JsonObject:
    """Return a host for display."""
    return {
        "host": clean(each.name),
        "status": each.status,
        "routes": each.routes.total(),
        "states": {status: count for status, count in each.routes.items() if count},
        "owners": [object_reference(key) for key in each.owners],
        "kept": each.kept,
        "unpublished": [object_reference(key) for key in each.unpublished],
        "certificate": certificate_row(facts, each.certificate) if each.certificate else None,
    }


def _is_so(each: Host, state: str) -> bool:
    return not state or each.status == state or (state == "troubled" and each.status not in ("live", "unknown"))
