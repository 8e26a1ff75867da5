"""Outcomes: the effect of an object on its records. `policies` may change an outcome, `providers` publish it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from apisix_ingress.model.assessment import Assessment, ListenerKey
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.model.target import Target
from apisix_ingress.state.claims import UpstreamClaim, weakened
from apisix_ingress.state.holds import Hold
from translation.core.grants import Destination, Reference

_NOTHING: Mapping[RecordKey, FrozenJson] = {}


class Published(NamedTuple):
    """The records of an object replace its earlier ones.

    Attributes:
        records: Its desired records.
        claims: The upstreams that they need.
        protected: All its records in a gateway, recognized by name: they stay if a policy rejects the new ones.
        references: What the records use from other namespaces through grants.
        destinations: The hosts that the records lead to, if the settings require a check of what they are.
        target: The gateways that the object describes.
        carried_over: Records whose last published version stays although others change, each with the fields that
            change nevertheless. If they were never published, they are not created.
        held: Records of an earlier process that stay in the gateways as well.
    """

    records: tuple[Record, ...] = ()
    claims: tuple[UpstreamClaim, ...] = ()
    protected: tuple[Hold, ...] = ()
    references: frozenset[Reference] = frozenset()
    destinations: frozenset[Destination] = frozenset()
    carried_over: Mapping[RecordKey, FrozenJson] = _NOTHING
    problems: tuple[Problem, ...] = ()
    deletable: tuple[Hold, ...] = ()
    assessment: Assessment | None = None
    attached: frozenset[ListenerKey] = frozenset()
    hosts: frozenset[str] = frozenset()
    canaries: tuple[CustomObject, ...] = ()
    target: Target | None = None
    held: tuple[Hold, ...] = ()

    def desired(self, before: Mapping[RecordKey, Record]) -> tuple[Record, ...]:
        """Return the desired records, given those published last."""
        if not self.carried_over:
            return self.records
        stay = (_updated(before[key], fields) for key, fields in self.carried_over.items() if key in before)
        return (*self.records, *stay)

    def rejected(self, problem: Problem, size: int = 0) -> KeepLast:
        """Return the outcome if a policy rejects the records; `size` is what exceeds the budget, in bytes."""
        return KeepLast(
            self.protected,
            weakened(self.claims),
            size,
            problems=(*self.problems, problem),
            deletable=self.deletable,
            assessment=self.assessment,
            attached=self.attached,
            canaries=self.canaries,
        )


class KeepLast(NamedTuple):
    """The object cannot be published as it is: its last version stays.

    Attributes:
        protected: Its records in a gateway, known without translating it: they are not deleted. Empty if they may have
            content that the settings refuse: then only records that this process published stay.
        claims: The upstreams that its earlier records may need.
        rejected_bytes: Size of the records that exceed the budget of the namespace; 0 if they were rejected otherwise.
    """

    protected: tuple[Hold, ...] = ()
    claims: tuple[UpstreamClaim, ...] = ()
    rejected_bytes: int = 0
    problems: tuple[Problem, ...] = ()
    deletable: tuple[Hold, ...] = ()
    assessment: Assessment | None = None
    attached: frozenset[ListenerKey] = frozenset()
    hosts: frozenset[str] = frozenset()
    canaries: tuple[CustomObject, ...] = ()

    def withdrawn(self, reason: str, deletable: tuple[Hold, ...]) -> Withdrawn:
        """Return the outcome if not even the last version may stay."""
        return Withdrawn(reason, self.problems, deletable, self.assessment, self.attached, canaries=self.canaries)


class Withdrawn(NamedTuple):
    """No version of the object may stay.

    Attributes:
        reason: Why not even the last version may stay; empty for `NOT_SERVED`.
    """

    reason: str = ""
    problems: tuple[Problem, ...] = ()
    deletable: tuple[Hold, ...] = ()
    assessment: Assessment | None = None
    attached: frozenset[ListenerKey] = frozenset()
    hosts: frozenset[str] = frozenset()
    canaries: tuple[CustomObject, ...] = ()


Outcome: TypeAlias = Published | KeepLast | Withdrawn
"""Every outcome has

* `problems`: the user's mistakes, in the order of the fields;
* `deletable`: records that are deleted however many they are, because the object explains it: the settings refuse it or
  a part of it, or its consumer has another username than before;
* `assessment`: the status of an object of the Gateway API;
* `attached`: the listeners that a route of the Gateway API is attached to;
* `hosts`: the hosts that the object names and its namespace owns, if the settings let namespaces own hosts;
* `canaries`: the canaries at a host of ingress-nginx, which translations of other hosts read.
"""

NOTHING = Published()
"""The object is served and has no records."""

NOT_SERVED = Withdrawn()
"""The object is gone, or another controller serves it: there is nothing to report about it."""


def records_of(outcome: Outcome) -> tuple[Record, ...]:
    """Return the records that an outcome publishes."""
    return outcome.records if isinstance(outcome, Published) else ()


def _updated(record: Record, fields: FrozenJson) -> Record:
    """Return a record with the given values for fields that it already has."""
    changes = {name: value for name, value in fields.items() if name in record.body}
    return replace(record, body={**record.body, **changes}) if changes else record
