"""Hosts: what their requests get, their owners, their certificate, and objects that are not published.

The state of a host comes from the routes that get its requests. A route that gets none never changes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter

from apisix_ingress.diagnostics.claimants import KINDS, claimant
from apisix_ingress.diagnostics.wanted_certificates import WantedCertificate
from apisix_ingress.explain.hosts import (
    HostResponses,
    RouteIndex,
    RouteUse,
    closed_by,
    fails_in_part,
    is_failure,
    redirect_of,
)
from apisix_ingress.explain.patterns import RouteFacts
from apisix_ingress.explain.response import Response, global_rules_of
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.states import HEALTHY_HOSTS, HOST_STATUSES, HostStatus
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.summary.causes import (
    UNKNOWN,
    Cause,
    Problems,
    cause_of_objects,
    cause_of_response,
    causes_of_records,
)
from apisix_ingress.statuspage.summary.certificates import Certificate, certificate_of
from apisix_ingress.statuspage.summary.entry import Entry
from apisix_ingress.statuspage.summary.ordering import ordered

EVERY_HOST = "*"
"""Stands for a route without a host."""

MOST_OWNERS = 5
"""Objects that are kept of one host."""

MOST_USES = 1_000
"""Routes that are kept of one host to decide what its requests get."""


@dataclass(slots=True)
class Host:
    """One host.

    Attributes:
        name: The host; `EVERY_HOST` for routes without one.
        routes: State → number of its routes.
        owners: The first objects that have routes for it, in order.
        unpublished: The first objects with errors that name it; one that is also an owner has an earlier version live.
        certificate: What TLS clients get.
        wanted: The certificate that TLS clients should get, if no gateway has it.
        response: The error or the redirect that every request gets; None if some get something else.
        failing: A route that responds with `response`, or with an error to a part of the requests.
        cause: Why it has its state, unless that needs no attention.
        status: Its state.
    """

    name: str
    routes: Counter[HostStatus] = field(default_factory=Counter)
    owners: dict[ObjectKey, None] = field(default_factory=dict)
    unpublished: dict[ObjectKey, None] = field(default_factory=dict)
    certificate: Certificate | None = None
    wanted: WantedCertificate | None = None
    response: Response | None = None
    failing: Entry | None = None
    cause: Cause = UNKNOWN
    status: HostStatus = "live"

    def matches(self, words: Iterable[str]) -> bool:
        """Return whether each of the words, in lower case, is in its name or its objects."""
        text = "\n".join((self.name, *map(str, self.owners), *map(str, self.unpublished))).lower()
        return all(word in text for word in words)


@dataclass(slots=True)
class Hosts:
    """Every host, and the state of every route.

    Attributes:
        all: The hosts, sorted.
        of_route: Route → its state.
    """

    all: list[Host] = field(default_factory=list)
    of_route: dict[RecordKey, HostStatus] = field(default_factory=dict)


@dataclass(slots=True)
class _Draft:
    """A host while its routes are being collected."""

    host: Host
    uses: list[tuple[RouteUse, Entry]] = field(default_factory=list)


async def gather_hosts(
    facts: PageInputs,
    entries: Mapping[RecordKey, Entry],
    problems: Problems,
    by_name: Mapping[str, Certificate],
) -> Hosts:
    """Return every host of routes and of route objects with errors."""
    drafts: dict[str, _Draft] = {}
    found = Hosts()
    await _collect(entries, drafts, found.of_route)
    async for entry in in_turns(tuple(entries.values())):
        if entry.key.kind == "routes":
            state = found.of_route.setdefault(entry.key, _unused(entry))
            for name in entry.hosts or (EVERY_HOST,):
                host = _draft(drafts, name).host
                host.routes[state] += 1
                _keep(host.owners, entry.owner)
    served = frozenset(drafts)
    async for owner in in_turns(tuple(problems)):
        is_error = any(each.severity == "error" for each in problems[owner])
        for name in _unpublished_hosts(facts, owner, problems[owner]):
            if is_error or name not in served:
                _keep(_draft(drafts, name).host.unpublished, owner)
    async for draft in in_turns(tuple(drafts.values())):
        draft.host.certificate = certificate_of(draft.host.name, by_name)
        failure = _decide(facts, draft, found.of_route)
        draft.host.cause = _cause(facts, draft, failure, entries, problems)
    found.all = await ordered((each.host for each in drafts.values()), attrgetter("name"))
    return found


async def _collect(
    entries: Mapping[RecordKey, Entry], drafts: dict[str, _Draft], states: dict[RecordKey, HostStatus]
) -> None:
    """Find the routes that get requests, with their states."""
    bodies = {key: entry.record.body for key, entry in entries.items()}
    index = RouteIndex(RouteFacts(key.id, body) for key, body in bodies.items() if key.kind == "routes")
    responses = HostResponses(index, bodies, global_rules_of(bodies))
    places = [(host, uri) for host in index.hosts for uri in index.uris(host)]
    async for host, uri in in_turns(places):
        draft = _draft(drafts, host or EVERY_HOST)
        for use in responses.uses(host, uri):
            entry = entries[RecordKey("routes", use.route.id)]
            if entry.closed:
                use = replace(use, response=Response("error", 503, entry.closed))
            state = _state(entry, use.response)
            states[entry.key] = _worse(states.get(entry.key, state), state)
            if len(draft.uses) < MOST_USES and not _is_guard(entry, use.response):
                draft.uses.append((use, entry))


def _is_guard(entry: Entry, response: Response) -> bool:
    """Return whether a route of a Gateway answers what no route of its listener matches, which is not a failure."""
    return entry.owner.kind in ("Gateway", "ListenerSet") and response.status in (404, 421)


def _draft(drafts: dict[str, _Draft], name: str) -> _Draft:
    name = name.lower()
    return drafts.setdefault(name, _Draft(Host(name)))


def _state(entry: Entry, response: Response) -> HostStatus:
    """Return the state of a route that gets requests."""
    match entry.status:
        case _ if entry.closed:
            return "closed"
        case "unknown" | "unreachable":
            return "unknown"
        case "pending" | "waiting" | "rejected" as status:
            return status
        case status if is_failure(response):
            return "closed"
        case "partial":
            return "partial"
    return "redirect" if response.kind == "redirect" else "live"


def _unused(entry: Entry) -> HostStatus:
    """Return the state of a route that gets no requests, if a gateway has it."""
    match entry.status:
        case "pending" | "waiting" | "rejected" as status:
            return status
        case "unknown" | "unreachable":
            return "unknown"
    return "not used"


def _worse(one: HostStatus, other: HostStatus) -> HostStatus:
    return max(one, other, key=HOST_STATUSES.index)


_UNCERTAIN: frozenset[HostStatus] = frozenset({"unknown", "rejected", "pending", "waiting"})
"""States of routes of which a gateway may have another version, or none."""


def _decide(facts: PageInputs, draft: _Draft, states: Mapping[RecordKey, HostStatus]) -> Response | None:
    """Set the state of a host: the worst of the routes that get its requests, and of objects that are not published.

    Returns:
        The response with an error that some of its requests get; None if it is not known that any does.
    """
    host = draft.host
    found: set[HostStatus] = {states[entry.key] for _, entry in draft.uses} - {"closed"}
    uses = [use for use, entry in draft.uses if states[entry.key] not in _UNCERTAIN]
    closed = closed_by(host.name, uses) if found.isdisjoint(_UNCERTAIN) else None
    part = fails_in_part(uses)
    failure = closed or part
    if failure is not None:
        host.failing = next(entry for use, entry in draft.uses if use.response is failure)
    if closed is not None:
        found, host.response = {"closed"}, closed
    elif part is not None:
        found |= {"partial"}
    elif found == {"redirect"}:
        host.response = redirect_of(uses)
    if host.unpublished:
        # Before the comparison, a gateway may have an earlier version.
        is_compared = facts.controller.leads and any(each.taken_over for each in facts.clusters)
        found.add("partial" if draft.uses else "not published" if is_compared else "unknown")
    host.status = max(found, key=HOST_STATUSES.index, default="not used")
    return failure


def _cause(
    facts: PageInputs, draft: _Draft, failure: Response | None, entries: Mapping[RecordKey, Entry], problems: Problems
) -> Cause:
    """Return why a host has its state."""
    host = draft.host
    if host.status in HEALTHY_HOSTS:
        return UNKNOWN
    if failure is not None and host.failing is not None:
        return cause_of_response(facts, host.failing, failure, entries, problems)
    found = cause_of_objects(facts, host.unpublished, problems)
    return found or causes_of_records(facts, [entry for _, entry in draft.uses if not entry.settled])


def _unpublished_hosts(facts: PageInputs, owner: ObjectKey, problems: Iterable[Problem]) -> set[str]:
    """Return the hosts that an object names, if this version of it may not be published."""
    if owner.kind not in KINDS or all(each.severity == "warning" for each in problems):
        return set()
    claim = claimant(facts.world, facts.options, owner)
    return {name for rule in claim.rules for name in (rule["hosts"] or [EVERY_HOST])} if claim is not None else set()


def _keep(owners: dict[ObjectKey, None], owner: ObjectKey) -> None:
    if len(owners) < MOST_OWNERS:
        owners[owner] = None
