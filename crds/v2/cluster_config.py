"""ApisixClusterConfig: settings of a gateway cluster as a whole; the object's name is the cluster's."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, StrictBool

from crds.v2.common import Duration, Spec, SpecPart


class Prometheus(SpecPart):
    """Metrics for Prometheus."""

    enable: StrictBool = Field(default=False, description="Whether it is enabled.")
    prefer_name: StrictBool = Field(
        default=False, alias="prefer_name", description="Whether metrics show names instead of ids."
    )


class SkyWalking(SpecPart):
    """Traces for SkyWalking."""

    enable: StrictBool = Field(default=False, description="Whether it is enabled.")
    sample_ratio: Annotated[float, Field(ge=0.00001, le=1)] | None = Field(
        default=None, description="Fraction of the requests to trace."
    )


class Monitoring(SpecPart):
    """Metrics and traces."""

    prometheus: Prometheus | None = Field(default=None, description="Metrics for Prometheus.")
    skywalking: SkyWalking | None = Field(default=None, description="Traces for SkyWalking.")


class Admin(SpecPart):
    """Admin API of the cluster."""

    base_url: Annotated[str, Field(pattern=r"https?://[^:]+:(\d+)")] = Field(
        alias="baseURL", description="Address with its port, such as http://apisix-admin:9180/apisix/admin."
    )
    admin_key: str = Field(default="", description="Key for the Admin API.", repr=False)
    client_timeout: Duration | None = Field(default=None, description="Timeout of a request, such as 5s.")


class ApisixClusterConfigSpec(Spec):
    """The settings of a cluster."""

    monitoring: Monitoring | None = Field(default=None, description="Metrics and traces.")
    admin: Admin | None = Field(default=None, description="Admin API of the cluster.")
    plugin_metadata: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Name of a plugin → its metadata.",
        repr=False,
        # Server-side apply would write null in place of a mapping from which it removes the last field.
        json_schema_extra={"x-kubernetes-map-type": "atomic"},
    )
