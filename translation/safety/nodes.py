"""Numbers of nodes, retries and matchers: how much work they are for a gateway (measured on APISIX 3.18).

* If a connection fails at once, as to an IPv6 address in a network without IPv6, nginx tries the next node without a
  pause: with 10^6 retries, one request blocked a worker for two minutes. Without `retries`, every node is tried, and
  `ewma` looks at all nodes for each of them: 4 s for 2,000 nodes.
* Health checks of 2,000 nodes blocked a worker for 8 s after each edit.
* A gateway starts probes each second, even if earlier ones have not ended: a server that sends one byte a second keeps
  ten more connections per second, whatever the timeout is, and stops a worker after 17 minutes.
* Names of nodes are resolved one after the other before each request, which waits for all of them.
* A gateway has one router for each host, with its own copy of the addresses and conditions of a route. Every change of
  any route builds all of them again: 1,500 hosts with 1,500 addresses blocked a worker for 3 s each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.network.ip_address import is_ip
from apisix_ingress.model.records import Record
from translation.safety.faults import Fault

MOST_RETRIES = 1000
MOST_TRIED, RETRIES_OF_MANY, MOST_CHECKED = 100, 20, 1000
"""Nodes that a gateway tries for one request, its retries if there are more, and nodes that it checks."""

MOST_NAMES = 20
"""Host names of an upstream: several seconds each, if their name server does not respond."""

MOST_SECONDS, MOST_PROBES = 10, 10
"""Timeout and concurrency of health checks."""

MOST_MATCHERS = 100_000
"""Maximum number of addresses and conditions of an object, each multiplied by the hosts of its route."""

_UNCHECKED = f"are left out, since checks of more than {MOST_CHECKED} nodes occupy a gateway; use several Services"
_WAITING = (
    "are left out, since a server that responds slowly would occupy a gateway: use the type tcp, a timeout of at most"
    f" {MOST_SECONDS} s and a concurrency of at most {MOST_PROBES}"
)
_CROWDED = (
    f"are too many: an object may have {MOST_MATCHERS:,} addresses and conditions, each counted once for every"
    " host of its rule; use fewer of them"
)


def retry_faults(upstream: FrozenJson) -> Iterator[Fault]:
    """Yield the fault of an upstream with too many retries."""
    if upstream.get("retries", 0) > MOST_RETRIES:
        yield Fault(("retries",), f"is more than {MOST_RETRIES}, which occupies a gateway; use a smaller number")


def name_faults(upstream: FrozenJson) -> Iterator[Fault]:
    """Yield the fault of an upstream with too many host names."""
    nodes = upstream.get("nodes") or ()
    if len(nodes) > MOST_NAMES and sum(not is_ip(node["host"]) for node in nodes) > MOST_NAMES:
        what = f"have more than {MOST_NAMES} host names, which a gateway resolves for each request; use fewer"
        yield Fault(("nodes",), what)


def limited(record: Record) -> tuple[Record, str]:
    """Return an upstream with bounded work for many nodes or probes, and what its users have to know.

    Endpoints change without an edit, so the upstream of a growing Service is not closed.
    """
    body = record.body
    if record.key.kind != "upstreams":
        return record, ""
    number = len(body.get("nodes") or ())
    what = _why_unchecked(body["checks"], number) if "checks" in body else ""
    if not what and number <= MOST_TRIED:
        return record, ""
    found = {name: value for name, value in body.items() if name != "checks" or not what}
    if number > MOST_TRIED:
        found["retries"] = min(body.get("retries", RETRIES_OF_MANY), RETRIES_OF_MANY)
    return record if found == body else replace(record, body=found), what


def _why_unchecked(checks: FrozenJson, nodes: int) -> str:
    probe = checks.get("active", {})
    is_quick = probe.get("timeout", 1) <= MOST_SECONDS and probe.get("concurrency", 1) <= MOST_PROBES
    if probe.get("type") != "tcp" or not is_quick:
        return _WAITING
    return _UNCHECKED if nodes > MOST_CHECKED else ""


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
