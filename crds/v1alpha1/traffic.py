"""BackendTrafficPolicy: settings for the upstreams of Services."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictInt

from crds.v1alpha1.policies import PolicySpec
from crds.v2.common import Seconds
from crds.v2.upstream import (
    ActiveCheck,
    ActiveHealthy,
    ActiveUnhealthy,
    HealthCheck,
    LoadBalancer,
    OptionalHost,
    Scheme,
    UpstreamSettings,
    UpstreamTimeout,
)

Interval = Annotated[Seconds | None, AfterValidator(lambda value: max(value or 1.0, 1.0))]
"""Time between two probes; less than 1 s, which gateways reject, means 1 s, as in 2.x."""


class HealthyProbes(ActiveHealthy):
    """When a probed node becomes healthy."""

    interval: Interval = 1.0


class UnhealthyProbes(ActiveUnhealthy):
    """When a probed node becomes unhealthy."""

    interval: Interval = 1.0


class Probes(ActiveCheck):
    """Probes that the gateway sends."""

    healthy: HealthyProbes | None = None
    unhealthy: UnhealthyProbes | None = None


class Checks(HealthCheck):
    """Health checks of the nodes."""

    active: Probes


class BackendTrafficPolicySpec(PolicySpec):
    """BackendTrafficPolicy: settings for the upstreams of Services."""

    loadbalancer: LoadBalancer | None = None
    scheme: Scheme = ""
    retries: Annotated[StrictInt, Field(ge=0)] | None = None
    timeout: UpstreamTimeout | None = None
    health_check: Checks | None = None
    pass_host: Literal["pass", "node", "rewrite", ""] = ""
    upstream_host: OptionalHost = ""

    def settings(self) -> UpstreamSettings:
        """Return the settings in the form of an ApisixUpstream."""
        fields = self.model_fields_set & UpstreamSettings.model_fields.keys()
        return UpstreamSettings.model_construct(**{name: getattr(self, name) for name in fields})
