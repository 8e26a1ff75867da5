"""BackendTLSPolicy: TLS from the gateway to a Service."""

from __future__ import annotations

from pydantic import Field

from crds.gateway.common import LocalReference
from crds.v2.common import SpecPart


class PolicyTarget(SpecPart):
    """The Service, or one port of it, that a policy applies to."""

    group: str = ""
    kind: str = "Service"
    name: str
    section_name: str = ""


class AlternativeName(SpecPart):
    """A name that the certificate of a backend must have."""

    type: str
    hostname: str = ""
    uri: str = ""


class BackendValidation(SpecPart):
    """How the certificate of a backend is verified."""

    hostname: str = ""
    ca_certificate_refs: tuple[LocalReference, ...] = Field(default=(), alias="caCertificateRefs")
    well_known_ca_certificates: str = Field(default="", alias="wellKnownCACertificates")
    subject_alt_names: tuple[AlternativeName, ...] = ()


class BackendTlsPolicySpec(SpecPart):
    """BackendTLSPolicy."""

    target_refs: tuple[PolicyTarget, ...] = ()
    validation: BackendValidation = Field(default_factory=BackendValidation)
