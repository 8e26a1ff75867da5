"""Hosts: the worst state of the routes of each, its owners, its certificate, and objects that are not published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal

from apisix_ingress.diagnostics.claimants import KINDS, claimant
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.summary.certificates import Certificate, certificate_of
from apisix_ingress.statuspage.summary.entry import Entry
from apisix_ingress.statuspage.summary.ordering import ordered

EVERY_HOST = "*"
"""Stands for a route without a host."""

MOST_OWNERS = 5
"""Objects that are kept of one host."""

RouteStatus = Literal[
    "live", "unknown", "pending", "waiting", "partial", "no endpoints", "not published", "unreachable", "rejected"
]
STATUSES: tuple[RouteStatus, ...] = (
    "live",
    "unknown",
    "pending",
    "waiting",
    "partial",
    "no endpoints",
    "not published",
    "unreachable",
    "rejected",
)
"""States of routes and hosts, the best first."""


@dataclass(slots=True)
class Host:
    """One host.

    Attributes:
        name: The host; `EVERY_HOST` for routes without one.
        routes: State → number of its routes.
        owners: The first objects that have routes for it, in order.
        unpublished: The first objects with errors that name it; one that is also an owner has an earlier version live.
        kept: Whether a gateway has a route for it from before this process started, of an object with errors.
        certificate: What TLS clients get.
    """

    name: str
    routes: Counter[RouteStatus] = field(default_factory=Counter)
    owners: dict[ObjectKey, None] = field(default_factory=dict)
    unpublished: dict[ObjectKey, None] = field(default_factory=dict)
    kept: bool = False
    certificate: Certificate | None = None

    @property
    def status(self) -> RouteStatus:
        """The worst state of its routes and objects; `partial` if routes exist in addition to an unpublished object."""
        found: set[RouteStatus] = set(self.routes)
        if self.unpublished:
            found.add("partial" if found or self.kept else "not published")
        return next((each for each in reversed(STATUSES) if each in found), "live")

    def matches(self, words: Iterable[str]) -> bool:
        """Return whether each of the words, in lower case, is in its name or its objects."""
        text = "\n".join((self.name, *map(str, self.owners), *map(str, self.unpublished))).lower()
        return all(word in text for word in words)


def route_status(entry: Entry, entries: Mapping[RecordKey, Entry]) -> RouteStatus:
    """Return the state of a route: that of its record, or that an upstream of it has no nodes."""
    status = entry.status
    if status != "applied" and status != "partial":
        return status
    used = (entries.get(key) for key in entry.record.refs)
    if any(each.is_empty for each in used if each is not None):
        return "no endpoints"
    return "live" if status == "applied" else "partial"


async def gather_hosts(
    facts: PageInputs,
    entries: Mapping[RecordKey, Entry],
    problems: Mapping[ObjectKey, tuple[Problem, ...]],
    by_name: Mapping[str, Certificate],
) -> list[Host]:
    """Return every host of routes and of route objects with errors, sorted."""
    found: dict[str, Host] = {}
    async for entry in in_turns(tuple(entries.values())):
        if entry.key.kind == "routes":
            status = route_status(entry, entries)
            for name in entry.hosts or (EVERY_HOST,):
                host = found.setdefault(name, Host(name))
                host.routes[status] += 1
                _keep(host.owners, entry.owner)
    async for owner in in_turns(tuple(problems)):
        for name in _unpublished_hosts(facts, owner, problems[owner]):
            _keep(found.setdefault(name, Host(name)).unpublished, owner)
    for name in facts.kept_hosts() & found.keys():
        found[name].kept = True
    for host in found.values():
        host.certificate = certificate_of(host.name, by_name)
    return await ordered(found.values(), attrgetter("name"))


def _unpublished_hosts(facts: PageInputs, owner: ObjectKey, problems: Iterable[Problem]) -> set[str]:
    """Return the hosts that an object names, if this version of it is not published."""
    if owner.kind not in KINDS or all(each.severity != "error" for each in problems):
        return set()
    claim = claimant(facts.world, facts.options, owner)
    return {name for rule in claim.rules for name in (rule["hosts"] or [EVERY_HOST])} if claim is not None else set()


def covers(names: frozenset[str], host: str) -> bool:
    """Return whether a host is one of the names, or is covered by a wildcard among them."""
    host = host.lower()
    wildcards = (f"*{host[dot:]}" for dot, letter in enumerate(host) if letter == ".")
    return not names.isdisjoint((host, EVERY_HOST, *wildcards))


def _keep(owners: dict[ObjectKey, None], owner: ObjectKey) -> None:
    if len(owners) < MOST_OWNERS:
        owners[owner] = None
