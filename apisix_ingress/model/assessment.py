"""Assessments: the result of translating a Gateway API object, as data for its status.

Translations decide conditions and reasons; `translation.gateway.statuses` generates the status document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from apisix_ingress.model.keys import ObjectKey


@dataclass(frozen=True, slots=True)
class Verdict:
    """One condition, without generation and times."""

    type: str
    holds: bool
    reason: str
    message: str = ""


class ListenerKey(NamedTuple):
    """A listener: its Gateway or ListenerSet, and its name."""

    owner: ObjectKey
    name: str


@dataclass(frozen=True, slots=True)
class ListenerState:
    """One entry of `status.listeners`."""

    name: str
    port: int
    kinds: tuple[str, ...]
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class ParentState:
    """One entry of `status.parents` of a route.

    Attributes:
        reference: The reference in the object.
        verdicts: Its conditions.
    """

    reference: Mapping[str, Any]
    verdicts: tuple[Verdict, ...]

    def rejected(self, message: str) -> ParentState:
        """Return the entry if the records of the route are rejected or closed."""
        return replace(self, verdicts=changed(self.verdicts, "Accepted", reason="UnsupportedValue", message=message))


@dataclass(frozen=True, slots=True)
class Assessment:
    """The content of the status of one object.

    Attributes:
        verdicts: Conditions of the object as a whole.
        listeners: Of a Gateway or ListenerSet.
        parents: Of a route.
        addresses: Of a Gateway: (type, value); None: the addresses published for every Ingress.
        listener_sets: Of a Gateway: how many ListenerSets are attached.
        features: Of a GatewayClass.
        is_pending: It depends on the version of gateways, which is not known yet: it is not written.
    """

    verdicts: tuple[Verdict, ...] = ()
    listeners: tuple[ListenerState, ...] = ()
    parents: tuple[ParentState, ...] = ()
    addresses: tuple[tuple[str, str], ...] | None = None
    listener_sets: int | None = None
    features: tuple[str, ...] = field(default=())
    is_pending: bool = False

    def rejected(self, message: str) -> Assessment:
        """Return the assessment if the records of the object are rejected or closed, although it is valid."""
        if self.parents:
            return replace(self, parents=tuple(each.rejected(message) for each in self.parents))
        return replace(self, verdicts=changed(self.verdicts, "Programmed", reason="Pending", message=message))

    def noting(self, type: str, message: str) -> Assessment:
        """Return the assessment with a message for a condition that holds otherwise without one."""
        noted = (
            replace(each, message=message) if each.type == type and each.holds and not each.message else each
            for each in self.verdicts
        )
        return replace(self, verdicts=tuple(noted))


def changed(verdicts: Iterable[Verdict], type: str, *, reason: str, message: str) -> tuple[Verdict, ...]:
    """Return the verdicts with one type set to False for a reason."""
    return tuple(
        replace(each, holds=False, reason=reason, message=message) if each.type == type else each for each in verdicts
    )
