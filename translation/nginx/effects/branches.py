"""Branches: the routes of one location, which are tried in order; each response without a backend is a branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from translation.core.builder import Builder
from translation.ingress_spec import ServiceBackend
from translation.nginx.options import NginxOptions
from translation.nginx.servers import Location, Server
from translation.nginx.sources import BackendKey, Source
from translation.nginx.tables.config_map import Config
from translation.nginx.tables.values import Values

NO_VALUES = Values({})

_CONTROL = TextPattern(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Branch:
    """One route of a location.

    Attributes:
        when: Conditions in addition to host and path.
        plugins: By name.
        upstream: The upstream; empty if the plugins respond.
        fields: Other fields of the route.
    """

    when: tuple[Sequence[object], ...] = ()
    plugins: Mapping[str, JsonObject] = field(default_factory=dict)
    upstream: str = ""
    fields: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Passwords:
    """The passwords for a location.

    Attributes:
        reference: The record with the password hashes, as functions read it.
        closed: Why there is none, as in ingress-nginx, after the annotation and a colon; else empty.
        shut: Why the passwords cannot be checked, in the same form.
    """

    reference: JsonObject = field(default_factory=dict)
    closed: str = ""
    shut: str = ""


@dataclass(frozen=True, slots=True)
class Services:
    """Settings of Services from Ingresses of any host, found once for all locations of a host, and shared data.

    Attributes:
        own: The canaries at the host itself.
        canaries: Backend → the Ingress with its canary, and the Service of the canary; None without one.
        backends: Ingress → its backends.
        values: Service → the annotations that apply to all of it; None if no Ingress names it.
        passwords: Format and Secret → its passwords.
        shared: Name of a record with data for functions → the reference to it.
    """

    own: tuple[CustomObject, ...] = ()
    canaries: dict[BackendKey, tuple[Source, ServiceBackend] | None] = field(default_factory=dict)
    backends: dict[ObjectKey, frozenset[BackendKey]] = field(default_factory=dict)
    values: dict[ObjectKey, Values | None] = field(default_factory=dict)
    passwords: dict[tuple[str, ObjectKey], Passwords] = field(default_factory=dict)
    shared: dict[str, JsonObject] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Site:
    """A location with its context, from which its branches are made."""

    builder: Builder
    nginx: NginxOptions
    config: Config
    server: Server
    location: Location
    secure: bool
    """Whether the gateway has a certificate for the host."""

    plain_aliases: tuple[str, ...] = ()
    """Other names of the host for which the gateway has no certificate, so that they are not redirected to https."""

    services: Services = field(default_factory=Services)
    """Settings of Services from other Ingresses."""

    @property
    def values(self) -> Values:
        """The annotations that apply."""
        return self.location.source.values if self.location.source else NO_VALUES

    @property
    def namespace(self) -> str:
        """The namespace of the Ingress."""
        return self.location.source.meta.namespace if self.location.source else ""

    @property
    def forwarded(self) -> bool:
        """Whether headers of a front proxy describe the client's request."""
        return self.config.flag("use-forwarded-headers")

    @property
    def plain_http(self) -> Sequence[object]:
        """The condition that a request was received over http; behind a front proxy, by that proxy."""
        return received_over("http") if self.forwarded else ("scheme", "==", "http")


def received_over(scheme: str) -> Sequence[object]:
    """Return the condition that the front proxy, or the gateway without one, received a request over a scheme."""
    forwarded = ("original_x_forwarded_proto", "==", scheme)
    return ("OR", forwarded, ("AND", ("original_x_forwarded_proto", "!", "~~", "."), ("scheme", "==", scheme)))


def is_on_one_line(value: object) -> bool:
    """Return whether no text below a value could begin a new line in the head of a request or response."""
    if isinstance(value, str):
        return not _CONTROL.found(value)
    if isinstance(value, Mapping):
        return all(is_on_one_line(each) for pair in value.items() for each in pair)
    return not isinstance(value, list | tuple) or all(map(is_on_one_line, value))


def answer(status: int, headers: Mapping[str, str] | None = None) -> dict[str, JsonObject]:
    """Return the plugin that responds without a backend."""
    abort: JsonObject = {"http_status": status}
    if headers:
        abort["headers"] = dict(headers)
    return {"fault-injection": {"abort": abort}}
