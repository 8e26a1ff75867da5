"""Plugins under the review: attacks that were tried on a gateway, and everyday use."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from crds.v2.common import Plugin
from tests.unit.translation.objects import secret, world
from translation.core.context import MOST_REPORTED, Context
from translation.core.options import Options
from translation.plugins.configs import Plugins, translate_plugins
from translation.plugins.policy.judge import IS_NOT_COMPRESSED, MOST_REVIEWED, MOST_VALUES

TENANT = Options(
    plugins="reviewed", code_plugins="refuse", secret_references="refuse", external_addresses="refuse-internal"
)


def translate(
    name: str,
    config: JsonObject,
    *objects: JsonObject,
    kind: str = "ApisixRoute",
    options: Options = TENANT,
    secret_ref: str = "",
) -> tuple[Plugins, Context]:
    scope = Context(kind, "evil", world(*objects).view(), options)
    plugin = Plugin.model_validate({"name": name, "config": config, "secretRef": secret_ref})
    return translate_plugins(scope, [plugin], "spec.plugins"), scope


def reported(scope: Context) -> list[tuple[str, str]]:
    assert all(problem.severity == "error" for problem in scope.problems)
    assert scope.has_refused_content == bool(scope.problems)
    return [(problem.code, problem.path) for problem in scope.problems]


def split(**upstream: Any) -> JsonObject:
    return {"rules": [{"weighted_upstreams": [{"upstream": {"type": "roundrobin", **upstream}, "weight": 1}]}]}


AT = "spec.plugins[0]"
CONFIG = f"{AT}.config"
UPSTREAM = f"{CONFIG}.rules[0].weighted_upstreams[0].upstream"

ADDRESSES = [
    ("traffic-split", split(nodes={"127.0.0.1:19090": 1}), f"{UPSTREAM}.nodes"),
    ("traffic-split", split(nodes={"good.example": 1, "0x7f.1:80": 1}), f"{UPSTREAM}.nodes"),
    ("traffic-split", split(nodes=[{"host": "[::1]", "port": 1, "weight": 1}]), f"{UPSTREAM}.nodes[0].host"),
    ("proxy-mirror", {"host": "http://127.0.0.1:12379"}, f"{CONFIG}.host"),
    ("proxy-mirror", {"host": "http://169.254.169.254"}, f"{CONFIG}.host"),
    ("proxy-mirror", {"host": "https://2130706433"}, f"{CONFIG}.host"),
    ("proxy-mirror", {"host": "HTTP://LOCALHOST"}, f"{CONFIG}.host"),
    ("proxy-mirror", {"host": "http://0"}, f"{CONFIG}.host"),
    ("proxy-mirror", {"host": "http://[::ffff:127.0.0.1]"}, f"{CONFIG}.host"),
    ("ldap-auth", {"base_dn": "x", "ldap_uri": "localhost:389"}, f"{CONFIG}.ldap_uri"),
    (
        "multi-auth",
        {"auth_plugins": [{"key-auth": {}}, {"ldap-auth": {"ldap_uri": "127.1:389"}}]},
        f"{CONFIG}.auth_plugins[1].ldap-auth.ldap_uri",
    ),
]


@pytest.mark.parametrize(("name", "config", "path"), ADDRESSES, ids=lambda item: str(item)[:40])
def test_addresses_in_plugins_are_subject_to_the_address_policy(name: str, config: JsonObject, path: str) -> None:
    assert reported(translate(name, config)[1]) == [("AddressRefused", path)]
    assert reported(translate(name, config, options=Options(plugins="reviewed"))[1]) == []
    assert reported(translate(name, config, options=Options())[1]) == []


REFUSED = [
    (
        "traffic-split",
        {"rules": [{"weighted_upstreams": [{"upstream_id": "1", "weight": 1}]}]},
        "rules[0].weighted_upstreams[0].upstream_id",
    ),
    ("traffic-split", split(service_name="victim/web:p80", discovery_type="kubernetes"), None),
    (
        "traffic-split",
        split(nodes=[{"host": "a.example", "domain": "127.0.0.1"}]),
        "rules[0].weighted_upstreams[0].upstream.nodes[0].domain",
    ),
    (
        "traffic-split",
        split(nodes={"a.example": {"host": "127.0.0.1"}}),
        "rules[0].weighted_upstreams[0].upstream.nodes",
    ),
    ("traffic-split", split(tls={"client_cert_id": "1"}), "rules[0].weighted_upstreams[0].upstream.tls.client_cert_id"),
    ("traffic-split", split(nodes="127.0.0.1"), "rules[0].weighted_upstreams[0].upstream.nodes"),
    ("grpc-transcode", {"proto_id": "1", "service": "a", "method": "b"}, ""),
    ("openid-connect", {"discovery": "http://a.example/"}, ""),
    ("authz-casbin", {"model_path": "/etc/passwd"}, ""),
    ("kafka-logger", {"brokers": []}, ""),
    ("azure-functions", {"function_uri": "http://a.example/"}, ""),
    ("brand-new", {}, ""),
    ("Traffic-Split", {}, ""),
    ("google-cloud-logging", {"auth_config": {"private_key": "x"}}, ""),
    ("http-logger", {"uri": "http://a.example/", "batch_max_size": 1, "timeout": 86400}, ""),
    ("zipkin", {"endpoint": "http://a.example/"}, ""),
    ("udp-logger", {"host": "a.example", "port": 1}, ""),
    ("loggly", {"batch_max_size": 1}, "batch_max_size"),
    ("datadog", {"max_retry_count": 10}, "max_retry_count"),
    ("jwe-decrypt", {"header": "Authorization", "forward_header": "X-User"}, ""),
    ("authz-keycloak", {"token_endpoint": "http://a.example/"}, ""),
    ("wolf-rbac", {}, ""),
    ("api-breaker", {"break_response_code": 502}, ""),
    ("loggly", {"customer_token": "/a.example"}, "customer_token"),
    ("opa", {"host": "http://a.example", "policy": "p"}, ""),
    ("acl", {"allow_labels": {"team": ["a"]}}, ""),
    ("openwhisk", {"api_host": "http://a.example"}, ""),
    ("openfunction", {"function_uri": "http://a.example"}, ""),
    ("aws-lambda", {"function_uri": "http://a.example"}, ""),
    ("limit-count", {"count": 1, "policy": "redis", "redis_host": "a.example"}, "redis_host"),
    ("limit-req", {"rate": 1, "burst": 1, "policy": "redis", "redis_host": "a.example"}, "redis_host"),
    ("limit-conn", {"conn": 1, "burst": 1, "policy": "redis", "redis_host": "a.example"}, "redis_host"),
    ("ai-rate-limiting", {"limit": 1, "policy": "redis", "redis_host": "a.example"}, "redis_host"),
    ("traffic-split", split(tls={"client_key": "x"}), "rules[0].weighted_upstreams[0].upstream.tls.client_key"),
    ("limit-count", {"redis_cluster_nodes": ["a.example:1"]}, "redis_cluster_nodes"),
    ("limit-count", {"redis_sentinels": [{"host": "a.example"}]}, "redis_sentinels[0].host"),
    ("cors", {"brand_new": 1}, "brand_new"),
    ("cors", {"allow_origins": {"deep": 1}}, "allow_origins"),
    ("cors", {"_meta": {"brand_new": 1}}, "_meta.brand_new"),
    ("gzip", {"buffers": 1}, "buffers"),
    ("proxy-mirror", {"host": "http://a.example", "path": "@127.0.0.1/"}, "path"),
    ("ai-proxy", {"provider_conf": {"region": "a.example/#"}}, "provider_conf.region"),
    ("ai-proxy", {"auth": {"gcp": {"service_account_json": "{}"}}}, "auth.gcp"),
    ("ai-proxy", {"auth": {"gcp": {}}}, "auth.gcp"),
    ("ai-proxy-multi", {"instances": [{"auth": {"gcp": {"max_ttl": 1}}}]}, "instances[0].auth.gcp"),
    ("ai-proxy", {"override": {"endpoint": "http://a.example/v1"}}, "override.endpoint"),
    ("ai-proxy-multi", {"instances": [{"override": {"endpoint": "http://a.test"}}]}, "instances[0].override.endpoint"),
    ("proxy-mirror", {"host": "http://10.2", "_meta": {"priority": 1}}, "_meta.priority"),
    ("proxy-rewrite", {"regex_uri": ["^/a(/.*)", "$1"], "_meta": {"priority": 3000}}, "_meta.priority"),
    ("proxy-rewrite", {"regex_uri": ["^/(.*)$", ".evil.example:9181/$1"]}, "regex_uri"),
    ("proxy-rewrite", {"regex_uri": ["^/(.*)$", "$1"]}, "regex_uri"),
    ("proxy-rewrite", {"regex_uri": ["^/a(/.*)", "/$1", "^/b", ".evil.example"]}, "regex_uri"),
    ("proxy-rewrite", {"regex_uri": ["^/a"]}, "regex_uri"),
    ("proxy-cache", {"cache_key": "/mem"}, "cache_key"),
    ("limit-count", {"group": 7}, "group"),
    ("limit-count", {"group": ["a", "b"]}, "group"),
    ("workflow", {"rules": [{"actions": [["brand-new", {}]]}]}, "rules[0].actions[0][1]"),
    ("workflow", {"rules": [{"actions": [["limit-count", {"new": 1}]]}]}, "rules[0].actions[0][1].new"),
    ("workflow", {"rules": [{"actions": [["return", {"code": 403, "new": 1}]]}]}, "rules[0].actions[0][1].new"),
    ("workflow", {"rules": [{"actions": [["limit-count"]]}]}, "rules[0].actions"),
    ("multi-auth", {"auth_plugins": [{"key-auth": {}, "openid-connect": {}}]}, "auth_plugins[0].openid-connect"),
    ("multi-auth", {"auth_plugins": "key-auth"}, "auth_plugins"),
    ("mocking", {"response_schema": {"type": "object"}}, "response_schema"),
    ("mocking", {"response_example": "x", "delay": 31}, "delay"),
    ("fault-injection", {"delay": {"duration": 1e9}}, "delay.duration"),
    ("request-id", {"algorithm": "range_id", "range_id": {"length": 10**9}}, "range_id.length"),
    ("limit-conn", {"rules": [{"conn": 1, "burst": 10**6}]}, "rules[0].burst"),
    ("ai-proxy", {"keepalive_pool": 10**8}, "keepalive_pool"),
    (
        "traffic-split",
        split(keepalive_pool={"size": 10**8}),
        "rules[0].weighted_upstreams[0].upstream.keepalive_pool.size",
    ),
    ("loggly", {"max_req_body_bytes": 2**30}, "max_req_body_bytes"),
    ("feishu-auth", {"userinfo_url": "http://a.example/"}, "userinfo_url"),
    ("dingtalk-auth", {"access_token_url": "http://a.example/"}, "access_token_url"),
    ("ai-lakera-guard", {"lakera_endpoint": "http://a.example"}, "lakera_endpoint"),
    ("ai-request-rewrite", {"override": {"endpoint": "http://a.example"}}, "override.endpoint"),
    (
        "ai-proxy-multi",
        {"semantic_opts": {"embeddings": {"endpoint": "http://a.example"}}},
        "semantic_opts.embeddings.endpoint",
    ),
    ("feishu-auth", {"timeout": 86_400_000}, "timeout"),
    ("ai-proxy", {"keepalive_timeout": 10**9}, "keepalive_timeout"),
    (
        "traffic-split",
        split(checks={"active": {"type": "http", "timeout": 86400}}),
        "rules[0].weighted_upstreams[0].upstream.checks",
    ),
    ("ai-proxy-multi", {"instances": [{"checks": {"active": {"timeout": 86400}}}]}, "instances[0].checks"),
    ("data-mask", {"request": [{"type": "body", "name": "$..*..*"}]}, "request[0].name"),
    ("data-mask", {"request": [{"type": "body", "name": "$[0,0][0,0]"}]}, "request[0].name"),
    ("data-mask", {"request": [{"type": "body", "name": "$[?(@..a)]"}]}, "request[0].name"),
]


@pytest.mark.parametrize(("name", "config", "field"), REFUSED, ids=lambda item: str(item)[:40])
def test_what_the_table_does_not_allow_is_refused(name: str, config: JsonObject, field: str | None) -> None:
    _, scope = translate(name, config)
    paths = [path for code, path in reported(scope) if code == "PluginRefused"]
    if field is None:
        assert len(paths) == 2
    else:
        assert paths == [f"{CONFIG}.{field}" if field else AT]
    assert all("kubernetes.plugins: reviewed" in problem.message for problem in scope.problems)
    assert reported(translate(name, config, options=Options())[1]) == []


@pytest.mark.parametrize(
    "text",
    [
        "http://user@127.0.0.1/",
        "http://a.example@127.0.0.1/",
        "http://$arg_x/",
        "http://a.example$arg_x/",
        "http://a.example/$uri",
        "http://{{x}}/",
        "http://a.example\\@127.0.0.1/",
        "http://a.example#@127.0.0.1/",
        "http://%31%32%37.0.0.1/",
        "http://127。0。0。1/",
        "http:///etc/passwd",
        "http:127.0.0.1",
        "//127.0.0.1/",
        "unix:/var/run/x.sock",
        "file:///etc/passwd",
        "gopher://127.0.0.1/",
        "http://a.example:80:90/",
        "http://[::1/",
        "http://a b/",
        " http://a.example/",
        "http://a.example/\n",
        "",
        7,
        None,
    ],
)
def test_address_that_readers_may_read_differently_is_refused(text: object) -> None:
    assert ("PluginRefused", f"{CONFIG}.host") in reported(translate("proxy-mirror", {"host": text})[1])


@pytest.mark.parametrize("text", ["unix:/run/x.sock", "a.example:b", "$host", "a.example/", "a@b", "[::1", "1:2:3", ""])
def test_host_that_readers_may_read_differently_is_refused(text: str) -> None:
    assert reported(translate("ldap-auth", {"ldap_uri": text})[1]) == [("PluginRefused", f"{CONFIG}.ldap_uri")]


@pytest.mark.parametrize(
    "text", ["a.example", "a.example:99", "192.0.2.1", "[2001:db8::1]", "[2001:db8::1]:9", "2001:db8::1"]
)
def test_plain_hosts_are_allowed(text: str) -> None:
    assert reported(translate("ldap-auth", {"ldap_uri": text})[1]) == []


def test_everyday_plugins_are_published_unchanged() -> None:
    wanted: dict[str, JsonObject] = {
        "cors": {"allow_origins": "https://a.example", "_meta": {"disable": False, "filter": [["uri", "==", "/"]]}},
        "proxy-rewrite": {"uri": "/$1", "headers": {"set": {"X-A": "$remote_addr", "X-B": ["1", "2"]}, "X-C": "3"}},
        "traffic-split": split(nodes={"canary.example:80": 1}, labels={"a": "b"}) | {},
        "proxy-mirror": {"host": "http://copy.example", "path": "/copy", "sample_ratio": 0.5},
        "ai-proxy": {
            "provider_conf": {"region": "eu-central-1", "project_id": "our_project"},
            "options": {"model": "m"},
        },
        "loggly": {"customer_token": "a", "log_format": {"a": "$host", "b": {"c": 1}}},
        "workflow": {"rules": [{"case": [["uri", "==", "/"]], "actions": [["return", {"code": 403}]]}]},
        "multi-auth": {"auth_plugins": [{"key-auth": {}}, {"basic-auth": {"_meta": {}}}]},
        "response-rewrite": {"headers": {"add": ["a:b"]}, "vars": [["status", "==", 200]]},
    }
    for name, config in wanted.items():
        got, scope = translate(name, config)
        assert (got, reported(scope)) == ({name: config}, [])


@pytest.mark.parametrize(
    ("name", "config", "field", "want"),
    [
        ("response-rewrite", {"filters": [{"regex": "a", "replace": "b"}]}, "vars", [IS_NOT_COMPRESSED]),
        (
            "response-rewrite",
            {"filters": [{"regex": "a", "replace": "b"}], "vars": ["OR", ["status", "==", 200], ["status", "==", 404]]},
            "vars",
            [IS_NOT_COMPRESSED, ["OR", ["status", "==", 200], ["status", "==", 404]]],
        ),
        ("response-rewrite", {"body": "a"}, "vars", None),
    ],
    ids=lambda item: str(item)[:40],
)
def test_no_response_is_decompressed(name: str, config: JsonObject, field: str, want: object) -> None:
    """1 MB of gzip becomes 1 GB in the memory of a gateway."""
    assert translate(name, config)[0][name].get(field) == want


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("proxy-rewrite", {"headers": {"set": {f"X-{number}": "a" for number in range(MOST_VALUES)}}}),
        ("traffic-label", {"rules": [{"actions": [{"set_headers": {str(n): "a" for n in range(MOST_VALUES)}}]}]}),
    ],
)
def test_the_number_of_values_of_a_plugin_is_limited(name: str, config: JsonObject) -> None:
    """45,000 headers took 20 s of a worker."""
    assert reported(translate(name, config)[1]) == [("PluginRefused", AT)]
    addresses = {"whitelist": [f"10.0.{n // 250}.{n % 250}" for n in range(MOST_VALUES + 1)]}
    assert reported(translate("ip-restriction", addresses)[1]) == []


def test_shared_names_become_the_namespaces_own_and_the_input_stays() -> None:
    limit: list[Any] = ["limit-count", {"count": 1, "time_window": 1, "group": "all"}]
    inner = {"rules": [{"actions": [limit]}, {"actions": [["return", {"code": 403}], limit]}]}
    before = copy.deepcopy(inner)
    got, scope = translate("workflow", inner)
    own = ["limit-count", {**limit[1], "group": "evil/all"}]
    assert got["workflow"] == {"rules": [{"actions": [own]}, {"actions": [["return", {"code": 403}], own]}]}
    assert (inner, reported(scope)) == (before, [])
    assert translate("limit-count", {"count": 1, "group": "all"})[0]["limit-count"]["group"] == "evil/all"
    assert translate("limit-count", {"count": 1, "group": "all"}, options=Options())[0]["limit-count"]["group"] == "all"


def test_cache_keys_begin_with_the_namespace_also_if_none_is_given() -> None:
    key = ["cache.test", "/mem"]
    assert translate("proxy-cache", {"cache_key": key})[0]["proxy-cache"]["cache_key"] == ["evil/", *key]
    assert translate("proxy-cache", {})[0]["proxy-cache"]["cache_key"] == ["evil/", "$host", "$request_uri"]


def test_what_a_secret_adds_is_reviewed() -> None:
    hidden = secret(namespace="evil", host="http://127.0.0.1/", brand__new="1", _meta__pre_function="return 1")
    _, scope = translate("proxy-mirror", {}, hidden, secret_ref="secret")
    assert sorted(reported(scope)) == [
        ("AddressRefused", f"{CONFIG}.host"),
        ("CodeRefused", CONFIG),
        ("PluginRefused", f"{CONFIG}.brand"),
    ]


def test_a_consumer_may_have_credentials_only() -> None:
    """A gateway replaces the plugins of the route that admits a consumer by the consumer's plugins."""
    restriction = {"whitelist": ["evil_evil"]}
    assert reported(translate("consumer-restriction", restriction)[1]) == []
    _, scope = translate("consumer-restriction", restriction, kind="ApisixConsumer")
    assert reported(scope) == [("PluginRefused", AT)]
    assert "use it on a route" in scope.problems[0].message
    assert reported(translate("key-auth", {"key": "k"}, kind="ApisixConsumer")[1]) == []


