"""ApisixRoute: which requests and connections go to which backends, through which plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt
from pydantic.config import JsonDict

from crds.v2.common import (
    Column,
    Granularity,
    Host,
    Name,
    Plugin,
    Port,
    Rule,
    RuledPart,
    ServicePort,
    Spec,
    SpecPart,
    Timeout,
    Weight,
)

Method = Literal["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PURGE", "PUT", "TRACE"]
Scope = Literal["Body", "Cookie", "Header", "Path", "Query", "Variable"]
Operator = Literal[
    "Equal",
    "NotEqual",
    "GreaterThan",
    "GreaterThanEqual",
    "LessThan",
    "LessThanEqual",
    "In",
    "NotIn",
    "RegexMatch",
    "RegexNotMatch",
    "RegexMatchCaseInsensitive",
    "RegexNotMatchCaseInsensitive",
]
AuthenticationType = Literal["basicAuth", "keyAuth", "jwtAuth", "wolfRBAC", "hmacAuth", "ldapAuth", ""]
SET_OPERATORS = frozenset({"In", "NotIn"})


class Subject(RuledPart):
    """The left side of an expression."""

    scope: Scope = Field(
        description="What to compare. Body: a field of a form or JSON body. Variable: any variable of the gateway."
    )
    name: str = Field(default="", description="Name of the header, cookie, parameter, field or variable.")
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "subject.name is missing: set the name of the header, cookie, query parameter, body field or variable",
            lambda s: s.scope == "Path" or s.name != "",
            "self.scope == 'Path' || (has(self.name) && size(self.name) > 0)",
            "name",
        ),
    )


class Expression(RuledPart):
    """A condition on a request."""

    subject: Subject = Field(description="The left side.")
    op: Operator = Field(description="The operator. In and NotIn require set, the other operators value.")
    value: str | None = Field(default=None, description="The right side; numbers in quotes.")
    values: tuple[str, ...] | None = Field(default=None, alias="set", description="The right side of In and NotIn.")
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "exactly one of value and set is required: set for In and NotIn, value for the other operators",
            lambda e: (e.value is None) != (e.values is None),
            "has(self.value) != has(self.set)",
        ),
        Rule(
            "wrong operand: In and NotIn require set, the other operators require value",
            lambda e: (e.op in SET_OPERATORS) == (e.values is not None),
            None,
            "op",
        ),
    )


class HttpMatch(SpecPart):
    """Which requests a rule matches; all parts must match."""

    paths: tuple[str, ...] = Field(min_length=1, description="Paths; exact, or a prefix with * at the end.")
    hosts: tuple[Host, ...] = Field(default=(), description="Hosts; * at the start is a wildcard. None: any host.")
    methods: tuple[Method, ...] = Field(default=(), description="Methods. None: any method.")
    remote_addrs: tuple[str, ...] = Field(default=(), description="Client addresses or networks (CIDR).")
    exprs: tuple[Expression, ...] = Field(
        default=(), json_schema_extra={"maxItems": 128}, description="Additional conditions; all must match."
    )
    filter_func: str = Field(
        default="", alias="filter_func", description="Lua function that returns whether a request matches."
    )


class StreamBackend(SpecPart):
    """A Service."""

    service_name: Name = Field(description="Name of the Service.")
    service_namespace: str = Field(
        default="",
        description="Namespace of the Service (default: the namespace of the route). Another namespace may have to"
        " permit the reference with a ReferenceGrant.",
    )
    service_port: ServicePort = Field(description="Number or name of a port of the Service.")
    resolve_granularity: Granularity = Field(
        default="", description="Addresses to send requests to: endpoint (default): the Pods; service: the cluster IP."
    )
    subset: str = Field(default="", description="A subset of the ApisixUpstream of the same name.")

    @property
    def by_service(self) -> bool:
        """Whether the cluster IP is the only node."""
        return self.resolve_granularity == "service"


class Backend(StreamBackend):
    """A Service, with its share of the requests."""

    weight: Weight = Field(default=100, description="Share among the backends and upstreams (default 100).")


class UpstreamReference(SpecPart):
    """An ApisixUpstream in the namespace of the route that has external nodes or service discovery."""

    name: Name = Field(description="Name of the ApisixUpstream.")
    weight: Weight = Field(default=100, description="Share among the backends and upstreams (default 100).")


class KeyAuth(SpecPart):
    """Options of keyAuth."""

    header: str = Field(default="", description="Header with the key.")


class JwtAuth(SpecPart):
    """Options of jwtAuth."""

    header: str = Field(default="", description="Header with the token.")
    query: str = Field(default="", description="Query parameter with the token.")
    cookie: str = Field(default="", description="Cookie with the token.")


class LdapAuth(SpecPart):
    """Options of ldapAuth."""

    base_dn: str = Field(default="", alias="base_dn", description="Base DN of the user search.")
    ldap_uri: str = Field(default="", alias="ldap_uri", description="Address of the LDAP server.")
    use_tls: StrictBool = Field(default=False, alias="use_tls", description="Whether to use TLS.")
    uid: str = Field(default="", description="Attribute with the user name.")


class Authentication(SpecPart):
    """Authentication of the clients, against ApisixConsumers."""

    enable: StrictBool = Field(description="Whether it is enabled.")
    type: AuthenticationType = Field(default="", description="The method; basicAuth if absent.")
    key_auth: KeyAuth | None = Field(default=None, description="Options of keyAuth.")
    jwt_auth: JwtAuth | None = Field(default=None, description="Options of jwtAuth.")
    ldap_auth: LdapAuth | None = Field(default=None, description="Options of ldapAuth.")


class HttpRule(RuledPart):
    """An HTTP rule. `backends` and `upstreams` are both empty only if plugins respond to the requests."""

    name: Name = Field(description="Name, unique among the HTTP rules of the object.")
    priority: StrictInt = Field(
        default=0, description="If several rules match, the one with the highest priority wins."
    )
    timeout: Timeout | None = Field(default=None, description="Timeouts of connections to the backends.")
    match: HttpMatch = Field(description="Which requests the rule matches.")
    websocket: StrictBool = Field(default=False, description="Whether WebSocket is enabled.")
    plugin_config_name: str = Field(default="", alias="plugin_config_name", description="ApisixPluginConfig to apply.")
    plugin_config_namespace: str = Field(
        default="",
        alias="plugin_config_namespace",
        description="Namespace of the ApisixPluginConfig (default: the namespace of the route).",
    )
    backends: tuple[Backend, ...] = Field(default=(), description="Services that receive the requests.")
    upstreams: tuple[UpstreamReference, ...] = Field(
        default=(), description="ApisixUpstreams that receive the requests."
    )
    plugins: tuple[Plugin, ...] = Field(default=(), description="Plugins of the rule.")
    authentication: Authentication | None = Field(default=None, description="Authentication of the clients.")
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "backends is missing: add a Service there or an ApisixUpstream in upstreams, or plugins that respond",
            lambda r: bool(r.backends or r.upstreams or r.plugins or r.plugin_config_name),
            "(has(self.backends) && size(self.backends) > 0) || (has(self.upstreams) && size(self.upstreams) > 0)"
            " || (has(self.plugins) && size(self.plugins) > 0)"
            " || (has(self.plugin_config_name) && size(self.plugin_config_name) > 0)",
            "backends",
        ),
    )


class StreamMatch(SpecPart):
    """Which connections a rule matches."""

    ingress_port: Port = Field(description="Port of the gateway, on which it must listen.")
    host: str = Field(default="", description="Server name of a TLS client (SNI).")


class StreamRule(SpecPart):
    """A TCP or UDP rule."""

    name: Name = Field(description="Name, unique among the stream rules of the object.")
    protocol: Literal["TCP", "UDP"] = Field(description="TCP or UDP.")
    match: StreamMatch = Field(description="Which connections the rule matches.")
    backend: StreamBackend = Field(description="The Service that receives the connections.")
    plugins: tuple[Plugin, ...] = Field(default=(), description="Plugins of the rule.")


def _names_unique(rules: tuple[Any, ...]) -> bool:
    return len({rule.name for rule in rules}) == len(rules)


# The limits bound the cost of the CEL rules; they are near what an object of the largest size could hold.
NAMED_LIST: JsonDict = {"maxItems": 8192, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}


class ApisixRouteSpec(Spec):
    """The rules of an ApisixRoute."""

    columns: ClassVar = (
        # A column shows one value: the first one, or a list of the first rule as JSON.
        Column("Host", ".spec.http[*].match.hosts[*]"),
        Column("Path", ".spec.http[*].match.paths[*]"),
        Column("Hosts", ".spec.http[*].match.hosts", priority=1),
        Column("URIs", ".spec.http[*].match.paths", priority=1),
        Column("Services", ".spec.http[*].backends[*].serviceName", priority=1),
        Column("Stream Port", ".spec.stream[].match.ingressPort", priority=1, type="integer"),
        Column("Stream Service", ".spec.stream[].backend.serviceName", priority=1),
    )

    http: tuple[HttpRule, ...] = Field(default=(), json_schema_extra=NAMED_LIST, description="HTTP rules.")
    stream: tuple[StreamRule, ...] = Field(default=(), json_schema_extra=NAMED_LIST, description="TCP and UDP rules.")
    rules: ClassVar[tuple[Rule, ...]] = (
        # The schema says the same by the type of the lists.
        Rule("two HTTP rules have the same name: rename one", lambda s: _names_unique(s.http), None, "http"),
        Rule("two stream rules have the same name: rename one", lambda s: _names_unique(s.stream), None, "stream"),
    )

    def plugin_lists(self) -> Iterator[tuple[tuple[Plugin, ...], str, bool]]:
        """Yield the plugins of each rule."""
        for index, rule in enumerate(self.http):
            yield rule.plugins, f"spec.http[{index}].plugins", False
        for index, stream in enumerate(self.stream):
            yield stream.plugins, f"spec.stream[{index}].plugins", True
