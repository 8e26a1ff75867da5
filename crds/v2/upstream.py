"""ApisixUpstream: settings for the upstreams of the Service of the same name, or nodes outside the cluster.

It configures the Service if it has neither `external_nodes` nor `discovery`; with one of them, `upstreams` of an
ApisixRoute refers to it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt

from crds.v2.common import (
    HOST_PATTERN,
    Column,
    Name,
    Port,
    Rule,
    RuledPart,
    Seconds,
    SecretLocation,
    Spec,
    SpecPart,
    Timeout,
    Weight,
)

Scheme = Literal["http", "https", "grpc", "grpcs", "tcp", "tls", "udp", ""]
OptionalHost = Annotated[str, Field(pattern=f"^$|{HOST_PATTERN}")]
CheckType = Literal["http", "https", "tcp"]
Count = Annotated[StrictInt, Field(ge=0, le=254)]
HttpCode = Annotated[StrictInt, Field(ge=200, le=599)]


class LoadBalancer(RuledPart):
    """How nodes are selected."""

    type: Literal["roundrobin", "chash", "ewma", "least_conn"] = Field(
        default="roundrobin", description="The algorithm (default roundrobin)."
    )
    hash_on: Literal["vars", "vars_combinations", "header", "cookie", "consumer"] = Field(
        default="vars", description="What chash hashes (default vars)."
    )
    key: str = Field(default="", description="Name of the variable, header or cookie that chash hashes.")
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "type chash needs key, the name of the variable, header or cookie to hash, unless hashOn is consumer",
            lambda b: b.type != "chash" or b.hash_on == "consumer" or b.key != "",
            "!has(self.type) || self.type != 'chash' || (has(self.hashOn) && self.hashOn == 'consumer')"
            " || (has(self.key) && size(self.key) > 0)",
        ),
    )


class UpstreamTimeout(Timeout, RuledPart):
    """Timeouts towards the nodes; a part that is absent or 0 is 60 s."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "a timeout is negative: use a positive duration such as 5s",
            lambda t: min(t.connect or 0, t.send or 0, t.read or 0) >= 0,
            None,
        ),
    )


HttpCodes = Annotated[tuple[HttpCode, ...], AfterValidator(lambda codes: tuple(dict.fromkeys(codes)))]
"""Without duplicates, which the gateway rejects; thousands of ports may iterate over the list."""


class Healthy(SpecPart):
    """When a node becomes healthy."""

    http_codes: HttpCodes = Field(default=(), description="Status codes that are a success.")
    successes: Count = Field(default=0, description="Successes that make a node healthy; 0: the gateway's default.")


class Unhealthy(SpecPart):
    """When a node becomes unhealthy; 0 means the gateway's default."""

    http_codes: HttpCodes = Field(default=(), description="Status codes that are a failure.")
    http_failures: Count = Field(default=0, description="HTTP failures that make a node unhealthy.")
    tcp_failures: Count = Field(default=0, description="TCP failures that make a node unhealthy.")
    timeouts: Count | None = Field(default=None, description="Timeouts that make a node unhealthy.")
    timeout: Count | None = Field(default=None, description="Alternative spelling of timeouts.")

    @property
    def timeout_count(self) -> int:
        """The number of timeouts under either spelling; `timeouts` wins; 0 if absent."""
        return (self.timeout if self.timeouts is None else self.timeouts) or 0


class ActiveHealthy(Healthy):
    """When a probed node becomes healthy. `interval` is required: 1 s or more."""

    interval: Seconds | None = Field(default=None, description="Time between two probes, 1s or more.")


class ActiveUnhealthy(Unhealthy):
    """When a probed node becomes unhealthy. `interval` is required: 1 s or more."""

    interval: Seconds | None = Field(default=None, description="Time between two probes, 1s or more.")


class ActiveCheck(SpecPart):
    """Probes that the gateway sends; 0 means the gateway's default."""

    type: CheckType = Field(default="http", description="How to probe (default http).")
    timeout: Seconds | None = Field(default=None, description="Timeout of a probe, such as 500ms or 0.5 (seconds).")
    concurrency: Annotated[StrictInt, Field(ge=0)] = Field(default=0, description="Number of concurrent probes.")
    host: str = Field(default="", description="Host header of the probe.")
    port: Annotated[StrictInt, Field(ge=0, le=65535)] = Field(default=0, description="Port to probe.")
    http_path: str = Field(default="", description="Path to probe.")
    strict_tls: StrictBool = Field(
        default=True, alias="strictTLS", description="Whether the certificate is verified (default true)."
    )
    request_headers: tuple[str, ...] = Field(default=(), description="Headers of the probe, each as name: value.")
    healthy: ActiveHealthy | None = Field(default=None, description="When a node becomes healthy.")
    unhealthy: ActiveUnhealthy | None = Field(default=None, description="When a node becomes unhealthy.")


