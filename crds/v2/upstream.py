"""ApisixUpstream: settings for the upstreams of the Service of the same name, or nodes outside the cluster.

It decorates the Service when it has neither `external_nodes` nor `discovery`; with one of them it is referred to
by `upstreams` of an ApisixRoute.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt

from crds.v2.common import (
    HOST_PATTERN,
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
    """How a node is chosen."""

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
"""Each once: the gateway refuses doubles, and thousands of ports may go through the list."""


class Healthy(SpecPart):
    """When a node counts as healthy."""

    http_codes: HttpCodes = Field(default=(), description="Status codes that are a success.")
    successes: Count = Field(default=0, description="Successes that make a node healthy; 0: the gateway's default.")


class Unhealthy(SpecPart):
    """When a node counts as unhealthy; 0 means the gateway's default."""

    http_codes: HttpCodes = Field(default=(), description="Status codes that are a failure.")
    http_failures: Count = Field(default=0, description="HTTP failures that make a node unhealthy.")
    tcp_failures: Count = Field(default=0, description="TCP failures that make a node unhealthy.")
    timeouts: Count | None = Field(default=None, description="Timeouts that make a node unhealthy.")
    timeout: Count | None = Field(default=None, description="Another spelling of timeouts.")

    @property
    def timeout_count(self) -> int:
        """The number of timeouts under either spelling; `timeouts` wins; 0 if absent."""
        return (self.timeout if self.timeouts is None else self.timeouts) or 0


class ActiveHealthy(Healthy):
    """When a probed node counts as healthy. `interval` is needed: 1 s or more."""

    interval: Seconds | None = Field(default=None, description="Time between two probes, 1s or more.")


class ActiveUnhealthy(Unhealthy):
    """When a probed node counts as unhealthy. `interval` is needed: 1 s or more."""

    interval: Seconds | None = Field(default=None, description="Time between two probes, 1s or more.")


class ActiveCheck(SpecPart):
    """Probes that the gateway sends; 0 means the gateway's default."""

    type: CheckType = Field(default="http", description="How to probe (default http).")
    timeout: Seconds | None = Field(default=None, description="Time for a probe, such as 500ms or 0.5 (seconds).")
    concurrency: Annotated[StrictInt, Field(ge=0)] = Field(default=0, description="Probes at the same time.")
    host: str = Field(default="", description="Host header of the probe.")
    port: Annotated[StrictInt, Field(ge=0, le=65535)] = Field(default=0, description="Port to probe.")
    http_path: str = Field(default="", description="Path to probe.")
    strict_tls: StrictBool = Field(
        default=True, alias="strictTLS", description="Whether the certificate is verified (default true)."
    )
    request_headers: tuple[str, ...] = Field(default=(), description="Headers of the probe, each as name: value.")
    healthy: ActiveHealthy | None = Field(default=None, description="When a node is healthy.")
    unhealthy: ActiveUnhealthy | None = Field(default=None, description="When a node is unhealthy.")


class PassiveCheck(SpecPart):
    """Judgement by the real requests."""

    type: CheckType = Field(default="http", description="What is judged (default http).")
    healthy: Healthy | None = Field(default=None, description="When a node is healthy.")
    unhealthy: Unhealthy | None = Field(default=None, description="When a node is unhealthy.")


class HealthCheck(SpecPart):
    """Health checks of the nodes."""

    active: ActiveCheck = Field(description="Probes; needed, since only they bring a node back.")
    passive: PassiveCheck | None = Field(default=None, description="Judgement by the real requests.")


class Discovery(SpecPart):
    """Nodes that the gateway finds by itself."""

    service_name: Name = Field(description="Name of the service in the registry.")
    type: Name = Field(description="Registry, such as dns, consul or nacos.")
    args: dict[str, str] | None = Field(default=None, description="Arguments of the registry.")


class Subset(SpecPart):
    """A part of the pods of the Service."""

    name: Name = Field(description="Name by which a route refers to it.")
    labels: dict[str, str] = Field(description="Labels that its pods have.")


class ExternalNode(SpecPart):
    """A node outside the cluster, or a Service of type ExternalName."""

    name: Name = Field(description="Host name or address (Domain), or name of a Service (Service).")
    type: Literal["Domain", "Service"] = Field(description="What name is: Domain or Service.")
    weight: Weight = Field(default=100, description="Share of the requests (default 100).")
    port: Port | None = Field(default=None, description="Port (default: 80 or 443, by the scheme).")


class UpstreamSettings(RuledPart):
    """Settings that hold for a Service or for one of its ports."""

    loadbalancer: LoadBalancer | None = Field(default=None, description="How a node is chosen.")
    scheme: Scheme = Field(default="", description="Protocol of the nodes (default http).")
    retries: Annotated[StrictInt, Field(ge=0)] | None = Field(default=None, description="Tries after the first one.")
    timeout: UpstreamTimeout | None = Field(default=None, description="Timeouts towards the nodes.")
    health_check: HealthCheck | None = Field(default=None, description="Health checks of the nodes.")
    pass_host: Literal["pass", "node", "rewrite", ""] = Field(
        default="", description="Host header for the nodes: the client's (pass), the node's (node) or upstreamHost."
    )
    upstream_host: OptionalHost = Field(default="", description="Host header when passHost is rewrite.")
    tls_secret: SecretLocation | None = Field(default=None, description="Client certificate for the nodes.")
    subsets: tuple[Subset, ...] = Field(default=(), description="Parts of the pods, by label.")
    discovery: Discovery | None = Field(default=None, description="Nodes that the gateway finds by itself.")


class PortLevelSettings(UpstreamSettings):
    """Settings of one port; what is absent is inherited."""

    port: Port = Field(description="Number of the Service port.")


class ApisixUpstreamSpec(UpstreamSettings, Spec):
    """The settings of an ApisixUpstream."""

    external_nodes: tuple[ExternalNode, ...] = Field(default=(), description="Nodes outside the cluster.")
    port_level_settings: tuple[PortLevelSettings, ...] = Field(
        default=(), json_schema_extra={"maxItems": 1024}, description="Settings of single ports."
    )
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "passHost rewrite needs upstreamHost: set the host that the nodes are to see",
            lambda s: (
                s.pass_host != "rewrite" or s.upstream_host != "" or any(p.upstream_host for p in s.port_level_settings)
            ),
            "!has(self.passHost) || self.passHost != 'rewrite'"
            " || (has(self.upstreamHost) && size(self.upstreamHost) > 0)"
            " || (has(self.portLevelSettings) && self.portLevelSettings.exists(p, has(p.upstreamHost)))",
        ),
    )
