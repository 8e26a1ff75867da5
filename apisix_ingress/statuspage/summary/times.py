"""Since when something is wrong: as this process saw it, or else as earlier leaders recorded it.

Each time belongs to one cause. A time of another cause would be wrong, so that none is shown if it is not known.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from apisix_ingress.kube.status.event_times import moment
from apisix_ingress.model.json import FrozenJson, list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.statuspage.inputs import PageInputs
from apisix_ingress.statuspage.summary.entry import Entry
from providers.status.conditions import REJECTED_REASON

_COMPARED = 200
"""Letters of a message that are looked up in conditions, which shorten long messages."""


def problem_since(facts: PageInputs, owner: ObjectKey, problem: Problem) -> datetime | None:
    """Return since when an object has a problem."""
    return facts.journal.since(owner, problem.code) or _condition_since(facts, owner, problem.message)


def rejected_since(facts: PageInputs, entry: Entry, cluster: str) -> datetime | None:
    """Return since when a cluster rejects a record: a new leader is rejected again, so the earliest time counts."""
    message = next((state.message for name, state in entry.states if name == cluster), "")
    times = (
        facts.journal.rejected(cluster, entry.key),
        facts.journal.since(entry.owner, REJECTED_REASON),
        _condition_since(facts, entry.owner, message),
    )
    return min(filter(None, times), default=None)


def emptied_since(facts: PageInputs, entry: Entry) -> datetime | None:
    """Return since when an upstream has no nodes in some cluster."""
    times = (facts.journal.emptied(cluster, entry.key) for cluster, _ in entry.states)
    return min(filter(None, times), default=None)


def _condition_since(facts: PageInputs, owner: ObjectKey, message: str) -> datetime | None:
    """Return when a condition with a message became False."""
    store = facts.world.stores.get(owner.kind)
    item = store.get(owner) if store is not None else None
    status = item.status if isinstance(item, CustomObject) else {}
    shown = (each for each in _conditions(status) if message[:_COMPARED] in str(each.get("message")))
    times = (moment(each.get("lastTransitionTime")) for each in shown if each.get("status") == "False")
    return min(filter(None, times), default=None)


def _conditions(status: FrozenJson) -> Iterator[FrozenJson]:
    """Yield the conditions of an object, and those of a route about each of its Gateways."""
    for holder in (status, *map(mapping_in, list_in(status.get("parents")))):
        yield from map(mapping_in, list_in(holder.get("conditions")))
