"""ApisixTls: the certificate for some host names, and the CA of their clients."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field, StrictInt

from crds.v2.common import Column, SecretLocation, Spec, SpecPart

Sni = Annotated[str, Field(pattern=r"^\*?[0-9a-zA-Z\-.]+$")]


class ClientAuthentication(SpecPart):
    """Verification of client certificates."""

    ca_secret: SecretLocation = Field(description="Secret with the CA of the clients.")
    depth: Annotated[StrictInt, Field(ge=0)] = Field(
        default=0, description="Maximum chain length; 0: the gateway's default."
    )
    skip_mtls_uri_regex: tuple[str, ...] = Field(
        default=(), alias="skip_mtls_uri_regex", description="Paths (regular expressions) that require no certificate."
    )


class ApisixTlsSpec(Spec):
    """A certificate and its host names."""

    columns: ClassVar = (
        Column("Host", ".spec.hosts[*]"),
        Column("Hosts", ".spec.hosts", priority=1),
        Column("Secret Name", ".spec.secret.name"),
        Column("Secret Namespace", ".spec.secret.namespace"),
        Column("Client CA", ".spec.client.caSecret.name", priority=1),
    )

    hosts: tuple[Sni, ...] = Field(min_length=1, description="Host names; * at the start is a wildcard.")
    secret: SecretLocation = Field(description="Secret with tls.crt and tls.key, or cert and key.")
    client: ClientAuthentication | None = Field(default=None, description="Verification of client certificates.")
