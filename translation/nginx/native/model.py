"""The plan of a host: its locations as the provider serves them, and what is written for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.claims import UpstreamClaim

Var: TypeAlias = Sequence[Any]
"""A condition of a route record."""

Target: TypeAlias = Literal["apisixroute", "httproute"]

PathKind: TypeAlias = Literal["Exact", "Prefix", "Pattern"]

STEPS = 16
"""Priorities between two routes of the provider: the rules of a canary become routes of their own."""

Effect: TypeAlias = Literal["closed", "not written", "differs"]
"""`closed`: the path responds with 503, since a protection cannot be expressed. `not written`: the manifest lacks it.
`differs`: it is served with a difference."""


@dataclass(frozen=True, slots=True, order=True)
class Note:
    """What a manifest does not express.

    Attributes:
        host: The host.
        path: The path, empty for the whole host.
        effect: The consequence.
        reason: What is missing, and what to do.
    """

    host: str
    path: str
    effect: Effect
    reason: str


@dataclass(frozen=True, slots=True)
class Share:
    """A backend and its weight."""

    claim: UpstreamClaim
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Step:
    """One route of a location.

    Attributes:
        when: Conditions in addition to host and path.
        priority: Its priority in the gateway.
        plugins: By name.
        shares: Backends; empty if the plugins respond.
        main: The backend of the location, also if `shares` has only its canary; None if the plugins respond.
        timeout: Seconds by phase; empty without a backend.
        limits: Plugins that all paths of the Ingress share.
    """

    when: tuple[Var, ...]
    priority: int
    plugins: Mapping[str, JsonObject]
    shares: tuple[Share, ...] = ()
    main: Share | None = None
    timeout: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, JsonObject] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """One location of a host.

    Attributes:
        hosts: The names that it is served under.
        uris: Its paths as in a route record.
        pattern: The condition on the path, or None.
        namespace: The namespace of its backend, or of its Ingress.
        ingress: The Ingress whose annotations apply, or None.
        path: The path as the Ingress has it, for display.
        kind: The type of the path.
        steps: In the order in which a gateway tries them.
        backend: The backend that its Ingress names, even if it never gets a request; None if it does not exist.
    """

    hosts: tuple[str, ...]
    uris: tuple[str, ...]
    pattern: Var | None
    namespace: str
    ingress: ObjectKey | None
    path: str
    kind: PathKind
    steps: tuple[Step, ...]
    backend: Share | None = None


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate of a host.

    Attributes:
        names: Server names.
        secret: The Secret; None: the self-signed certificate of the controller.
        client: The fields of an ssl record about certificates of clients; empty: none are requested.
        authority: The Secret with the CA of clients, or None.
    """

    names: tuple[str, ...]
    secret: ObjectKey | None
    client: JsonObject = field(default_factory=dict)
    authority: ObjectKey | None = None


@dataclass(frozen=True, slots=True)
class HostPlan:
    """A host as the provider serves it.

    Attributes:
        host: Its name; `_` for every other host.
        namespace: The namespace of its oldest Ingress.
        places: Its locations in the order in which a gateway tries them.
        certificates: Its certificates.
        secrets: Id of an ssl record with a client certificate for backends → its Secret.
    """

    host: str
    namespace: str
    places: tuple[Place, ...]
    certificates: tuple[Certificate, ...]
    secrets: Mapping[str, ObjectKey] = field(default_factory=dict)

    def any_backend(self, place: Place) -> Share | None:
        """Return a placeholder for a path without a backend, because the target requires one."""
        found = (each.backend for each in (place, *self.places) if each.backend)
        return next((each for each in found if each.claim.target.namespace == place.namespace), None)


@dataclass(frozen=True, slots=True)
class Written:
    """Manifests, and what they do not express."""

    objects: tuple[JsonObject, ...]
    notes: tuple[Note, ...]
