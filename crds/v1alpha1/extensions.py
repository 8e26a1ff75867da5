"""Consumer and GatewayProxy. Values of credentials are secrets: never log a model of a Consumer."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, StrictBool

from crds.gateway.common import GATEWAY_GROUP
from crds.v2.common import Plugin, SpecPart


class ConsumerGateway(SpecPart):
    """The Gateway of a Consumer."""

    group: str = GATEWAY_GROUP
    kind: str = "Gateway"
    namespace: str = ""
    name: str


class CredentialSecret(SpecPart):
    """A Secret whose keys are the fields of a credential."""

    name: str
    namespace: str = ""


class ConsumerCredential(SpecPart):
    """One credential."""

    type: Literal["jwt-auth", "basic-auth", "key-auth", "hmac-auth"]
    name: str = ""
    config: dict[str, Any] | None = Field(default=None, repr=False)
    secret_ref: CredentialSecret | None = None


class ConsumerSpec(SpecPart):
    """Consumer: the credentials of a client of one Gateway."""

    gateway_ref: ConsumerGateway
    credentials: tuple[ConsumerCredential, ...] = ()
    plugins: tuple[Plugin, ...] = ()


class ProxyPlugin(SpecPart):
    """A plugin of every request."""

    name: str
    enabled: StrictBool = False
    config: dict[str, Any] | None = Field(default=None, repr=False)


class SecretKeyRef(SpecPart):
    """One key of a Secret in the namespace of the GatewayProxy."""

    name: str
    key: str


class AdminKeySource(SpecPart):
    """Where the admin key is."""

    secret_key_ref: SecretKeyRef | None = None


class ProxyAdminKey(SpecPart):
    """The admin key, or where it is."""

    value: str = Field(default="", repr=False)
    value_from: AdminKeySource | None = None


class ProxyAuth(SpecPart):
    """The credentials for the Admin API."""

    type: Literal["AdminKey"] = "AdminKey"
    admin_key: ProxyAdminKey = Field(default_factory=ProxyAdminKey)


class ProxyService(SpecPart):
    """The Service of the Admin API, in the namespace of the GatewayProxy."""

    name: str
    port: int = Field(default=0, ge=0, le=65535)


class ControlPlane(SpecPart):
    """The Admin API of a group of gateways."""

    mode: Literal["apisix", "apisix-standalone"] | None = None
    endpoints: tuple[str, ...] = ()
    service: ProxyService | None = None
    tls_verify: StrictBool = False
    auth: ProxyAuth = Field(default_factory=ProxyAuth)


class ProxyProvider(SpecPart):
    """What configures the gateways."""

    type: Literal["ControlPlane"] = "ControlPlane"
    control_plane: ControlPlane | None = None


class GatewayProxySpec(SpecPart):
    """GatewayProxy: the gateways of a class or a Gateway, and their parameters."""

    publish_service: str = ""
    status_address: tuple[str, ...] = ()
    provider: ProxyProvider | None = None
    plugins: tuple[ProxyPlugin, ...] = ()
    plugin_metadata: dict[str, Any] = Field(default_factory=dict)
