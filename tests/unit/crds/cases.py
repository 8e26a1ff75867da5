"""Specs, and whether the models and the API server accept them. Unit tests and an e2e test share this table."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.unit.crds.specs import SECRET, active_check, expression, http_rule, route, route_when, stream_rule


class Case(NamedTuple):
    """A spec; `path` and `words` are the field and text of its error, empty if it is valid."""

    title: str
    kind: str
    spec: dict[str, Any]
    path: str = ""
    words: str = ""


REFUSED = {
    "route-with-duplicate-rule-names-fails": "ApisixRoute",
    "stream-rules-with-the-same-name-fail": "ApisixRoute",
    "upstream-external-node-of-an-unknown-type-fails": "ApisixUpstream",
}
"""Recorded objects that the API server rejects, as it did for 2.2: case → kind."""

UNSERVABLE = REFUSED | {
    "route-expression-equal-without-value-fails": "ApisixRoute",
    "route-expression-in-without-set-fails": "ApisixRoute",
    "upstream-negative-timeout-fails": "ApisixUpstream",
}
"""Recorded objects that every release accepted and none could serve; parsing them is a problem."""


def recorded() -> list[Case]:
    """Return the specs for which the records of release 1.8 were recorded."""
    lines = (Path(__file__).parent / "recorded.jsonl").read_text(encoding="utf-8").splitlines()
    return [Case(row["case"], row["kind"], row["spec"]) for row in map(json.loads, lines)]


def auth(**methods: Any) -> dict[str, Any]:
    return {"authParameter": methods}


GOOD = [
    Case("no rules", "ApisixRoute", {}),
    Case("empty lists", "ApisixRoute", {"http": [], "stream": []}),
    Case("the class is empty", "ApisixRoute", {"ingressClassName": "", **route()}),
    Case(
        "plugins that answer, no backend",
        "ApisixRoute",
        route(backends=[], plugins=[{"name": "redirect", "config": {"http_to_https": True}}]),
    ),
    Case("a plugin config that answers", "ApisixRoute", route(backends=[], plugin_config_name="redirect")),
    Case("optional texts that are empty", "ApisixRoute", route(plugin_config_name="", plugin_config_namespace="")),
    Case(
        "a Service of another namespace",
        "ApisixRoute",
        route(backends=[{"serviceName": "web", "serviceNamespace": "shop", "servicePort": 80}]),
    ),
    Case(
        "2.2's spelling of endpoint",
        "ApisixRoute",
        route(backends=[{"serviceName": "web", "servicePort": "http", "resolveGranularity": "endpoints"}]),
    ),
    Case(
        "hosts that a gateway takes",
        "ApisixRoute",
        route(match={"paths": ["/"], "hosts": ["*", "*.example.com", "A.example.com", "a_b.example.com", "[::1]:80"]}),
    ),
    Case(
        "empty conditions",
        "ApisixRoute",
        route(match={"paths": ["/"], "hosts": [], "methods": [], "remoteAddrs": [], "exprs": [], "filter_func": ""}),
    ),
    Case("the method PURGE", "ApisixRoute", route(match={"paths": ["/"], "methods": ["PURGE"]})),
    Case("a body field", "ApisixRoute", route_when(expression(subject={"scope": "Body", "name": "a.b"}))),
    Case("the path without a name", "ApisixRoute", route_when(expression(subject={"scope": "Path"}))),
    Case("an empty value", "ApisixRoute", route_when(expression(value=""))),
    Case("authentication of 2.2", "ApisixRoute", route(authentication={"enable": False, "type": "", "keyAuth": {}})),
    Case("a plugin without enable", "ApisixRoute", route(plugins=[{"name": "cors"}])),
    Case(
        "nulls in a plugin's config",
        "ApisixRoute",
        route(plugins=[{"name": "x", "enable": True, "config": {"a": None, "b": [1, "2", {"c": 1.5}]}}]),
    ),
    Case("timeouts", "ApisixRoute", route(timeout={"connect": "1m30s", "send": "500ms", "read": "72h3m0.5s"})),
    Case("one name in both lists", "ApisixRoute", {"http": [http_rule(name="a")], "stream": [stream_rule(name="a")]}),
    Case("an empty upstream", "ApisixUpstream", {}),
    Case("chash on the default", "ApisixUpstream", {"loadbalancer": {"type": "chash", "key": "remote_addr"}}),
    Case("chash on the consumer", "ApisixUpstream", {"loadbalancer": {"type": "chash", "hashOn": "consumer"}}),
    Case("a stream scheme", "ApisixUpstream", {"scheme": "udp"}),
    Case(
        "upstreamHost of a port",
        "ApisixUpstream",
        {"passHost": "rewrite", "portLevelSettings": [{"port": 80, "upstreamHost": "a.example.com"}]},
    ),
    Case("a probe timeout in seconds", "ApisixUpstream", active_check(timeout=5)),
    Case("a probe timeout in parts of a second", "ApisixUpstream", active_check(timeout=0.5)),
    Case("a probe timeout in nanoseconds", "ApisixUpstream", active_check(timeout=5_000_000_000)),
    Case("a probe timeout with its unit", "ApisixUpstream", active_check(timeout="1500ms")),
    Case("a plain interval", "ApisixUpstream", active_check(healthy={"interval": 1}, unhealthy={"interval": 1.5})),
    Case("1.8's timeouts", "ApisixUpstream", active_check(unhealthy={"interval": "1s", "timeouts": 3})),
    Case("2.2's timeout", "ApisixUpstream", active_check(unhealthy={"interval": "1s", "timeout": 3})),
    Case(
        "counts that are 0",
        "ApisixUpstream",
        active_check(concurrency=0, port=0, httpPath="", requestHeaders=[], healthy={"successes": 0}),
    ),
    Case(
        "discovery", "ApisixUpstream", {"discovery": {"serviceName": "s", "type": "nacos", "args": {"group_name": "g"}}}
    ),
    Case(
        "a port with everything",
        "ApisixUpstream",
        {
            "portLevelSettings": [
                {
                    "port": 443,
                    "scheme": "https",
                    "passHost": "node",
                    "tlsSecret": SECRET,
                    "subsets": [{"name": "v1", "labels": {"version": "v1"}}],
                    "discovery": {"serviceName": "s", "type": "dns"},
                    **active_check(),
                }
            ]
        },
    ),
    Case(
        "client certificates",
        "ApisixTls",
        {
            "hosts": ["*.example.com"],
            "secret": SECRET,
            "client": {"caSecret": SECRET, "depth": 2, "skip_mtls_uri_regex": ["^/public"]},
        },
    ),
    Case(
        "a consumer with plugins only", "ApisixConsumer", {"plugins": [{"name": "limit-count", "config": {"count": 1}}]}
    ),
    Case(
        "two methods",
        "ApisixConsumer",
        auth(keyAuth={"value": {"key": "k"}}, ldapAuth={"value": {"user_dn": "cn=a"}, "secretRef": {"name": "s"}}),
    ),
    Case(
        "the empty secretRef that 2.2 demanded",
        "ApisixConsumer",
        auth(ldapAuth={"value": {"user_dn": "cn=a"}, "secretRef": {"name": ""}}),
    ),
    Case("key_id", "ApisixConsumer", auth(hmacAuth={"value": {"key_id": "k", "secret_key": "s"}})),
    Case(
        "an asymmetric algorithm",
        "ApisixConsumer",
        auth(jwtAuth={"value": {"key": "k", "algorithm": "RS256", "private_key": "pem", "exp": 60}}),
    ),
    Case(
        "every setting of a cluster",
        "ApisixClusterConfig",
        {
            "monitoring": {
                "prometheus": {"enable": True, "prefer_name": True},
                "skywalking": {"enable": True, "sampleRatio": 0.00001},
            },
            "admin": {"baseURL": "http://a:9180/apisix/admin", "adminKey": "k", "clientTimeout": "5s"},
            "pluginMetadata": {"http-logger": {"log_format": {"host": "$host"}}},
        },
    ),
    Case("a consumer of a group", "ApisixConsumer", {"group": "gold"}),
    Case("a consumer group", "ApisixConsumerGroup", {"plugins": []}),
    Case(
        "a secret manager",
        "ApisixSecretManager",
        {"type": "aws", "config": {"region": "eu-west-1"}, "secretRef": {"name": "aws", "namespace": "apisix"}},
    ),
    Case("a Protobuf definition", "ApisixProto", {"content": "message Empty {}"}),
    Case("an empty set of plugins", "ApisixPluginConfig", {"plugins": []}),
    Case("a global rule", "ApisixGlobalRule", {"plugins": [{"name": "cors", "enable": False, "secretRef": ""}]}),
]
"""Specs that the models and the API server accept."""

BAD = [
    Case(
        "no paths", "ApisixRoute", route(match={"hosts": ["a.example.com"]}), "spec.http[0].match.paths", "is missing"
    ),
    Case("empty paths", "ApisixRoute", route(match={"paths": []}), "spec.http[0].match.paths", "must not be empty"),
    Case("a mapping for a list", "ApisixRoute", {"http": {}}, "spec.http", "must be a list"),
    Case("a text for a mapping", "ApisixRoute", {"http": ["x"]}, "spec.http[0]", "must be a mapping"),
    Case("no name", "ApisixRoute", route(name=""), "spec.http[0].name", "must not be empty"),
    Case("no backend", "ApisixRoute", route(backends=[]), "spec.http[0].backends", "backends is missing"),
    Case(
        "a host with a space",
        "ApisixRoute",
        route(match={"paths": ["/"], "hosts": ["a b"]}),
        "spec.http[0].match.hosts[0]",
        "has a character or form that is not allowed",
    ),
    Case(
        "a method in lower case",
        "ApisixRoute",
        route(match={"paths": ["/"], "methods": ["get"]}),
        "spec.http[0].match.methods[0]",
        "must be one of 'CONNECT', 'DELETE', 'GET'",
    ),
    Case(
        "a port out of range",
        "ApisixRoute",
        route(backends=[{"serviceName": "web", "servicePort": 70000}]),
        "spec.http[0].backends[0].servicePort",
        "must be the number (1 to 65535) or the name of a port",
    ),
    Case(
        "a port without a name",
        "ApisixRoute",
        route(backends=[{"serviceName": "web", "servicePort": ""}]),
        "spec.http[0].backends[0].servicePort",
        "must be the number (1 to 65535) or the name of a port",
    ),
    Case(
        "a negative weight",
        "ApisixRoute",
        route(backends=[{"serviceName": "web", "servicePort": 80, "weight": -1}]),
        "spec.http[0].backends[0].weight",
        "must be 0 or more",
    ),
    Case(
        "a timeout without its unit",
        "ApisixRoute",
        route(timeout={"read": "5"}),
        "spec.http[0].timeout.read",
        "such as 500ms, 30s or 1m30s",
    ),
    Case("two HTTP rules of one name", "ApisixRoute", {"http": [http_rule(), http_rule()]}, "spec.http", "rename one"),
    Case(
        "two stream rules of one name",
        "ApisixRoute",
        {"stream": [stream_rule(), stream_rule()]},
        "spec.stream",
        "rename",
    ),
    Case(
        "the port 0",
        "ApisixRoute",
        {"stream": [stream_rule(match={"ingressPort": 0})]},
        "spec.stream[0].match.ingressPort",
        "must be 1 or more",
    ),
    Case(
        "a header without a name",
        "ApisixRoute",
        route_when(expression(subject={"scope": "Header"})),
        "spec.http[0].match.exprs[0].subject.name",
        "subject.name is missing",
    ),
    Case(
        "value and set",
        "ApisixRoute",
        route_when(expression(set=["1"])),
        "spec.http[0].match.exprs[0]",
        "exactly one of value and set",
    ),
    Case(
        "neither value nor set",
        "ApisixRoute",
        route_when({"subject": {"scope": "Path"}, "op": "Equal"}),
        "spec.http[0].match.exprs[0]",
        "exactly one of value and set",
    ),
    Case(
        "an unknown operator",
        "ApisixRoute",
        route_when(expression(op="Like")),
        "spec.http[0].match.exprs[0].op",
        "must be one of 'Equal'",
    ),
    Case(
        "chash without a key", "ApisixUpstream", {"loadbalancer": {"type": "chash"}}, "spec.loadbalancer", "needs key"
    ),
    Case("rewrite without a host", "ApisixUpstream", {"passHost": "rewrite"}, "spec", "requires upstreamHost"),
    Case("a negative number of retries", "ApisixUpstream", {"retries": -1}, "spec.retries", "must be 0 or more"),
    Case(
        "a passive check alone",
        "ApisixUpstream",
        {"healthCheck": {"passive": {}}},
        "spec.healthCheck.active",
        "is missing",
    ),
    Case(
        "a probe timeout in words",
        "ApisixUpstream",
        active_check(timeout="soon"),
        "spec.healthCheck.active.timeout",
        "or a number of seconds",
    ),
    Case(
        "a probe timeout in a list",
        "ApisixUpstream",
        active_check(timeout=[1]),
        "spec.healthCheck.active.timeout",
        "or a number of seconds",
    ),
    Case(
        "a node of another type",
        "ApisixUpstream",
        {"externalNodes": [{"name": "a.example.com", "type": "Host"}]},
        "spec.externalNodes[0].type",
        "must be one of 'Domain' or 'Service'",
    ),
    Case("no hosts", "ApisixTls", {"secret": SECRET}, "spec.hosts", "is missing: host names"),
    Case(
        "the name for the Secret",
        "ApisixTls",
        {"hosts": ["a.example.com"], "secret": "cert"},
        "spec.secret",
        "must be a mapping",
    ),
    Case("an unknown secret manager", "ApisixSecretManager", {"type": "file"}, "spec.type", "vault"),
    Case("an empty definition", "ApisixProto", {"content": ""}, "spec.content", "must not be empty"),
    Case("no source", "ApisixConsumer", auth(keyAuth={}), "spec.authParameter.keyAuth", "value or secretRef"),
    Case(
        "a source without a name",
        "ApisixConsumer",
        auth(basicAuth={"secretRef": {}}),
        "spec.authParameter.basicAuth",
        "value or secretRef",
    ),
    Case(
        "a negative number of seconds",
        "ApisixUpstream",
        active_check(timeout=-1),
        "spec.healthCheck.active.timeout",
        "or a number of seconds",
    ),
    Case(
        "RS256 without a key",
        "ApisixConsumer",
        auth(jwtAuth={"value": {"key": "k", "algorithm": "RS256"}}),
        "spec.authParameter.jwtAuth.value.algorithm",
        "needs public_key or private_key",
    ),
    Case(
        "hmac without an identifier",
        "ApisixConsumer",
        auth(hmacAuth={"value": {"secret_key": "s"}}),
        "spec.authParameter.hmacAuth.value",
        "key_id is missing",
    ),
    Case(
        "a URL without a port", "ApisixClusterConfig", {"admin": {"baseURL": "http://a"}}, "spec.admin.baseURL", "match"
    ),
    Case(
        "a share above 1",
        "ApisixClusterConfig",
        {"monitoring": {"skywalking": {"enable": True, "sampleRatio": 2}}},
        "spec.monitoring.skywalking.sampleRatio",
        "must be 1 or less",
    ),
    Case(
        "a text for a config",
        "ApisixPluginConfig",
        {"plugins": [{"name": "a", "config": "x"}]},
        "spec.plugins[0].config",
        "mapping",
    ),
    Case(
        "a plugin without a name",
        "ApisixGlobalRule",
        {"plugins": [{"enable": True}]},
        "spec.plugins[0].name",
        "is missing",
    ),
]
"""Specs that neither the models nor the API server accept."""

LATE = [
    Case(
        "In with a value",
        "ApisixRoute",
        route_when(expression(op="In")),
        "spec.http[0].match.exprs[0].op",
        "In and NotIn require set",
    ),
    Case("a negative timeout", "ApisixUpstream", {"timeout": {"read": "-5s"}}, "spec.timeout", "a timeout is negative"),
    Case(
        "a yes for a number of seconds",
        "ApisixUpstream",
        active_check(timeout=True),
        "spec.healthCheck.active.timeout",
        "or a number of seconds",
    ),
]
"""Specs that only the models refuse: the API server accepted them in earlier releases, or cannot check them."""
