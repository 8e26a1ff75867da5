"""The headline: the state of everything in one sentence, and the totals behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from apisix_ingress.diagnostics.empty_state import Hint, empty_state
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.states import FAILING_HOSTS, HEALTHY_HOSTS
from apisix_ingress.statuspage import conflicting_objects as rivals
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.summary.certificates import Certificate
from apisix_ingress.statuspage.summary.findings import Finding
from apisix_ingress.statuspage.summary.hosts import Host
from apisix_ingress.statuspage.views.gateway_api import has_gateway_api
from apisix_ingress.statuspage.views.presentation import rfc3339
from apisix_ingress.statuspage.views.problems import all_findings, problem_counts

Tone = Literal["good", "busy", "warn", "bad", "idle"]

_EMPTY = "No routes yet"
_CAUSES = 3
"""Causes that the headline names."""

_NO_RULES = "The served objects define no route: check their rules."


def navigation(facts: PageInputs, snapshot: Snapshot) -> JsonObject:
    """Return the number for each page in the navigation, and which pages exist."""
    findings = all_findings(facts, snapshot)
    counts = problem_counts(findings)
    return {
        "problems": len(findings),
        "urgent": counts["urgent"],
        "conflicts": rivals.count(snapshot),
        "gateway_api": has_gateway_api(facts),
        "tone": headline(facts, snapshot, findings)["tone"],
    }


def headline(facts: PageInputs, snapshot: Snapshot, findings: Sequence[Finding]) -> JsonObject:
    """Return the state in one sentence: its tone, the sentence, and one more; `checked` is the oldest comparison."""
    tone, title, detail = _sentence(facts, snapshot, findings)
    times = [facts.journal.of(each.name).compared_at for each in facts.clusters if each.taken_over]
    known = [each for each in times if each is not None]
    return {
        "tone": tone,
        "title": title,
        "detail": detail,
        "command": page_hint(facts).command if tone == "idle" and title == _EMPTY else "",
        "checked": rfc3339(min(known) if known and facts.controller.leads else None),
    }


def _sentence(facts: PageInputs, snapshot: Snapshot, findings: Sequence[Finding]) -> tuple[Tone, str, str]:
    states = snapshot.summary.routes
    live, total = sum(states[each] for each in HEALTHY_HOSTS), states.total()
    clusters = plural(len(facts.clusters), "gateway cluster")
    some = f"{live:,} of {plural(total, 'route')} live on {clusters}{_uncompared(facts)}"
    if not facts.controller.is_ready:
        return "busy", "Reading and translating objects", "This page is incomplete, and nothing is written yet."
    failing = [each for each in snapshot.summary.hosts if each.status in FAILING_HOSTS]
    critical = [each for each in findings if each.severity == "critical"]
    if critical and (critical[0].cluster or not failing):
        more = f", and {len(critical) - 1} more" if len(critical) > 1 else ""
        return "bad", f"{clean(critical[0].title)}{more}", clean(critical[0].message)
    urgent = [each for each in findings if each.severity != "warning"]
    if not facts.controller.leads:
        return "idle", "This replica is a follower", _of_follower(facts, total, urgent)
    if failing:
        return "bad", _failing(failing, len(snapshot.summary.hosts)), f"{_causes(failing)}{some}."
    if urgent:
        return "bad" if _is_severe(urgent) else "warn", _needs(urgent), f"{some}."
    if total == 0:
        return "idle", _EMPTY, f"{page_hint(facts).text or _NO_RULES} {clusters} connected."
    if live < total:
        detail = f"Writing to {clusters}{_uncompared(facts)}."
        return "busy", f"{total - live:,} of {plural(total, 'route')} not live yet", detail
    title = f"All {total:,} routes live" if total > 1 else "The only route is live"
    return "good", f"{title} on {clusters}", ""


def page_hint(facts: PageInputs) -> Hint:
    """Return what is missing if there are no routes; without a command if objects are read from files."""
    found = empty_state(facts.world, facts.options)
    return Hint(clean(found.text), clean(found.command) if facts.controller.watches else "")


def _failing(failing: Sequence[Host], total: int) -> str:
    """Return how many hosts fail, and how if that is the same for all."""
    statuses = {each.response.status if each.response is not None else None for each in failing}
    ending = "s" if len(failing) == 1 else ""
    status = statuses.pop() if len(statuses) == 1 else None
    how = f"answer{ending} {status}" if status is not None else f"fail{ending}"
    return f"{len(failing):,} of {plural(total, 'host')} {how}"


def _causes(failing: Sequence[Host]) -> str:
    """Return the most frequent causes with the number of hosts, as the beginning of a text."""
    counts = Counter(each.cause.title or each.status for each in failing)
    shown = [f"{cause} ({count:,})" if len(counts) > 1 else cause for cause, count in counts.most_common(_CAUSES)]
    return clean(f"{'; '.join(shown)}. ")


def _is_severe(urgent: Sequence[Finding]) -> bool:
    return any(each.severity == "error" for each in urgent)


def _needs(urgent: Sequence[Finding]) -> str:
    objects = {each.object for each in urgent if each.object is not None}
    clusters = {each.cluster for each in urgent if each.object is None}
    parts = [plural(len(objects), "object")] if objects else []
    parts += [plural(len(clusters), "gateway cluster")] if clusters else []
    verb = "needs" if len(objects) + len(clusters) == 1 else "need"
    return f"{' and '.join(parts)} {verb} attention"


def _uncompared(facts: PageInputs) -> str:
    """Return which gateway clusters were not compared yet, so that nothing is known about them."""
    names = [each.name for each in facts.clusters if not each.taken_over and facts.outage(each) is None]
    return f"; gateway cluster {', '.join(names)} has not been compared yet" if names else ""


def _of_follower(facts: PageInputs, total: int, urgent: Sequence[Finding]) -> str:
    needs = f"{_needs(urgent)}. " if urgent else ""
    leader = clean(facts.controller.leader)
    if not leader:
        return f"{needs}No leader is known yet. {plural(total, 'route')} translated here."
    pod = leader.rpartition("_")[0]
    return f"{needs}{leader} leads and knows the state of the gateways: forward the port of Pod {pod} to see it."


def tiles(facts: PageInputs, snapshot: Snapshot) -> list[JsonObject]:
    """Return the totals: for each, how many are healthy, need attention and are broken."""
    summary, now = snapshot.summary, facts.clock.now()
    hosts = Counter(_health(each.status) for each in summary.hosts)
    routes: Counter[str] = Counter()
    for status, count in summary.routes.items():
        routes[_health(status)] += count
    validity = Counter(_validity(each, now) for each in summary.certificates)
    certificates = Counter(
        good=validity["valid"],
        idle=validity["unknown"],
        warn=validity["expires soon"],
        bad=validity["expired"] + validity["not valid yet"],
    )
    certificates["bad"] += validity["unreadable"] + len(summary.wanted)
    return [
        _tile("hosts", "Hosts", "/hosts", {}, hosts),
        _tile("routes", "Routes", "/records", {}, routes),
        _tile("upstreams", "Upstreams", "/records", {"kind": "upstreams"}, _records(snapshot, "upstreams")),
        _tile("certificates", "Certificates", "/certificates", {}, certificates),
        _tile("consumers", "Consumers", "/records", {"kind": "consumers"}, _records(snapshot, "consumers")),
    ]


def _validity(each: Certificate, now: datetime) -> str:
    """Return whether a certificate can be used; a valid one is unknown if its gateway clusters do not respond."""
    found = each.validity(now)
    return "unknown" if found == "valid" and each.entry.status in ("unknown", "unreachable") else found


def _records(snapshot: Snapshot, kind: str) -> Counter[str]:
    entries = snapshot.by_kind.get(kind, ())
    return Counter("bad" if each.is_empty else _health(each.status) for each in entries)


def _health(status: str) -> str:
    if status == "applied" or status in HEALTHY_HOSTS:
        return "good"
    if status in ("unknown", "unreachable"):
        return "idle"
    return "bad" if status in FAILING_HOSTS else "warn"


def _tile(name: str, title: str, path: str, query: JsonObject, counts: Counter[str]) -> JsonObject:
    shown = {each: counts[each] for each in ("good", "idle", "warn", "bad")}
    return {"name": name, "title": title, "path": path, "query": query, "total": counts.total(), **shown}


def plural(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"
