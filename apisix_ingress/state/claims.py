"""Upstreams that routes want. Routes claim, the provider of the target (Service, ApisixUpstream) owns the record.

So a change of endpoints costs one translation and one write, and no route is translated again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.names import Granularity


@dataclass(frozen=True, slots=True)
class UpstreamOverrides:
    """What an Ingress sets on the upstreams of its backends. Timeouts are seconds (connect, send, read)."""

    scheme: str | None = None
    retries: int | None = None
    timeout: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class UpstreamClaim:
    """One upstream that a route needs.

    Attributes:
        target: The Service or ApisixUpstream that it is made from.
        port: Port number of the Service; 0 for an ApisixUpstream.
        subset: Name of the pod subset, or empty.
        granularity: Whether the nodes are the endpoints or the Service's address.
        overrides: Settings of the claiming Ingress, or None.
        weak: The claimant can't be translated now. Its routes may still be in a gateway from an earlier life of the
            controller: the upstream is kept right where it exists, and not created where it does not.
    """

    target: ObjectKey
    port: int = 0
    subset: str = ""
    granularity: Granularity = "endpoint"
    overrides: UpstreamOverrides | None = None
    weak: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Claimant:
    """Who claims. Orders by age, then by key, so that precedence does not depend on the order of events."""

    created: str
    owner: ObjectKey


class Claims:
    """Claims by owner and by target."""

    def __init__(self) -> None:
        self._by_owner: dict[ObjectKey, tuple[Claimant, frozenset[UpstreamClaim]]] = {}
        self._by_target: dict[ObjectKey, dict[ObjectKey, None]] = {}

    def replace(self, claimant: Claimant, claims: Iterable[UpstreamClaim]) -> frozenset[ObjectKey]:
        """Replace an owner's claims; return the targets that gained or lost one."""
        owner, after = claimant.owner, frozenset(claims)
        old_claimant, before = self._by_owner.get(owner, (claimant, frozenset()))
        changed = before ^ after if old_claimant == claimant else before | after
        wanted = {claim.target for claim in after}
        for target in {claim.target for claim in before} - wanted:
            self._drop(target, owner)
        for target in wanted:
            self._by_target.setdefault(target, {})[owner] = None
        if after:
            self._by_owner[owner] = (claimant, after)
        else:
            self._by_owner.pop(owner, None)
        return frozenset(claim.target for claim in changed)

    def of(self, target: ObjectKey) -> tuple[tuple[Claimant, UpstreamClaim], ...]:
        """Return every claim on a target, the oldest claimant first."""
        found = [
            (claimant, claim)
            for owner in self._by_target.get(target, ())
            for claimant, claims in (self._by_owner[owner],)
            for claim in claims
            if claim.target == target
        ]
        return tuple(sorted(found, key=_precedence))

    def claims_of(self, owner: ObjectKey) -> frozenset[UpstreamClaim]:
        """Return what an owner claims."""
        return self._by_owner[owner][1] if owner in self._by_owner else frozenset()

    def _drop(self, target: ObjectKey, owner: ObjectKey) -> None:
        owners = self._by_target[target]
        del owners[owner]
        if not owners:
            del self._by_target[target]


def _precedence(found: tuple[Claimant, UpstreamClaim]) -> tuple[Claimant, int, str, str, bool, str]:
    claimant, claim = found
    return (claimant, claim.port, claim.subset, claim.granularity, claim.weak, repr(claim.overrides))
