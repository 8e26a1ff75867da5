"""The summary of a snapshot: findings, hosts, certificates and the numbers of the overview."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from apisix_ingress.diagnostics.shortfalls import EXPIRED
from apisix_ingress.diagnostics.wanted_certificates import WantedCertificate, by_host, wanted_certificates
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.states import HostStatus
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.summary.certificates import Certificate, covering, read_certificates
from apisix_ingress.statuspage.summary.entry import Entry
from apisix_ingress.statuspage.summary.findings import (
    Finding,
    Victims,
    certificate_finding,
    closed_finding,
    problem_findings,
    record_findings,
)
from apisix_ingress.statuspage.summary.hosts import EVERY_HOST, Host, gather_hosts
from apisix_ingress.statuspage.summary.ordering import ordered

MOST_USERS = 10
"""Hosts that are kept of the routes of one upstream."""


@dataclass(slots=True)
class Summary:
    """What is derived from the records and reports.

    Attributes:
        findings: What needs attention, the most urgent first; without clusters and watches.
        hosts: Every host, sorted.
        route_states: Route → its state.
        certificates: Every certificate, the first to expire first.
        wanted: Certificates that objects name and that no gateway has.
        routes: State → number of routes.
    """

    findings: list[Finding] = field(default_factory=list)
    hosts: list[Host] = field(default_factory=list)
    route_states: dict[RecordKey, HostStatus] = field(default_factory=dict)
    certificates: list[Certificate] = field(default_factory=list)
    wanted: list[WantedCertificate] = field(default_factory=list)
    routes: Counter[HostStatus] = field(default_factory=Counter)


async def summarize(
    facts: PageInputs, entries: Mapping[RecordKey, Entry], problems: Mapping[ObjectKey, tuple[Problem, ...]]
) -> Summary:
    """Return the summary of records and problems; linear in their number."""
    found = Summary()
    found.certificates = await read_certificates(each for each in entries.values() if each.key.kind == "ssls")
    found.wanted = wanted_certificates(facts.world, problems)
    hosts = await gather_hosts(facts, entries, problems, covering(found.certificates))
    missing = by_host(found.wanted)
    for host in hosts.all:
        host.wanted = missing.get(host.name) if host.certificate is None else None
    found.hosts, found.route_states = hosts.all, hosts.of_route
    found.routes = Counter(found.route_states.values())
    users: dict[RecordKey, list[str]] = {}
    async for entry in in_turns(tuple(entries.values())):
        if found.route_states.get(entry.key) != "not used":
            _note_users(users, entry)
    victims = Victims(found.hosts, found.wanted)
    async for entry in in_turns(tuple(entries.values())):
        if entry.is_empty or not entry.settled:
            found.findings += record_findings(facts, entry, users, victims)
    async for owner in in_turns(tuple(problems)):
        found.findings += problem_findings(facts, owner, problems[owner], victims)
    covered_hosts = {host for each in found.findings if each.severity == "error" for host in each.hosts}
    found.findings += (closed_finding(each) for each in victims.closed if each.name not in covered_hosts)
    now = facts.clock.now()
    expiring = list(filter(None, (certificate_finding(each, now) for each in found.certificates)))
    covered = {each.object for each in expiring}
    # The finding about the certificate itself also names its Secret and hosts.
    found.findings = [each for each in found.findings if each.code != EXPIRED or each.object not in covered]
    found.findings += expiring
    found.findings = await ordered(found.findings, attrgetter("place"))
    return found


def _note_users(users: dict[RecordKey, list[str]], entry: Entry) -> None:
    for key in entry.record.refs:
        known = users.setdefault(key, [])
        if len(known) < MOST_USERS and entry.key.kind == "routes":
            known += [host for host in (entry.hosts or (EVERY_HOST,))[:MOST_USERS] if host not in known]
