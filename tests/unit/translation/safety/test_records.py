"""What is published instead of a record with a fault."""

from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from translation.core.options import Options
from translation.nginx import functions
from translation.nginx.functions.attached import FIELD
from translation.nginx.functions.headers import ADDRESS
from translation.nginx.functions.texts import TEXTS
from translation.plugins.mirrors import with_raw_path
from translation.safety.expressions import MOST_PATTERNS
from translation.safety.records import safe_records

ALL = Options()
PRESET = Options(
    plugins="reviewed", code_plugins="refuse", secret_references="refuse", external_addresses="refuse-internal"
)
CLOSED: JsonObject = {"fault-injection": {"abort": {"http_status": 503}}}
LEAVES: JsonObject = {"proxy-rewrite": {"regex_uri": ["^/api(.*)", "$1"]}}
HEAVY = [{"host": "10.0.0.1", "port": 80, "weight": 10**8}, {"host": "10.0.0.2", "port": 80, "weight": 1}]


def record(kind: RecordKind, **fields: Any) -> Record:
    return Record(RecordKey(kind, "x"), "default_web_a", {"id": "x", **fields})


def route(**plugins: JsonObject) -> Record:
    return record("routes", uris=["/api*"], hosts=["a.test"], upstream_id="u", priority=3, plugins=plugins)


def judged(given: Record, options: Options = ALL) -> tuple[JsonObject, list[str]]:
    got, problems = safe_records([given], options)
    assert all(problem.severity == "degraded" for problem in problems)
    return {name: value for each in got for name, value in each.body.items()}, [problem.message for problem in problems]


def faults(given: Record, options: Options = ALL) -> list[str]:
    """Return the fields with faults."""
    return [message.partition(": ")[2].split()[0] for message in judged(given, options)[1]]


def test_records_without_faults_stay_the_same_objects() -> None:
    records = [route(cors={}), record("upstreams", nodes=[]), record("consumers", username="x", plugins={})]
    got, problems = safe_records(records, PRESET)
    assert (list(map(id, got)), problems) == (list(map(id, records)), ())


def test_a_route_with_a_fault_is_closed_for_the_same_requests() -> None:
    good, bad = route(cors={}), route(**LEAVES)
    got, problems = safe_records([good, bad], ALL)
    assert got[0] is good
    matching = {"id": "x", "uris": ["/api*"], "hosts": ["a.test"], "priority": 3}
    assert got[1].body == matching | {"plugins": CLOSED}
    message = (
        "route default_web_a: plugins.proxy-rewrite.regex_uri[1] may become a path without a slash at its beginning, so"
        " that a client could choose the host; begin it with /. Until then, its requests get 503"
    )
    assert problems == (Problem("UnsafeRecord", message, severity="degraded"),)


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (record("plugin_configs", plugins={"key-auth": {}, **LEAVES}), {"plugins": {"key-auth": {}, **CLOSED}}),
        (record("consumers", plugins={"key-auth": {}, **LEAVES}), {"plugins": {"key-auth": {}, **CLOSED}}),
        (record("global_rules", plugins={"cors": {}, **LEAVES}), {"plugins": {"cors": {}}}),
        (record("upstreams", type="roundrobin", nodes=HEAVY), {"type": "roundrobin", "nodes": []}),
    ],
    ids=lambda item: item.key.kind if isinstance(item, Record) else "",
)
def test_other_records_are_closed_in_their_own_way(given: Record, want: JsonObject) -> None:
    assert judged(given)[0] == {"id": "x", **want}


def test_a_wrong_address_is_left_out_of_the_closed_route() -> None:
    given = record("routes", uris=["/a"], remote_addrs=["10.0.0.1", ":/8"], upstream_id="u")
    got, messages = judged(given)
    assert got == {"id": "x", "uris": ["/a"], "plugins": CLOSED}
    assert "remote_addrs has a value that is neither" in messages[0]


def test_only_some_faults_are_reported() -> None:
    assert len(safe_records([route(**LEAVES)] * 40, ALL)[1]) == 10


