"""The routes of the Gateway API: HTTPRoute, GRPCRoute, TLSRoute, TCPRoute, UDPRoute."""

from __future__ import annotations

from typing import Literal

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
from crds.v2.common import Duration, SpecPart


class RouteSpec(SpecPart):
    """What every route has."""

    parent_refs: tuple[ParentReference, ...] = ()
    hostnames: tuple[str, ...] = ()


class PathMatch(SpecPart):
    """A condition on the path."""

    type: PathType = "PathPrefix"
    value: str = "/"


class HttpRouteMatch(SpecPart):
    """Conditions, all of which must match."""

    path: PathMatch = Field(default_factory=PathMatch)
    headers: tuple[HeaderMatch, ...] = ()
    query_params: tuple[HeaderMatch, ...] = ()
    method: str = ""


class Retry(SpecPart):
    """How requests are retried (experimental)."""

    codes: tuple[int, ...] = ()
    attempts: int | None = None
    backoff: Duration | None = None


class CookieConfig(SpecPart):
    """The cookie of a session."""

    lifetime_type: Literal["Permanent", "Session"] = "Session"


class SessionPersistence(SpecPart):
    """How requests of one client are sent to the same endpoint (experimental)."""

    session_name: str = ""
    type: Literal["Cookie", "Header"] = "Cookie"
    absolute_timeout: Duration | None = None
    idle_timeout: Duration | None = None
    cookie_config: CookieConfig = Field(default_factory=CookieConfig)


class HttpRouteRule(SpecPart):
    """Requests that match are processed by the filters and sent to the backends."""

    name: str = ""
    matches: tuple[HttpRouteMatch, ...] = ()
    filters: tuple[Filter, ...] = ()
    backend_refs: tuple[BackendReference, ...] = ()
    timeouts: Timeouts = Field(default_factory=Timeouts)
    retry: Retry | None = None
    session_persistence: SessionPersistence | None = None


class HttpRouteSpec(RouteSpec):
    """HTTPRoute."""

    rules: tuple[HttpRouteRule, ...] = (HttpRouteRule(),)


class MethodMatch(SpecPart):
    """A condition on the gRPC service and method."""

    type: ValueType = "Exact"
    service: str = ""
    method: str = ""


class GrpcRouteMatch(SpecPart):
    """Conditions, all of which must match."""

    method: MethodMatch = Field(default_factory=MethodMatch)
    headers: tuple[HeaderMatch, ...] = ()


class GrpcRouteRule(SpecPart):
    """Calls that match are processed by the filters and sent to the backends."""

    name: str = ""
    matches: tuple[GrpcRouteMatch, ...] = ()
    filters: tuple[Filter, ...] = ()
    backend_refs: tuple[BackendReference, ...] = ()
    session_persistence: SessionPersistence | None = None


class GrpcRouteSpec(RouteSpec):
    """GRPCRoute."""

    rules: tuple[GrpcRouteRule, ...] = (GrpcRouteRule(),)


class StreamRouteRule(SpecPart):
    """Connections or datagrams are sent to the backends."""

    name: str = ""
    backend_refs: tuple[BackendReference, ...] = ()


class StreamRouteSpec(RouteSpec):
    """TLSRoute, TCPRoute and UDPRoute; only the first has hostnames."""

    rules: tuple[StreamRouteRule, ...] = ()
