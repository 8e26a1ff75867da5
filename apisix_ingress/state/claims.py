"""Claims of routes on upstreams. The provider of the target (Service or ApisixUpstream) owns the upstream's record.

So a change of endpoints needs one translation and one write, and no route is translated again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.names import Granularity, wide_id


@dataclass(frozen=True, slots=True)
class UpstreamOverrides:
    """Settings of an Ingress for the upstreams of its backends. Timeouts are seconds (connect, send, read)."""

    scheme: str | None = None
    retries: int | None = None
    timeout: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class UpstreamVariant:
    """Upstream settings of one route's backend that other routes to the same backend do not have.

    Attributes:
        scheme: Scheme of requests to the backend; empty for the scheme of the Service's settings.
        retries: How often a request is sent again; None for the setting of the Service.
        own: Fields of the record as canonical JSON, which replace those of the Service's settings; or empty.
        fields: Fields of the record as canonical JSON, which replace all settings of the Service; empty to use those.
    """

    scheme: str = ""
    retries: int | None = None
    own: str = ""
    fields: str = ""

    @property
    def name(self) -> str:
        """The part of the upstream's name that distinguishes it from others of the same Service port."""
        hashed = [wide_id(text) for text in (self.fields, self.own) if text]
        retries = [] if self.retries is None else [f"{self.retries}-retries" if self.retries else "once"]
        return "-".join([*hashed, *([self.scheme] if self.scheme else []), *retries])


class UpstreamClaim(NamedTuple):
    """One upstream that a route needs.

    Attributes:
        target: The Service or ApisixUpstream from which the upstream is generated.
        port: Port number of the Service; 0 for an ApisixUpstream.
        subset: Name of the pod subset, or empty.
        granularity: Whether the nodes are the endpoints or the Service's address.
        overrides: Settings of the claiming Ingress, or None.
        weak: The claimant cannot be translated now, but its routes may still be in a gateway since before a restart of
            the controller. The upstream is updated where it exists, and not created where it does not.
        variant: Distinguishes the upstream from others of the same port; None for the plain upstream.
    """

    target: ObjectKey
    port: int = 0
    subset: str = ""
    granularity: Granularity = "endpoint"
    overrides: UpstreamOverrides | None = None
    weak: bool = False
    variant: UpstreamVariant | None = None
    clusters: frozenset[str] | None = None
    """The gateway clusters of the claimant, see `Record.clusters`."""


class Claimant(NamedTuple):
    """The owner of a claim. Ordered by age, then by key, so that precedence does not depend on the order of events."""

    created: str
    owner: ObjectKey


class Claims:
    """Claims by owner and by target."""

    def __init__(self) -> None:
        self._by_owner: dict[ObjectKey, tuple[Claimant, frozenset[UpstreamClaim]]] = {}
        # Target → claim → its claimants, ordered: thousands of routes may claim the same upstream of one Service.
        self._by_target: dict[ObjectKey, dict[UpstreamClaim, list[Claimant]]] = {}

    def replace(self, claimant: Claimant, claims: Iterable[UpstreamClaim]) -> frozenset[ObjectKey]:
        """Replace an owner's claims; return the targets with a change of distinct claims or of their oldest claimants.

        An additional claimant of an upstream that an older one claims changes nothing for the target.
        """
        owner, after = claimant.owner, frozenset(claims)
        old_claimant, before = self._by_owner.get(owner, (claimant, frozenset()))
        kept = before & after if old_claimant == claimant else frozenset()
        changed = {claim.target for claim in before - kept if self._drop(old_claimant, claim)}
        changed |= {claim.target for claim in after - kept if self._add(claimant, claim)}
        if after:
            self._by_owner[owner] = (claimant, after)
        else:
            self._by_owner.pop(owner, None)
        return frozenset(changed)

    def of(self, target: ObjectKey) -> tuple[tuple[Claimant, UpstreamClaim], ...]:
        """Return every claim on a target, the oldest claimant first."""
        claims = self._by_target.get(target, {})
        return _ordered((claimant, claim) for claim, claimants in claims.items() for claimant in claimants)

    def distinct(self, target: ObjectKey) -> tuple[tuple[Claimant, UpstreamClaim], ...]:
        """Return each claim on a target once, with its oldest claimant; the oldest claimant first."""
        return _ordered((claimants[0], claim) for claim, claimants in self._by_target.get(target, {}).items())

    def is_target(self, key: ObjectKey) -> bool:
        """Return whether anything claims an upstream of an object."""
        return key in self._by_target

    def claims_of(self, owner: ObjectKey) -> frozenset[UpstreamClaim]:
        """Return an owner's claims."""
        return self._by_owner[owner][1] if owner in self._by_owner else frozenset()

    def _add(self, claimant: Claimant, claim: UpstreamClaim) -> bool:
        """Add a claimant; return whether it is now the oldest."""
        claimants = self._by_target.setdefault(claim.target, {}).setdefault(claim, [])
        insort(claimants, claimant)
        return claimants[0] == claimant

    def _drop(self, claimant: Claimant, claim: UpstreamClaim) -> bool:
        """Remove a claimant; return whether it was the oldest."""
        claims = self._by_target[claim.target]
        claimants = claims[claim]
        index = bisect_left(claimants, claimant)
        del claimants[index]
        if not claimants:
            del claims[claim]
        if not claims:
            del self._by_target[claim.target]
        return index == 0


def weakened(claims: Iterable[UpstreamClaim]) -> tuple[UpstreamClaim, ...]:
    """Return claims to upstreams that earlier records may need: see `UpstreamClaim.weak`."""
    return tuple(claim._replace(weak=True) for claim in claims)


def _ordered(found: Iterable[tuple[Claimant, UpstreamClaim]]) -> tuple[tuple[Claimant, UpstreamClaim], ...]:
    every = tuple(found)
    return tuple(sorted(every, key=_precedence)) if len(every) > 1 else every


def _precedence(found: tuple[Claimant, UpstreamClaim]) -> tuple[Claimant, int, str, str, bool, str, str]:
    claimant, claim = found
    return (
        claimant,
        claim.port,
        claim.subset,
        claim.granularity,
        claim.weak,
        repr(claim.overrides),
        repr(claim.variant),
    )