@pytest.mark.parametrize(
    ("plugins", "where"),
    [
        ({"response-rewrite": {"headers": {"Content_Length": "2"}}}, "response-rewrite.headers.Content_Length"),
        ({"response-rewrite": {"headers": {"set": {"A": "b", "content-length": 2}}}}, "response-rewrite.headers.set."),
        ({"response-rewrite": {"headers": {"add": ["A: b", "Transfer-Encoding : x"]}}}, "headers.add[1]"),
        ({"fault-injection": {"abort": {"headers": {"Content-Length": "2"}}}}, "fault-injection.abort.headers."),
        ({"mocking": {"response_headers": {"Content-Length": "2"}}}, "mocking.response_headers."),
        ({"forward-auth": {"client_headers": ["Location", "Content-Length"]}}, "forward-auth.client_headers[1]"),
        ({"request-id": {"header_name": "Content-Length"}}, "request-id.header_name"),
        ({"response-rewrite": {"headers": {"remove": ["Content-Length"], "set": {"X-Content-Length": "1"}}}}, ""),
        ({"proxy-rewrite": {"headers": {"set": {"Content-Length": "2"}}}}, ""),
        ({"fault-injection": {"abort": {"http_status": 200}}}, ""),
    ],
    ids=str,
)
def test_no_user_sets_a_header_that_frames_a_response(plugins: JsonObject, where: str) -> None:
    found = faults(route(**plugins), PRESET)
    assert [where in each for each in found] == ([True] if where else [])
    assert faults(route(**plugins), ALL) == []


def test_the_number_of_searches_of_a_body_is_limited() -> None:
    items = [{"type": "body", "body_format": "json", "name": "$..a", "action": "remove"}]
    assert faults(route(**{"data-mask": {"request": items * 4}}), PRESET) == []
    assert faults(route(**{"data-mask": {"request": items * 5}}), PRESET) == ["plugins.data-mask.request"]


def test_the_number_of_patterns_of_an_object_or_host_is_limited() -> None:
    """Routes of ingress-nginx for regular expressions all match /*, so that a gateway tries each of them."""
    records = [
        replace(
            record("routes", uris=["/*"], vars=[["uri", "~*", f"^/{number}"]]), key=RecordKey("routes", str(number))
        )
        for number in range(MOST_PATTERNS + 1)
    ]
    got, problems = safe_records(records, PRESET)
    assert got[:-1] == tuple(records[:-1])
    assert got[-1].body["plugins"] == CLOSED
    assert ["more than 2,048 regular expressions" in problem.message for problem in problems] == [True]
    assert safe_records(records, ALL)[1] == ()


FAULTS: list[tuple[JsonObject, str]] = [
    (LEAVES, "plugins.proxy-rewrite.regex_uri[1]"),
    ({"proxy-rewrite": {"regex_uri": ["^/x", "/y", "^/z", ""]}}, "plugins.proxy-rewrite.regex_uri[3]"),
    ({"proxy-rewrite": {"regex_uri": ["^/x"]}}, "plugins.proxy-rewrite.regex_uri[1]"),
    ({"proxy-rewrite": {"uri": "$http_x"}}, "plugins.proxy-rewrite.uri"),
    ({"proxy-mirror": {"host": "http://a.test$http_x"}}, "plugins.proxy-mirror.host"),
    ({"proxy-mirror": {"host": "http://a.test", "path": ".evil.test"}}, "plugins.proxy-mirror.path"),
    (
        {"workflow": {"rules": [{"actions": [["proxy-rewrite", {"uri": "x"}]]}]}},
        "plugins.workflow.proxy-rewrite.uri",
    ),
    ({"multi-auth": {"auth_plugins": [{"proxy-rewrite": {"uri": "x"}}]}}, "plugins.multi-auth.proxy-rewrite.uri"),
    (
        {"traffic-split": {"rules": [{"weighted_upstreams": [{"weight": 1}, {"upstream": {"nodes": HEAVY}}]}]}},
        "plugins.traffic-split.rules[0].weighted_upstreams[1].upstream.nodes",
    ),
    (
        {"serverless-pre-function": {FIELD: {"mirror": {"uri": "http://169.254$http_x", "base": "http://169.254"}}}},
        f"plugins.serverless-pre-function.{FIELD}.mirror.uri",
    ),
    (
        {"serverless-pre-function": {FIELD: {"external": {"uri": "http://a.test/x", "base": ""}}}},
        f"plugins.serverless-pre-function.{FIELD}.external.uri",
    ),
    (
        {"serverless-pre-function": {FIELD: {"external": {"uri": "http://$http_x/", "base": "http://$http_x"}}}},
        f"plugins.serverless-pre-function.{FIELD}.external.uri",
    ),
]


