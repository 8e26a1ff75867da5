"""Causes: why requests for a host fail, or may fail, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from apisix_ingress.diagnostics.shortfalls import exists, idle
from apisix_ingress.explain.response import Response
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.problem_codes.table import CODES
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.summary.entry import Entry
from apisix_ingress.statuspage.summary.times import emptied_since, problem_since, rejected_since

Problems = Mapping[ObjectKey, tuple[Problem, ...]]


class Cause(NamedTuple):
    """Why requests for a host fail.

    Attributes:
        text: A sentence; may contain secrets until it is cleaned.
        title: The same in a few words, equal for equal causes.
        since: When it began, as far as it is known.
    """

    text: str = ""
    title: str = ""
    since: datetime | None = None


UNKNOWN = Cause()


def cause_of_response(
    facts: PageInputs, entry: Entry, response: Response, entries: Mapping[RecordKey, Entry], problems: Problems
) -> Cause:
    """Return why a route responds with an error."""
    if entry.closed:
        return causes_of_records(facts, [entry])
    for each in response.destinations if response.kind == "error" else ():
        upstream = entries.get(each.key) if each.key is not None else None
        if upstream is not None and upstream.is_empty and exists(facts.world, upstream.owner):
            return Cause(idle(upstream.owner), _title("NoEndpoints"), emptied_since(facts, upstream))
    return cause_of_objects(facts, entry.owners, problems) or Cause(response.cause, response.cause)


def cause_of_objects(facts: PageInputs, owners: Iterable[ObjectKey], problems: Problems) -> Cause | None:
    """Return the first problem of objects that is not only a warning; None if they have none."""
    for owner in owners:
        for each in problems.get(owner, ()):
            if each.severity != "warning":
                return Cause(each.message, _title(each.code), problem_since(facts, owner, each))
    return None


def causes_of_records(facts: PageInputs, entries: Sequence[Entry]) -> Cause:
    """Return the first cause of records that are not in effect in every gateway cluster; empty if there is none."""
    return next((each for entry in entries for each in _of_states(facts, entry)), UNKNOWN)


def _of_states(facts: PageInputs, entry: Entry) -> Iterator[Cause]:
    outages = {each.name: facts.outage(each) for each in facts.clusters}
    for cluster, state in entry.states:
        if state.kind == "rejected":
            earlier = "" if state.is_closed else "; until the object is corrected, its earlier version answers"
            text = f"gateway cluster {cluster} rejects the record: {state.message}{earlier}"
            yield Cause(text, _title("Rejected"), rejected_since(facts, entry, cluster))
        elif (outage := outages.get(cluster)) is not None:
            yield Cause(f"gateway cluster {cluster} does not respond: {outage.cause}", _title("Outage"), outage.since)
        elif state.kind == "waiting":
            yield Cause(f"in gateway cluster {cluster}: {state.message}", _title("Blocked"))


def _title(code: str) -> str:
    known = CODES.get(code)
    return known.title if known is not None else code
