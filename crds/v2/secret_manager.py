"""ApisixSecretManager: a secret manager that gateways read. Its values are secrets: never log a model of it."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from crds.v2.common import Column, SecretLocation, Spec


class ApisixSecretManagerSpec(Spec):
    """The secret manager; `$secret://<type>/<name of the object>/<key>` refers to it."""

    columns: ClassVar = (Column("Type", ".spec.type"),)

    type: Literal["vault", "aws", "gcp"] = Field(description="Type of the secret manager.")
    config: dict[str, Any] = Field(
        default_factory=dict,
        description="Configuration, as APISIX defines it for the type.",
        repr=False,
        json_schema_extra={"x-kubernetes-map-type": "atomic"},
    )
    secret_ref: SecretLocation | None = Field(
        default=None, description="Secret merged over config; a dot in a key names a nested field."
    )