@pytest.mark.parametrize(("plugins", "want"), FAULTS, ids=[want for _, want in FAULTS])
def test_faults_are_found_with_every_setting(plugins: JsonObject, want: str) -> None:
    assert faults(route(**plugins)) == [want]
    assert want in faults(route(**plugins), PRESET)


def nested(depth: int) -> JsonObject:
    schema: JsonObject = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": {"type": "array", "items": schema}}}
    return schema


@pytest.mark.parametrize(("depth", "want"), [(6, []), (7, ["plugins.mocking.response_schema"])])
def test_schemas_with_arrays_inside_each_other_are_limited(depth: int, want: list[str]) -> None:
    assert faults(route(mocking={"response_schema": nested(depth)})) == want


def own(**value: str) -> JsonObject:
    return {"serverless-pre-function": {"functions": [ADDRESS], FIELD: {"mirror": value}}}


REFERENCES: list[tuple[Record, list[str]]] = [
    (route(**{"proxy-rewrite": {"uri": "$env://X"}}), ["plugins.proxy-rewrite.uri"]),
    (route(**{"proxy-rewrite": {"regex_uri": ["^/a", "$SECRET://X"]}}), ["plugins.proxy-rewrite.regex_uri[1]"]),
    (route(**{"proxy-mirror": {"host": "$env://X", "path": "$env://Y"}}), ["plugins.proxy-mirror.path"]),
    (record("consumers", plugins={"key-auth": {"key": ["$env://X"]}}), ["plugins.key-auth.key[0]"]),
    (record("ssls", cert="$secret://x"), ["cert"]),
    (record("upstreams", nodes=[], labels={"a": "$env://X"}), []),
    (route(cors={"a": "x$env://X", "$env://A": "b"}), []),
]


@pytest.mark.parametrize(("given", "want"), REFERENCES, ids=lambda item: str(item)[:60])
def test_references_to_secrets_of_the_gateway_depend_on_the_setting(given: Record, want: list[str]) -> None:
    assert faults(given) == []
    assert faults(given, replace(ALL, secret_references="refuse")) == want


def test_a_certificate_with_a_reference_is_left_out() -> None:
    got, (problem,) = safe_records([record("ssls", cert="$env://X")], PRESET)
    assert (got, problem.code) == ((), "SecretReferenceRefused")
    assert problem.message.startswith("certificate default_web_a: cert refers to an environment variable")


def test_a_client_certificate_is_required_for_every_path_if_a_pattern_of_exceptions_has_a_fault() -> None:
    client = {"ca": "a", "depth": 1, "skip_mtls_uri_regex": ["^/ok", ".*a.*"]}

    body, messages = judged(record("ssls", cert="c", key="k", client=client), PRESET)

    assert body == {"id": "x", "cert": "c", "key": "k", "client": {"ca": "a", "depth": 1}}
    assert messages == [
        "certificate default_web_a: client.skip_mtls_uri_regex[1] must begin with ^, or have at most one part of any"
        " length, such as .*. Until then, every path requires a client certificate"
    ]


GOOD: list[JsonObject] = [
    {"proxy-rewrite": {"uri": "/x$http_x", "regex_uri": ["^/api(/.*)", "$1"], "headers": {"X": "$http_y"}}},
    {"proxy-rewrite": {"use_real_request_uri_unsafe": True}},
    {"proxy-mirror": {"host": "http://a.test", "path": "/x"}},
    {"mocking": {"response_schema": "x"}},
    {"traffic-split": {"rules": [{"weighted_upstreams": [{"upstream_id": "u", "weight": 10**9}]}]}},
    own(uri="http://a.test/x$http_x", base="http://a.test"),
    own(uri="http://a.test$real_request_uri", base="http://a.test"),
    own(uri="https://a.test:8443?x=$arg_x", base="https://a.test:8443"),
    own(uri="http://a.test", base="http://a.test"),
    {"forward-auth": {"uri": "https://auth.test/"}},
    {"limit-count": {"redis_host": "redis.test"}},
    {"cors": "text"},
]


@pytest.mark.parametrize("plugins", GOOD, ids=str)
def test_plugins_without_faults_are_published(plugins: JsonObject) -> None:
    assert faults(route(**plugins)) == faults(route(**plugins), PRESET) == []


