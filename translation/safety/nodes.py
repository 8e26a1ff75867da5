"""Numbers of nodes, retries and matchers: how much work they are for a gateway (measured on APISIX 3.18).

* If a connection fails at once, as to an IPv6 address in a network without IPv6, nginx tries the next node without a
  pause: with 10^6 retries, one request blocked a worker for two minutes. Without `retries`, every node is tried, and
  `ewma` looks at all nodes for each of them: 4 s for 2,000 nodes.
* Health checks of 2,000 nodes blocked a worker for 8 s after each edit.
* A gateway has one router for each host, with its own copy of the addresses and conditions of a route. Every change of
  any route builds all of them again: 1,500 hosts with 1,500 addresses blocked a worker for 3 s each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.records import Record
from translation.safety.faults import Fault

MOST_RETRIES = 1000
MOST_TRIED, RETRIES_OF_MANY, MOST_CHECKED = 100, 20, 1000
"""Nodes that a gateway tries for one request, its retries if there are more, and nodes that it checks."""

MOST_MATCHERS = 100_000
"""Maximum number of addresses and conditions of an object, each multiplied by the hosts of its route."""

_UNCHECKED = f"are left out, since checks of more than {MOST_CHECKED} nodes occupy a gateway; use several Services"
_CROWDED = (
    f"are too many: an object may have {MOST_MATCHERS:,} addresses and conditions, each counted once for every"
    " host of its rule; use fewer of them"
)


def retry_faults(upstream: FrozenJson) -> Iterator[Fault]:
    """Yield the fault of an upstream with too many retries."""
    if upstream.get("retries", 0) > MOST_RETRIES:
        yield Fault(("retries",), f"is more than {MOST_RETRIES}, which occupies a gateway; use a smaller number")


def limited(record: Record) -> tuple[Record, str]:
    """Return an upstream with bounded work for many nodes, and what its users have to know.

    Endpoints change without an edit, so the upstream of a growing Service is not closed.
    """
    body = record.body
    nodes = body.get("nodes")
    if record.key.kind != "upstreams" or nodes is None or len(nodes) <= MOST_TRIED:
        return record, ""
    found = {**body, "retries": min(body.get("retries", RETRIES_OF_MANY), RETRIES_OF_MANY)}
    is_checked = "checks" in body and len(nodes) > MOST_CHECKED
    if is_checked:
        del found["checks"]
    return record if found == body else replace(record, body=found), _UNCHECKED if is_checked else ""


def matchers(route: FrozenJson) -> dict[str, int]:
    """Return how many addresses and conditions a gateway has for a route, by field."""
    hosts = max(1, len(route.get("hosts", ())))
    sizes = {"remote_addrs": len(route.get("remote_addrs", ())), "vars": _conditions(route.get("vars", ()))}
    return {field: hosts * size for field, size in sizes.items() if size}


def _conditions(root: Sequence[object]) -> int:
    """Return the number of conditions below a value, with the items of their lists."""
    found, stack = 0, [root]
    while stack:
        value = stack.pop()
        lists = [each for each in value if isinstance(each, list | tuple)]
        if len(value) - len(lists) < 2:  # conditions, perhaps after an operator such as OR
            stack.extend(lists)
        else:
            found += 1 + sum(map(len, lists))
    return found


def crowding_fault(fields: dict[str, int]) -> Fault:
    """Return the fault of a route with too many matchers."""
    return Fault((max(fields, key=lambda field: fields[field]),), _CROWDED)