def test_global_rules_are_not_reviewed() -> None:
    assert reported(translate("brand-new", {"uri": "http://127.0.0.1"}, kind="ApisixGlobalRule")[1]) == []


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("multi-auth", {"auth_plugins": [{"key-auth": {"_meta": {"pre_function": "return 1"}}}]}),
        ("workflow", {"rules": [{"actions": [["limit-count", {"_meta": {"pre_function": "return 1"}}]]}]}),
        ("workflow", {"rules": [{"actions": [["serverless-pre-function", {}]]}]}),
        ("multi-auth", {"auth_plugins": [{"multi-auth": {"auth_plugins": [{"inspect": {}}]}}]}),
        ("ai-rate-limiting", {"cost_expr": "(function() while true do end end)()"}),
        ("openid-connect", {"claim_schema": {"minimum": "os.execute()"}}),
    ],
    ids=lambda item: str(item)[:60],
)
def test_code_inside_of_plugins_is_refused_with_code_plugins_alone(name: str, config: JsonObject) -> None:
    _, scope = translate(name, config, options=Options(code_plugins="refuse"))
    assert [code for code, _ in reported(scope)] == ["CodeRefused"]
    assert reported(translate(name, config, options=Options())[1]) == []


def test_trusted_plugins_are_not_reviewed_but_code_still_is() -> None:
    trusting = replace(TENANT, trusted_plugins=frozenset({"our-own", "openid-connect", "inspect"}))
    for kind in ("ApisixRoute", "ApisixConsumer"):
        got, scope = translate("our-own", {"uri": "http://127.0.0.1/"}, kind=kind, options=trusting)
        assert (got, reported(scope)) == ({"our-own": {"uri": "http://127.0.0.1/"}}, [])
    inside = {"auth_plugins": [{"openid-connect": {"discovery": "http://a.example"}}, {"key-auth": {}}]}
    assert reported(translate("multi-auth", inside, options=trusting)[1]) == []
    assert reported(translate("inspect", {}, options=trusting)[1]) == [("CodeRefused", f"{AT}.name")]
    meta = {"_meta": {"pre_function": "return 1"}}
    assert reported(translate("our-own", meta, options=trusting)[1]) == [("CodeRefused", CONFIG)]


