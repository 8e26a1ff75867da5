"""The form of `explain`: parses the input, computes the result from the desired records in a thread, with a limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from apisix_ingress.diagnostics.claimants import candidates, claimant
from apisix_ingress.diagnostics.wanted_certificates import missing_texts
from apisix_ingress.errors import UsageError
from apisix_ingress.explain.answer import CLOSED, Claimant, Unapplied, unread
from apisix_ingress.explain.report import explain, of_clusters
from apisix_ingress.explain.request import ProbeRequest, parse_request
from apisix_ingress.explain.response import Records
from apisix_ingress.gateway.sync.observer import RecordState
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.snapshot import Snapshot
from apisix_ingress.statuspage.summary.entry import SERVES_LAST, Entry

DEADLINE = 2.0
"""Seconds for one result."""

LONGEST_URL, LONGEST_HEADERS, MOST_HEADERS, LONGEST_PORT = 2_048, 4_096, 20, 10

_WORDS = {
    "pending": "the write to cluster {} has not been confirmed yet",
    "waiting": "the write to cluster {} waits for another record",
    "rejected": "cluster {} rejected it",
    "unreachable": "cluster {} is not reachable",
}


_UNREAD = "It has not responded since this replica began to lead, so its records are not known"


class Busy(Exception):
    """No result in time, or another one is being computed; the message is shown."""


@dataclass(frozen=True, slots=True)
class Question:
    """The fields of the form, as they were filled in."""

    url: str = ""
    method: str = "GET"
    headers: str = ""
    remote_addr: str = ""
    server_port: str = ""
    cluster: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Question:
        """Read the fields from a query."""
        return cls(**{field.name: query[field.name].strip() for field in fields(cls) if query.get(field.name)})

    def request(self) -> ProbeRequest:
        """Return the request to explain.

        Raises:
            UsageError: A field is invalid.
        """
        if len(self.url) > LONGEST_URL or len(self.headers) > LONGEST_HEADERS:
            raise UsageError(f"too long: a URL has {LONGEST_URL} characters at most, headers {LONGEST_HEADERS}")
        headers = tuple(line.strip() for line in self.headers.splitlines() if line.strip())
        if len(headers) > MOST_HEADERS:
            raise UsageError(f"{len(headers)} headers: the limit is {MOST_HEADERS}")
        return parse_request(self.url, self.method, headers, self.remote_addr, self._port())

    def _port(self) -> int | None:
        if not self.server_port:
            return None
        text = self.server_port
        # Python does not parse numbers with thousands of digits.
        if not (text.isascii() and text.isdecimal() and len(text) <= LONGEST_PORT and 0 < int(text) < 65536):
            raise UsageError(f"invalid port {text!r}; use a number from 1 to 65535")
        return int(text)


@dataclass(frozen=True)
class _Timed(ProbeRequest):
    """A request that raises after a time of `time.monotonic`: conditions are evaluated in a thread."""

    until: float = 0.0

    def variable(self, name: str) -> str | None:
        """Return a variable.

        Raises:
            Busy: It is too late.
        """
        if time.monotonic() > self.until:
            raise Busy(f"no response within {DEADLINE:g} s: the conditions of the routes take too long")
        return super().variable(name)


class Explainer:
    """Answers one question at a time."""

    def __init__(self) -> None:
        self._running: asyncio.Future[JsonObject] | None = None

    async def answer(
        self, question: Question, facts: PageInputs, snapshot: Snapshot, clusters: Sequence[str]
    ) -> JsonObject:
        """Return the document that `explain -o json` prints, with the answers of these gateway clusters.

        Raises:
            UsageError: The input is invalid.
            Busy: There is no result in time.
        """
        asked = question.request()
        if self._running is not None and not self._running.done():
            raise Busy("another request is being explained; try again in a moment")
        timed = _Timed(**_fields(asked), until=time.monotonic() + DEADLINE)
        # From here on it is busy: other requests may arrive while the records are collected.
        self._running = asyncio.ensure_future(_of_clusters(timed, facts, snapshot, clusters))
        self._running.add_done_callback(_looked_at)
        done, _ = await asyncio.wait((self._running,), timeout=DEADLINE + 0.5)
        if not done:
            raise Busy(f"no response within {DEADLINE:g} s")
        return self._running.result()


async def _of_clusters(
    request: ProbeRequest, facts: PageInputs, snapshot: Snapshot, clusters: Sequence[str]
) -> JsonObject:
    return of_clusters({each: await _explained(request, facts, snapshot, each) for each in clusters})


async def _explained(request: ProbeRequest, facts: PageInputs, snapshot: Snapshot, cluster: str) -> JsonObject:
    records: dict[RecordKey, FrozenJson] = {}
    unapplied: dict[RecordKey, Unapplied] = {}
    async for entry in in_turns((*snapshot.entries.values(), *snapshot.kept.values())):
        state = next((state for name, state in entry.states if name == cluster), None)
        if state is None:
            continue
        missing = _missing(facts, cluster, entry, state)
        if missing is None:
            records[entry.key] = entry.record.body
            continue
        unapplied[entry.key] = missing
        if missing.is_closed:
            records[entry.key] = {**entry.record.body, **CLOSED}
        elif missing.has_earlier:
            records[entry.key] = _earlier(facts, cluster, entry.key) or entry.record.body
    asking = [
        found
        async for key in in_turns(tuple(candidates(facts.world)))
        if (found := claimant(facts.world, facts.options, key)) is not None
    ]
    known = _Known(records, unapplied, asking, _unverified(facts, cluster), facts.clock.now())
    document = await asyncio.to_thread(_explain, request, snapshot, known)
    return {**document, "answer": unread(known.unverified)} if _is_unread(facts, cluster) else document


def _earlier(facts: PageInputs, cluster: str, key: RecordKey) -> FrozenJson | None:
    return next((each.body_of(key) for each in facts.clusters if each.name == cluster), None)


def _unverified(facts: PageInputs, cluster: str) -> str:
    """Return why it is not known what a gateway cluster serves; empty if it is."""
    outage = next((facts.outage(each) for each in facts.clusters if each.name == cluster), None)
    if outage is None:
        return ""
    more = _UNREAD if _is_unread(facts, cluster) else SERVES_LAST
    return f"gateway cluster {cluster} is {outage.headline}. {more}"


def _is_unread(facts: PageInputs, cluster: str) -> bool:
    """Return whether a gateway cluster does not respond, and never has since this replica leads."""
    return any(facts.outage(each) and not each.taken_over for each in facts.clusters if each.name == cluster)


def _missing(facts: PageInputs, cluster: str, entry: Entry, state: RecordState) -> Unapplied | None:
    """Return the records that a gateway does not have in the desired version; uncompared ones count as applied."""
    if state.kind in ("applied", "unknown") or _is_unread(facts, cluster):
        return None
    has_earlier = any(each.holds(entry.key) for each in facts.clusters if each.name == cluster)
    reason = f"{_WORDS[state.kind].format(cluster)}{_because(state)}"
    return Unapplied(entry.record.body, reason, has_earlier and not state.is_closed, state.is_closed)


def _because(state: RecordState) -> str:
    return f": {state.message}" if state.message else ""


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known about a gateway cluster."""

    records: Records
    unapplied: Mapping[RecordKey, Unapplied]
    claimants: Sequence[Claimant]
    unverified: str
    now: datetime


def _explain(request: ProbeRequest, snapshot: Snapshot, known: _Known) -> JsonObject:
    def owner_of(key: RecordKey) -> str:
        return str((snapshot.entries.get(key) or snapshot.kept[key]).owner)

    return explain(
        request,
        known.records,
        owner_of,
        unapplied=known.unapplied,
        claimants=known.claimants,
        unverified=known.unverified,
        missing=missing_texts(snapshot.summary.wanted),
        now=known.now,
    )


def _looked_at(done: asyncio.Future[JsonObject]) -> None:
    """Retrieve the result: after the deadline it would otherwise be reported as never retrieved."""
    if not done.cancelled():
        done.exception()


def _fields(request: ProbeRequest) -> dict[str, Any]:
    """Return the fields of a request by name."""
    return {field.name: getattr(request, field.name) for field in fields(ProbeRequest)}
