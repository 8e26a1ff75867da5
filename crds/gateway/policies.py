"""BackendTLSPolicy: how connections to Services are encrypted and verified."""

from __future__ import annotations

from pydantic import Field

from crds.gateway.common import LocalReference
from crds.v2.common import SpecPart


class PolicyTarget(SpecPart):
    """A Service of the policy's namespace, or one of its ports."""

    group: str = ""
    kind: str = "Service"
    name: str
    section_name: str = ""


class SubjectAltName(SpecPart):
    """A name that the certificate of a backend must have."""

    type: str
    hostname: str = ""
    uri: str = ""


class BackendValidation(SpecPart):
    """How the certificate of a backend is verified."""

    ca_certificate_refs: tuple[LocalReference, ...] = Field(default=(), alias="caCertificateRefs")
    well_known_ca_certificates: str = Field(default="", alias="wellKnownCACertificates")
    hostname: str
    subject_alt_names: tuple[SubjectAltName, ...] = ()


class BackendTlsPolicySpec(SpecPart):
    """BackendTLSPolicy."""

    target_refs: tuple[PolicyTarget, ...] = ()
    validation: BackendValidation
