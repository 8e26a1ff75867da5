"""What a translation returns. How its parts are used is decided in `providers`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.state.claims import UpstreamClaim
from apisix_ingress.state.desired import Hold
from translation.core.grants import Destination, Reference


@dataclass(frozen=True, slots=True)
class Translation:
    """The value that `translate_<kind>(object, view, options)` returns; of a deleted object: the empty one.

    Attributes:
        records: What the object wants in the gateways. With a problem of severity error they don't count.
        claims: The upstreams that its records need. With an error: the upstreams that its earlier records may need.
        problems: The user's mistakes, in the order of the fields.
        holds: Which records of a gateway are this object's, told without translating it: they stay when it fails.
        references: What the records take from other namespaces by grants.
        destinations: The hosts that the records lead to, where what they are in the cluster matters.
        revoked: A reference lacks its grant, or a host is not to be reached: not even the last good records may stay.
        kept: Records that stay as the owner published them last, although the rest of it is published anew, each with
            the fields that change all the same. What it never published does not come into being.
    """

    records: tuple[Record, ...] = ()
    claims: tuple[UpstreamClaim, ...] = ()
    problems: tuple[Problem, ...] = ()
    holds: tuple[Hold, ...] = ()
    references: frozenset[Reference] = frozenset()
    destinations: frozenset[Destination] = frozenset()
    revoked: bool = False
    kept: Mapping[RecordKey, FrozenJson] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether nothing new may be published: a translation counts as a whole or not at all."""
        return any(problem.severity == "error" for problem in self.problems)

    def published(self, before: Mapping[RecordKey, Record]) -> tuple[Record, ...]:
        """Return what the owner wants now, from what it published last. Only fields that a record had change in it."""
        kept = (_changed(before[key], fields) for key, fields in self.kept.items() if key in before)
        return (*self.records, *kept)


def _changed(record: Record, fields: FrozenJson) -> Record:
    changes = {name: value for name, value in fields.items() if name in record.body}
    return replace(record, body={**record.body, **changes}) if changes else record


NOTHING = Translation()
