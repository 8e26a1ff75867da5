"""What a translation returns. How its parts are used is decided in `providers`."""

from __future__ import annotations

from dataclasses import dataclass

from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.state.claims import UpstreamClaim
from apisix_ingress.state.desired import Hold


@dataclass(frozen=True, slots=True)
class Translation:
    """The value that `translate_<kind>(object, view, options)` returns; of a deleted object: the empty one.

    Attributes:
        records: What the object wants in the gateways. With a problem of severity error they don't count.
        claims: The upstreams that its records need. With an error: the upstreams that its earlier records may need.
        problems: The user's mistakes, in the order of the fields.
        holds: Which records of a gateway are this object's, told without translating it: they stay when it fails.
        kept: Records of the owner that stay as it published them last, although the rest of it is published anew.
            What it never published does not come into being.
    """

    records: tuple[Record, ...] = ()
    claims: tuple[UpstreamClaim, ...] = ()
    problems: tuple[Problem, ...] = ()
    holds: tuple[Hold, ...] = ()
    kept: frozenset[RecordKey] = frozenset()

    @property
    def failed(self) -> bool:
        """Whether nothing new may be published: a translation counts as a whole or not at all."""
        return any(problem.severity == "error" for problem in self.problems)


NOTHING = Translation()
