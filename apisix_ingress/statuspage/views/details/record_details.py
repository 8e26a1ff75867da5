"""One record: what it refers to, down to nodes and Pods, its states, and its masked body."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.kinds.indexes import BY_ADDRESS, SLICES_BY_SERVICE
from apisix_ingress.model.network.ip_address import canonical_ip
from apisix_ingress.model.objects import Endpoints, EndpointSlice, Pod
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.record_masking import clean, shown_body
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.summary.entry import Entry
from apisix_ingress.statuspage.views.presentation import object_reference
from apisix_ingress.statuspage.views.records import record_reference, record_row

MOST_NODES = 200
"""Maximum number of nodes of one upstream on its own page."""


async def record(facts: PageInputs, snapshot: Snapshot, key: RecordKey) -> JsonObject | None:
    """Return the details of a record: owners, references, destinations and states."""
    entry = snapshot.entries.get(key)
    if entry is None:
        return None
    named = [snapshot.entries.get(ref) for ref in sorted(entry.record.refs)]
    upstreams = [each for each in (*named, entry) if each is not None and each.key.kind == "upstreams"]
    return {
        **record_row(snapshot, entry),
        "rivals": [object_reference(owner) for owner in entry.owners[1:]],
        "names": [record_reference(each) for each in named if each is not None],
        "missing": [str(ref) for ref in sorted(entry.record.refs) if ref not in snapshot.entries],
        "backends": [_backend(facts, each) for each in upstreams],
        "body": await _body(facts, entry),
    }


async def _body(facts: PageInputs, entry: Entry) -> JsonObject:
    """Return the masked body of a record; since it may have thousands of nodes, a thread does it."""
    reports = (facts.world.reports.get(owner) for owner in entry.owners)
    outdated = any(each.severity == "error" for report in reports if report is not None for each in report.problems)
    return await asyncio.to_thread(shown_body, entry.record, outdated=outdated)


def _backend(facts: PageInputs, entry: Entry) -> JsonObject:
    nodes = entry.record.body.get("nodes") or ()
    listed = nodes if isinstance(nodes, list) else ()
    return {
        **record_reference(entry),
        "nodes": [_node(facts, entry.owner, node) for node in listed[:MOST_NODES]],
        "more": max(0, len(listed) - MOST_NODES),
    }


def _node(facts: PageInputs, service: ObjectKey, node: JsonObject) -> JsonObject:
    host = str(node.get("host", ""))
    shown = f"[{host}]" if ":" in host else host
    pod = _pod(facts, service, host) if service.kind == "Service" else ""
    address = f"{shown}:{node['port']}" if "port" in node else shown
    return {"address": clean(address), "weight": node.get("weight", 1), "pod": clean(pod)}


def _pod(facts: PageInputs, service: ObjectKey, address: str) -> str:
    """Return the name of the Pod with an address of a Service, or empty."""
    stores = facts.world.stores
    pods: tuple[Pod, ...] = stores["Pod"].by_index(BY_ADDRESS, canonical_ip(address))
    if own := [pod for pod in pods if pod.meta.namespace == service.namespace]:
        return own[0].meta.name
    found = (each.pod for each in _endpoints(facts, service) if address in each.addresses and each.pod)
    return next(found, "")


def _endpoints(facts: PageInputs, service: ObjectKey) -> Iterator[Any]:
    stores = facts.world.stores
    if "EndpointSlice" in stores:
        slices: tuple[EndpointSlice, ...] = stores["EndpointSlice"].by_index(
            SLICES_BY_SERVICE, f"{service.namespace}/{service.name}"
        )
        yield from (each for one in slices for each in one.endpoints)
    elif "Endpoints" in stores:
        whole: Endpoints | None = stores["Endpoints"].get(service._replace(kind="Endpoints"))
        yield from (each for subset in (whole.subsets if whole else ()) for each in subset.endpoints)


async def add_bodies(facts: PageInputs, snapshot: Snapshot, items: Iterable[JsonObject]) -> None:
    """Add the body of each record of a page."""
    for item in items:
        entry = snapshot.entries[RecordKey(item["kind"], item["id"])]
        item["body"] = await _body(facts, entry)