def test_code_is_governed_by_its_own_setting() -> None:
    allowed = Options(plugins="reviewed")
    assert reported(translate("serverless-pre-function", {"functions": ["return 1"]}, options=allowed)[1]) == []
    assert reported(translate("cors", {"_meta": {"pre_function": "return 1"}}, options=allowed)[1]) == []


@pytest.mark.parametrize("name", ["multi-auth", "workflow"])
@pytest.mark.parametrize(
    "inner", [None, 1, "x", [], {}, [1], [[1]], [{"rules": 1}], [{"actions": 7}], [{"actions": [1]}]]
)
def test_unexpected_shapes_are_harmless(name: str, inner: object) -> None:
    for field in ("auth_plugins", "rules"):
        translate(name, {field: inner})
    assert isinstance(translate("cors", {"_meta": inner})[0], dict)


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("traffic-split", split(nodes={f"h{number}.example:80": 1 for number in range(4000)})),
        ("ldap-auth", {"ldap_uri": [f"h{number}.example" for number in range(4000)]}),
    ],
    ids=["mapping of hosts", "list of hosts"],
)
def test_plugins_that_take_too_long_to_review_are_refused(name: str, config: JsonObject) -> None:
    _, scope = translate(name, config)
    assert reported(scope) == [("PluginRefused", AT)]
    assert "split the object" in scope.problems[0].message
    assert scope.reviewed <= MOST_REVIEWED + 22


