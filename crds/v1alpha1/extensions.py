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


class GatewayProxySpec(SpecPart):
    """GatewayProxy: parameters of a Gateway. The gateways themselves are in the settings of the controller."""

    status_address: tuple[str, ...] = ()
    plugins: tuple[ProxyPlugin, ...] = ()
    plugin_metadata: dict[str, Any] = Field(default_factory=dict)