def test_the_host_of_the_request_is_a_destination_only_if_the_route_limits_it() -> None:
    plugins = own(uri="http://$host/x", base="http://$host")
    assert faults(route(**plugins)) == []
    assert faults(record("routes", uris=["/*"], plugins=plugins)) == [
        f"plugins.serverless-pre-function.{FIELD}.mirror.uri"
    ]


def filters(*pairs: tuple[str, str], scope: str = "global") -> JsonObject:
    return {"response-rewrite": {"filters": [{"regex": a, "replace": b, "scope": scope} for a, b in pairs]}}


def query(lists: int) -> JsonObject:
    return {"degraphql": {"query": f"query($a:{'[' * lists}I{']' * lists}){{a}}"}}


@pytest.mark.parametrize(("lists", "want"), [(12, []), (13, ["plugins.degraphql.query"])])
def test_lists_inside_each_other_in_a_query_are_limited_with_every_setting(lists: int, want: list[str]) -> None:
    assert faults(route(**query(lists))) == faults(route(**query(lists)), PRESET) == want


@pytest.mark.parametrize(
    "plugins",
    [
        filters(("http://a.internal/", "https://www.example.com/"), ("foo", "barbaz")),
        filters(("[0-9]{4}", "****-****-****")),
        filters(("a", "b" * 5000), ("b", "c" * 5000), scope="once"),
        {"response-rewrite": {"filters": [{"regex": "a", "replace": "", "options": "ijo"}]}},
        filters(("<head>", "<head><script src='/a.js'></script>")),
    ],
    ids=lambda plugins: str(plugins)[:60],
)
def test_filters_that_replace_a_little_are_published(plugins: JsonObject) -> None:
    assert faults(route(**plugins), PRESET) == []


LEARNS_NOTHING = {"default_conn_delay": 1, "only_use_default_delay": True}


@pytest.mark.parametrize(
    "plugins",
    [
        {"limit-req": {"rate": 10, "burst": 300}},
        {"limit-req": {"rate": 0.000001, "burst": 1000, "nodelay": True}},
        {"limit-conn": {"conn": 100, "burst": 0, "default_conn_delay": 0.1}},
        {"limit-conn": {"conn": 10, "burst": 300, **LEARNS_NOTHING}},
        {"proxy-cache": {"cache_strategy": "memory"}},
    ],
    ids=str,
)
def test_limits_that_delay_requests_a_little_are_published(plugins: JsonObject) -> None:
    assert faults(route(**plugins), PRESET) == []


REJECTED: list[tuple[JsonObject, str]] = [
    (
        {"response-rewrite": {"filters": [{"regex": "a", "replace": "", "options": "jox"}]}},
        "plugins.response-rewrite.filters[0].options",
    ),
    (filters(("a", "a" * 100)), "plugins.response-rewrite.filters"),
    (filters(*[("[a]", "$0$0")] * 5), "plugins.response-rewrite.filters"),
    (filters(*[("[^q]", "$0$0$0")] * 5, scope="once"), "plugins.response-rewrite.filters"),
    ({"forward-auth": {"uri": "http://127.0.0.1:9180/"}}, "plugins.forward-auth.uri"),
    (
        {"loki-logger": {"endpoint_addrs": ["http://a.test", "http://localhost"]}},
        "plugins.loki-logger.endpoint_addrs[1]",
    ),
    ({"ldap-auth": {"ldap_uri": "169.254.169.254:389"}}, "plugins.ldap-auth.ldap_uri"),
    (
        {"ai-proxy-multi": {"instances": [{"override": {"endpoint": "http://[::1]/"}}]}},
        "plugins.ai-proxy-multi.instances[0].override.endpoint",
    ),
    ({"limit-req": {"rate": 0.000001, "burst": 1000}}, "plugins.limit-req.burst"),
    (
        {"workflow": {"rules": [{"actions": [["limit-req", {"rate": 1, "burst": 99}]]}]}},
        "plugins.workflow.limit-req.burst",
    ),
    ({"limit-conn": {"conn": 1, "burst": 1, "default_conn_delay": 0.1}}, "plugins.limit-conn.burst"),
    ({"limit-conn": {"conn": 1, "burst": "$http_a", **LEARNS_NOTHING}}, "plugins.limit-conn.burst"),
    ({"limit-conn": {"conn": "$http_a", "burst": 31, **LEARNS_NOTHING}}, "plugins.limit-conn.burst"),
    (
        {"limit-conn": {"rules": [{"conn": 10, "burst": 10, "key": "a"}, {"conn": 1, "burst": 900}], **LEARNS_NOTHING}},
        "plugins.limit-conn.rules[1].burst",
    ),
    ({"proxy-cache": {"cache_key": ["evil/", "$uri"]}}, "plugins.proxy-cache.cache_strategy"),
    ({"proxy-cache": {"cache_strategy": "disk"}}, "plugins.proxy-cache.cache_strategy"),
    ({"wolf-rbac": {"server": "http://127.0.0.1"}}, "plugins.wolf-rbac.server"),
    ({"openid-connect": {"discovery": "http://$host/"}}, "plugins.openid-connect.discovery"),
    ({"own-plugin": {"deep": [{"x": "http://127.1/"}]}}, "plugins.own-plugin.deep[0].x"),
    ({"proxy-rewrite": {"headers": {"set": {"X": "a${1}"}}}}, "plugins.proxy-rewrite.headers"),
    ({"proxy-rewrite": {"headers": {"add": {"X": ["a", "$1"]}}}}, "plugins.proxy-rewrite.headers"),
    (
        {"serverless-pre-function": {"functions": ["return function() end"]}},
        "plugins.serverless-pre-function.functions[0]",
    ),
    (own(uri="http://127.0.0.1/x", base="http://127.0.0.1"), f"plugins.serverless-pre-function.{FIELD}.mirror.base"),
]


