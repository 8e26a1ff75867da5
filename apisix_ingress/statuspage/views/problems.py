"""Problems: everything that needs attention, in one list; and the problems of one object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.problem_codes.table import CODES
from apisix_ingress.model.states import SEVERITIES
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.record_masking import clean
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.summary.findings import Finding, cluster_findings, listed, watch_findings
from apisix_ingress.statuspage.views.presentation import (
    MOST_SHOWN,
    bounded,
    object_reference,
    page_of,
    paging,
    rfc3339,
)


def live_findings(facts: PageInputs) -> list[Finding]:
    """Return what is wrong with clusters and watches now, the most urgent first."""
    found = [each for cluster in facts.clusters for each in cluster_findings(facts, cluster)]
    return sorted([*found, *watch_findings(facts)], key=lambda each: each.place)


def all_findings(facts: PageInputs, snapshot: Snapshot) -> list[Finding]:
    """Return everything that is wrong, the most urgent first."""
    live = live_findings(facts)
    merged = [*live, *snapshot.summary.findings]
    return sorted(merged, key=lambda each: SEVERITIES.index(each.severity)) if live else merged


def problem_counts(findings: Iterable[Finding]) -> JsonObject:
    """Return severity → number of findings, and `urgent`: all except warnings."""
    counts = Counter(each.severity for each in findings)
    return {**{each: counts[each] for each in SEVERITIES}, "urgent": counts.total() - counts["warning"]}


async def problems(facts: PageInputs, snapshot: Snapshot, query: str, severity: str, page: int) -> JsonObject:
    """Return a page of what is wrong, of one severity unless it is empty."""
    words, every = query.lower().split(), all_findings(facts, snapshot)
    found = [each async for each in in_turns(every) if severity in ("", each.severity) and _mentions(each, words)]
    return {
        "query": query,
        "severity": severity,
        "counts": problem_counts(every),
        **paging(len(found), page),
        "items": [finding_row(each) for each in page_of(found, page)],
        "groups": grouped(page_of(found, page)),
    }


def grouped(findings: Iterable[Finding]) -> list[JsonObject]:
    """Return findings, those of one cause in one row with `more`; the most urgent, then the largest, first."""
    groups: dict[object, list[Finding]] = {}
    for each in findings:
        groups.setdefault(each.cause, []).append(each)
    ranked = sorted(groups.values(), key=lambda members: (members[0].rank, -len(members)))
    return [_group(members) for members in ranked]


def _group(members: list[Finding]) -> JsonObject:
    known = [each.since for each in members if each.since is not None]
    hosts = tuple(dict.fromkeys(host for each in members for host in each.hosts))
    row = finding_row(replace(members[0], hosts=hosts))
    row |= {"since": rfc3339(min(known) if known else None), "count": len(members)}
    first = row["message"]
    row["more"] = [_further(finding_row(each), first) for each in members[1 : MOST_SHOWN + 1]]
    return row


def _further(row: JsonObject, first: str) -> JsonObject:
    """Return what a further finding adds: its place, and its message if that is another one."""
    message = row["message"] if row["message"] != first else ""
    return {**{name: row[name] for name in ("object", "record", "field")}, "message": message}


def finding_row(each: Finding) -> JsonObject:
    """Return a finding for display."""
    known = CODES.get(each.code)
    return {
        "severity": each.severity,
        "title": clean(each.title),
        "hosts": bounded(map(clean, each.hosts)),
        "heading": clean(heading(each)),
        "message": clean(each.message),
        "code": each.code,
        "number": known.number if known is not None else "",
        "effect": known.effect if known is not None else "",
        "remedy": known.remedy if known is not None else "",
        "field": clean(each.field),
        "object": object_reference(each.object) if each.object is not None else None,
        "record": {"kind": each.record.kind, "id": each.record.id} if each.record is not None else None,
        "cluster": each.cluster,
        "since": rfc3339(each.since),
    }


def heading(each: Finding) -> str:
    """Return the hosts that a finding harms, and what is wrong with them."""
    return f"{listed(each.hosts)}: {each.title}" if each.hosts else each.title


def problem_row(owner: ObjectKey, problem: Problem) -> JsonObject:
    """Return a problem of an object for display."""
    return {
        "object": object_reference(owner),
        "severity": problem.severity,
        "code": problem.code,
        "field": clean(problem.path),
        "message": clean(problem.message),
    }


def _mentions(each: Finding, words: list[str]) -> bool:
    if not words:
        return True
    # Search the displayed text, so that masked values cannot be guessed letter by letter.
    known = CODES.get(each.code)
    names = (each.code, known.number if known else "", each.field, each.cluster, str(each.object or ""), *each.hosts)
    text = "\n".join((*names, clean(each.title), clean(each.message))).lower()
    return all(word in text for word in words)