def test_review_ends_after_enough_problems() -> None:
    _, scope = translate("traffic-split", split(nodes={f"127.0.{n // 256}.{n % 256}:80": 1 for n in range(5000)}))
    assert len(scope.problems) == MOST_REPORTED
    assert scope.reviewed < MOST_REPORTED * 30


def test_control_characters_of_a_field_are_not_repeated() -> None:
    _, scope = translate("cors", {"a\x1b[31m": 1})
    assert all("\x1b" not in f"{problem.path} {problem.message}" for problem in scope.problems)


@pytest.mark.parametrize(
    ("name", "is_fine"), [("evil_jack", True), ("victim_jack", False), ("evil", False), (5, False)]
)
@pytest.mark.parametrize("plugin", ["key-auth", "basic-auth", "jwt-auth", "hmac-auth"])
def test_anonymous_consumer_is_one_of_the_namespace(plugin: str, name: object, is_fine: bool) -> None:
    _, scope = translate(plugin, {"anonymous_consumer": name})
    assert reported(scope) == ([] if is_fine else [("PluginRefused", f"{CONFIG}.anonymous_consumer")])


def test_anonymous_consumer_is_one_of_the_namespace_inside_another_plugin_too() -> None:
    _, scope = translate("multi-auth", {"auth_plugins": [{"key-auth": {"anonymous_consumer": "victim_jack"}}]})
    assert [code for code, _ in reported(scope)] == ["PluginRefused"]
