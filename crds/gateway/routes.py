"""The routes of the Gateway API: HTTPRoute, GRPCRoute, TLSRoute, TCPRoute, UDPRoute."""

from __future__ import annotations

from pydantic import Field

from crds.gateway.common import (
    BackendReference,
    Filter,
    HeaderMatch,
    ParentReference,
    PathType,
    Timeouts,
    ValueType,
)
from crds.v2.common import SpecPart


class RouteSpec(SpecPart):
    """What every route has."""

    parent_refs: tuple[ParentReference, ...] = ()
    hostnames: tuple[str, ...] = ()


class PathMatch(SpecPart):
    """A condition on the path."""

    type: PathType = "PathPrefix"
    value: str = "/"


class HttpRouteMatch(SpecPart):
    """Conditions that all have to hold."""

    path: PathMatch = Field(default_factory=PathMatch)
    headers: tuple[HeaderMatch, ...] = ()
    query_params: tuple[HeaderMatch, ...] = ()
    method: str = ""


class HttpRouteRule(SpecPart):
    """Requests that meet one of the matches go through the filters to the backends."""

    name: str = ""
    matches: tuple[HttpRouteMatch, ...] = ()
    filters: tuple[Filter, ...] = ()
    backend_refs: tuple[BackendReference, ...] = ()
    timeouts: Timeouts = Field(default_factory=Timeouts)
    retry: dict[str, object] | None = None
    session_persistence: dict[str, object] | None = None


class HttpRouteSpec(RouteSpec):
    """HTTPRoute."""

    rules: tuple[HttpRouteRule, ...] = (HttpRouteRule(),)


class MethodMatch(SpecPart):
    """A condition on the gRPC service and method."""

    type: ValueType = "Exact"
    service: str = ""
    method: str = ""


class GrpcRouteMatch(SpecPart):
    """Conditions that all have to hold."""

    method: MethodMatch = Field(default_factory=MethodMatch)
    headers: tuple[HeaderMatch, ...] = ()


class GrpcRouteRule(SpecPart):
    """Calls that meet one of the matches go through the filters to the backends."""

    name: str = ""
    matches: tuple[GrpcRouteMatch, ...] = ()
    filters: tuple[Filter, ...] = ()
    backend_refs: tuple[BackendReference, ...] = ()
    session_persistence: dict[str, object] | None = None


class GrpcRouteSpec(RouteSpec):
    """GRPCRoute."""

    rules: tuple[GrpcRouteRule, ...] = (GrpcRouteRule(),)


class StreamRouteRule(SpecPart):
    """Connections or datagrams go to the backends."""

    name: str = ""
    backend_refs: tuple[BackendReference, ...] = ()


class StreamRouteSpec(RouteSpec):
    """TLSRoute, TCPRoute and UDPRoute; only the first has hostnames."""

    rules: tuple[StreamRouteRule, ...] = ()
