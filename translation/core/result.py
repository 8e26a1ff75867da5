"""The result of a translation; `providers` decides how to use its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from apisix_ingress.model.assessment import Assessment, ListenerKey
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.state.claims import UpstreamClaim
from apisix_ingress.state.holds import Hold
from translation.core.grants import Destination, Reference

NOTHING_KEPT: Mapping[RecordKey, FrozenJson] = {}


class Translation(NamedTuple):
    """The value that `translate_<kind>(object, view, options)` returns; empty for a deleted object.

    Attributes:
        records: The desired records of the object. They are ignored if there is a problem of severity error.
        claims: The upstreams that its records need. With an error: the upstreams that its earlier records may need.
        problems: The user's mistakes, in the order of the fields.
        holds: The records of the object in a gateway, known without translating it: they stay when it fails.
        references: What the records use from other namespaces through grants.
        destinations: The hosts that the records lead to, if the settings require a check of what they are.
        revoked: A reference lacks its grant, or a destination is not permitted: not even the last valid records may
        stay.
        refused: The records of an object of which the settings refuse at least a part, like `holds`; None if they
            refuse nothing. Records among them that are not desired are deleted, however many there are.
        kept: Records that keep their last published version although the others change, each with the fields
            that still change. Records that were never published are not created.
        assessment: The status of an object of the Gateway API.
        attached: The listeners that a route of the Gateway API is attached to.
        canaries: The canaries at a host of ingress-nginx, which translations of other hosts read.
    """

    records: tuple[Record, ...] = ()
    claims: tuple[UpstreamClaim, ...] = ()
    problems: tuple[Problem, ...] = ()
    holds: tuple[Hold, ...] = ()
    references: frozenset[Reference] = frozenset()
    destinations: frozenset[Destination] = frozenset()
    revoked: bool = False
    refused: tuple[Hold, ...] | None = None
    kept: Mapping[RecordKey, FrozenJson] = NOTHING_KEPT
    assessment: Assessment | None = None
    attached: frozenset[ListenerKey] = frozenset()
    canaries: tuple[CustomObject, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether nothing new may be published: a translation is used as a whole or not at all."""
        return bool(self.problems) and any(problem.severity == "error" for problem in self.problems)

    def published(self, before: Mapping[RecordKey, Record]) -> tuple[Record, ...]:
        """Return the desired records, given those published last. Only fields that a record had change in it."""
        if not self.kept:
            return self.records
        kept = (_changed(before[key], fields) for key, fields in self.kept.items() if key in before)
        return (*self.records, *kept)


def _changed(record: Record, fields: FrozenJson) -> Record:
    changes = {name: value for name, value in fields.items() if name in record.body}
    return replace(record, body={**record.body, **changes}) if changes else record


NOTHING = Translation()
