"""What several kinds of the Gateway API share: references to parents, backends, Secrets and listeners."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crds.v2.common import Duration, SpecPart

GATEWAY_GROUP = "gateway.networking.k8s.io"

PathType = Literal["Exact", "PathPrefix", "RegularExpression"]
ValueType = Literal["Exact", "RegularExpression"]


class ParentReference(SpecPart):
    """A Gateway or ListenerSet that a route asks to attach to."""

    group: str = GATEWAY_GROUP
    kind: str = "Gateway"
    namespace: str = ""
    name: str
    section_name: str = ""
    port: int | None = None


class ObjectReference(SpecPart):
    """An object, by default a Secret."""

    group: str = ""
    kind: str = "Secret"
    namespace: str = ""
    name: str


class LocalReference(SpecPart):
    """An object in the namespace of the referring object."""

    group: str = ""
    kind: str
    name: str


class HeaderValue(SpecPart):
    """A header and its value."""

    name: str
    value: str = ""


class HeaderChanges(SpecPart):
    """Headers that are set, added and removed."""

    set: tuple[HeaderValue, ...] = ()
    add: tuple[HeaderValue, ...] = ()
    remove: tuple[str, ...] = ()


class Fraction(SpecPart):
    """A share of the requests."""

    numerator: int = 0
    denominator: int = 100


class ServiceReference(SpecPart):
    """A backend without a weight, by default a Service."""

    group: str = ""
    kind: str = "Service"
    namespace: str = ""
    name: str
    port: int | None = None


class Mirror(SpecPart):
    """Requests that are copied to another backend."""

    backend_ref: ServiceReference
    percent: int | None = None
    fraction: Fraction | None = None


class PathChange(SpecPart):
    """How a path is replaced."""

    type: Literal["ReplaceFullPath", "ReplacePrefixMatch"]
    replace_full_path: str = ""
    replace_prefix_match: str = ""


class Redirect(SpecPart):
    """A response that redirects the client."""

    scheme: str = ""
    hostname: str = ""
    path: PathChange | None = None
    port: int | None = None
    status_code: int = 302


class Rewrite(SpecPart):
    """Changes to host and path of a request."""

    hostname: str = ""
    path: PathChange | None = None


class Cors(SpecPart):
    """Cross-origin requests that browsers may send."""

    allow_origins: tuple[str, ...] = ()
    allow_credentials: bool = False
    allow_methods: tuple[str, ...] = ()
    allow_headers: tuple[str, ...] = ()
    expose_headers: tuple[str, ...] = ()
    max_age: int = 5


class HttpAuth(SpecPart):
    """What a service that permits requests gets and returns."""

    path: str = ""
    allowed_headers: tuple[str, ...] = ()
    allowed_response_headers: tuple[str, ...] = ()


class ForwardBody(SpecPart):
    """How many bytes of a request body such a service gets."""

    max_size: int = 0


class ExternalAuth(SpecPart):
    """Requests that a service must permit (experimental)."""

    protocol: str
    backend_ref: ServiceReference
    http: HttpAuth = Field(default_factory=HttpAuth)
    forward_body: ForwardBody = Field(default_factory=ForwardBody)


class Filter(SpecPart):
    """A processing step of a request or response. The type names the one field that is set."""

    type: str
    request_header_modifier: HeaderChanges | None = None
    response_header_modifier: HeaderChanges | None = None
    request_mirror: Mirror | None = None
    request_redirect: Redirect | None = None
    url_rewrite: Rewrite | None = Field(default=None, alias="urlRewrite")
    cors: Cors | None = None
    external_auth: ExternalAuth | None = None
    extension_ref: LocalReference | None = None


class BackendReference(ServiceReference):
    """A backend with its weight and filters."""

    weight: int = 1
    filters: tuple[Filter, ...] = ()


class HeaderMatch(SpecPart):
    """A condition on a header or query parameter."""

    type: ValueType = "Exact"
    name: str
    value: str = ""


class Timeouts(SpecPart):
    """Limits of a rule; zero means unlimited."""

    request: Duration | None = None
    backend_request: Duration | None = None
