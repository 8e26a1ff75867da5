"""GatewayClass, Gateway and ListenerSet: the entry points of requests."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from crds.gateway.common import GATEWAY_GROUP, ObjectReference
from crds.v2.common import SpecPart


class GatewayClassSpec(SpecPart):
    """GatewayClass."""

    controller_name: str = ""
    parameters_ref: ObjectReference | None = None


class Namespaces(SpecPart):
    """Which namespaces are allowed to attach."""

    from_: Literal["All", "Same", "Selector", "None"] = Field(default="Same", alias="from")
    selector: dict[str, Any] | None = None


class RouteKind(SpecPart):
    """A kind of route."""

    group: str = GATEWAY_GROUP
    kind: str


class AllowedRoutes(SpecPart):
    """Which routes a listener accepts."""

    namespaces: Namespaces = Field(default_factory=Namespaces)
    kinds: tuple[RouteKind, ...] = ()


class Validation(SpecPart):
    """How client certificates are verified."""

    ca_certificate_refs: tuple[ObjectReference, ...] = Field(default=(), alias="caCertificateRefs")
    mode: Literal["AllowValidOnly", "AllowInsecureFallback"] = "AllowValidOnly"


class ListenerTls(SpecPart):
    """How a listener handles TLS."""

    mode: Literal["Terminate", "Passthrough"] = "Terminate"
    certificate_refs: tuple[ObjectReference, ...] = ()
    options: dict[str, str] = Field(default_factory=dict)
    frontend_validation: Validation | None = None
    """Experimental until v1.4 of the Gateway API; since v1.5 it is `tls.frontend` of the Gateway."""


class ListenerSpec(SpecPart):
    """A port, protocol and hostname."""

    name: str
    hostname: str = ""
    port: int
    protocol: str
    tls: ListenerTls | None = None
    allowed_routes: AllowedRoutes = Field(default_factory=AllowedRoutes)


class FrontendTls(SpecPart):
    """TLS towards clients on one port, or on every port without settings of its own."""

    validation: Validation | None = None


class PortTls(SpecPart):
    """TLS towards clients on one port."""

    port: int
    tls: FrontendTls = Field(default_factory=FrontendTls)


class Frontend(SpecPart):
    """TLS towards clients."""

    default: FrontendTls = Field(default_factory=FrontendTls)
    per_port: tuple[PortTls, ...] = ()


class BackendTls(SpecPart):
    """TLS towards backends."""

    client_certificate_ref: ObjectReference | None = None


class GatewayTls(SpecPart):
    """TLS of a whole Gateway."""

    frontend: Frontend = Field(default_factory=Frontend)
    backend: BackendTls = Field(default_factory=BackendTls)


class Address(SpecPart):
    """An address that a Gateway requests; without a value, any of its type."""

    type: str = "IPAddress"
    value: str = ""


class Infrastructure(SpecPart):
    """Parameters of one Gateway."""

    parameters_ref: ObjectReference | None = None


class AllowedListeners(SpecPart):
    """Which namespaces may attach ListenerSets."""

    namespaces: Namespaces = Field(default_factory=lambda: Namespaces.model_validate({"from": "None"}))


class GatewaySpec(SpecPart):
    """Gateway."""

    gateway_class_name: str = ""
    listeners: tuple[ListenerSpec, ...] = ()
    addresses: tuple[Address, ...] = ()
    infrastructure: Infrastructure = Field(default_factory=Infrastructure)
    allowed_listeners: AllowedListeners = Field(default_factory=AllowedListeners)
    tls: GatewayTls = Field(default_factory=GatewayTls)


class ParentGateway(SpecPart):
    """The Gateway of a ListenerSet."""

    group: str = GATEWAY_GROUP
    kind: str = "Gateway"
    namespace: str = ""
    name: str


class ListenerSetSpec(SpecPart):
    """ListenerSet."""

    parent_ref: ParentGateway
    listeners: tuple[ListenerSpec, ...] = ()