class PassiveCheck(SpecPart):
    """Checks based on real requests."""

    type: CheckType = Field(default="http", description="Protocol to check (default http).")
    healthy: Healthy | None = Field(default=None, description="When a node becomes healthy.")
    unhealthy: Unhealthy | None = Field(default=None, description="When a node becomes unhealthy.")


class HealthCheck(SpecPart):
    """Health checks of the nodes."""

    active: ActiveCheck = Field(
        description="Probes. Required, because passive checks cannot mark a node as healthy again."
    )
    passive: PassiveCheck | None = Field(default=None, description="Checks based on real requests.")


class Discovery(SpecPart):
    """Nodes that the gateway discovers."""

    service_name: Name = Field(description="Name of the service in the registry.")
    type: Name = Field(description="Registry, such as dns, consul or nacos.")
    args: dict[str, str] | None = Field(default=None, description="Arguments of the registry.")


class Subset(SpecPart):
    """A subset of the pods of the Service."""

    name: Name = Field(description="Name that routes refer to.")
    labels: dict[str, str] = Field(description="Labels of its Pods.")


class ExternalNode(SpecPart):
    """A node outside the cluster, or a Service of type ExternalName."""

    name: Name = Field(description="Host name or address (Domain), or name of a Service (Service).")
    type: Literal["Domain", "Service"] = Field(description="Type of name: Domain or Service.")
    weight: Weight = Field(default=100, description="Share of the requests (default 100).")
    port: Port | None = Field(default=None, description="Port (default: 80 or 443, by the scheme).")


class UpstreamSettings(RuledPart):
    """Settings for a Service or one of its ports."""

    loadbalancer: LoadBalancer | None = Field(default=None, description="How nodes are selected.")
    scheme: Scheme = Field(default="", description="Protocol of the nodes (default http).")
    retries: Annotated[StrictInt, Field(ge=0)] | None = Field(
        default=None, description="Retries after the first attempt."
    )
    timeout: UpstreamTimeout | None = Field(default=None, description="Timeouts of connections to the nodes.")
    health_check: HealthCheck | None = Field(default=None, description="Health checks of the nodes.")
    pass_host: Literal["pass", "node", "rewrite", ""] = Field(
        default="", description="Host header for the nodes: the client's (pass), the node's (node) or upstreamHost."
    )
    upstream_host: OptionalHost = Field(default="", description="Host header when passHost is rewrite.")
    tls_secret: SecretLocation | None = Field(default=None, description="Client certificate for the nodes.")
    subsets: tuple[Subset, ...] = Field(default=(), description="Subsets of the Pods, by label.")
    discovery: Discovery | None = Field(default=None, description="Nodes that the gateway discovers.")


class PortLevelSettings(UpstreamSettings):
    """Settings of one port; absent fields are inherited."""

    port: Port = Field(description="Number of the Service port.")


class ApisixUpstreamSpec(UpstreamSettings, Spec):
    """The settings of an ApisixUpstream."""

    columns: ClassVar = (
        Column("Scheme", ".spec.scheme", priority=1),
        Column("Load Balancer", ".spec.loadbalancer.type", priority=1),
    )

    external_nodes: tuple[ExternalNode, ...] = Field(default=(), description="Nodes outside the cluster.")
    port_level_settings: tuple[PortLevelSettings, ...] = Field(
        default=(), json_schema_extra={"maxItems": 1024}, description="Settings of single ports."
    )
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "passHost rewrite requires upstreamHost: set the host that the nodes receive",
            lambda s: (
                s.pass_host != "rewrite" or s.upstream_host != "" or any(p.upstream_host for p in s.port_level_settings)
            ),
            "!has(self.passHost) || self.passHost != 'rewrite'"
            " || (has(self.upstreamHost) && size(self.upstreamHost) > 0)"
            " || (has(self.portLevelSettings) && self.portLevelSettings.exists(p, has(p.upstreamHost)))",
        ),
    )
