"""What a gateway would do with records whose plugins it rejects, without a gateway: routes are closed with 503."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from apisix_ingress.diagnostics.collect.offline import Outcome
from apisix_ingress.explain.answer import CLOSED, Unapplied
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.problem_codes.table import CODES


def with_rejections(
    outcome: Outcome, mistakes: Iterable[tuple[ObjectKey, Problem]]
) -> tuple[dict[RecordKey, FrozenJson], dict[RecordKey, Unapplied]]:
    """Return the records that a gateway would have, and the routes that it would not have as desired.

    Args:
        outcome: The records.
        mistakes: Mistakes in plugins of objects; a gateway rejects errors.
    """
    records, unapplied = outcome.bodies(), dict[RecordKey, Unapplied]()
    for owner, problem in mistakes:
        if problem.severity != "error":
            continue
        reason = f"the gateway would reject it: {owner}: {CODES[problem.code].number} {problem}"
        for key in _routes(outcome, owner):
            if key not in unapplied:
                unapplied[key] = Unapplied(records[key], reason, is_closed=True)
                records[key] = {**records[key], **CLOSED}
    return records, unapplied


def _routes(outcome: Outcome, owner: ObjectKey) -> Iterator[RecordKey]:
    """Yield the routes of an object, and the routes that refer to its records."""
    own = outcome.world.desired.of_owner(owner).keys()
    for record in outcome.records:
        if record.key.kind == "routes" and (record.key in own or not own.isdisjoint(record.refs)):
            yield record.key