@pytest.mark.parametrize(("plugins", "want"), REJECTED, ids=[want for _, want in REJECTED])
def test_other_faults_depend_on_the_settings(plugins: JsonObject, want: str) -> None:
    given = route(**plugins)
    assert (faults(given), faults(given, PRESET)) == ([], [want])


CODE: list[tuple[Record, str]] = [
    (route(**{"serverless-post-function": {}}), "plugins.serverless-post-function"),
    (route(**{"serverless-post-function": {"functions": "x"}}), "plugins.serverless-post-function"),
    (route(**{"ext-plugin-pre-req": {}}), "plugins.ext-plugin-pre-req"),
    (route(cors={"_meta": {"pre_function": "x"}}), "plugins.cors._meta.pre_function"),
    (route(**{"openid-connect": {"claim_schema": {}}}), "plugins.openid-connect.claim_schema"),
    (record("routes", uris=["/*"], filter_func="function() end"), "filter_func"),
    (record("global_rules", plugins={"inspect": {}}), "plugins.inspect"),
]


@pytest.mark.parametrize(("given", "want"), CODE, ids=[want for _, want in CODE])
def test_code_of_users_depends_on_the_setting(given: Record, want: str) -> None:
    assert faults(given) == []
    assert faults(given, replace(ALL, code_plugins="refuse")) == [want]


def test_the_gateway_may_send_requests_to_itself_on_behalf_of_the_controller() -> None:
    plugins = {"proxy-mirror": {"host": PRESET.loopback, "path": "/__mirror/1/0"}}
    assert faults(route(**plugins), PRESET) == []
    assert faults(route(**plugins), replace(PRESET, loopback="http://127.0.0.1:80")) == ["plugins.proxy-mirror.host"]


def test_the_function_for_the_path_of_copies_is_permitted() -> None:
    config = with_raw_path({"host": "http://copy.example"})
    assert faults(route(**{"proxy-mirror": config}), replace(ALL, code_plugins="refuse")) == []


def test_global_rules_may_have_any_destination() -> None:
    given = record("global_rules", plugins={"http-logger": {"uri": "http://127.0.0.1/"}})
    assert faults(given, PRESET) == []


FUNCTION = re.compile(r"^return function\(", re.MULTILINE)


def test_every_function_of_the_controller_is_known() -> None:
    found = set()
    for module in pkgutil.iter_modules(functions.__path__):
        names = vars(importlib.import_module(f"{functions.__name__}.{module.name}"))
        found |= {value for name, value in names.items() if name.isupper() and FUNCTION.search(str(value))}
    assert {text for text in found if isinstance(text, str)} == TEXTS
