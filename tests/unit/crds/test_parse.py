from typing import Any

import pytest

from crds import SpecError, parse_spec, unknown_fields
from tests.unit.crds.specs import (
    SECRET,
    active_check,
    expression,
    http_rule,
    route,
    route_when,
    stream_rule,
)


def problems(kind: str, spec: dict[str, Any] | None) -> tuple[tuple[str, str], ...]:
    with pytest.raises(SpecError) as caught:
        parse_spec(kind, spec)
    return caught.value.problems


def test_missing_field_is_named_with_what_belongs_there() -> None:
    got = problems("ApisixRoute", route(match={"hosts": ["a.example.com"]}))
    assert got == (("spec.http[0].match.paths", "is missing: paths; exact, or a prefix with * at the end"),)


def test_every_mistake_of_an_object_is_reported() -> None:
    rule = http_rule(priority="10", websocket="yes", backends=[{"serviceName": 7}])
    assert problems("ApisixRoute", {"http": [http_rule(name="ok"), rule]}) == (
        ("spec.http[1].priority", "must be a whole number without quotes"),
        ("spec.http[1].websocket", "must be true or false without quotes"),
        ("spec.http[1].backends[0].serviceName", "must be a text; put a number or a yes/no in quotes"),
        ("spec.http[1].backends[0].servicePort", "is missing: number or name of a port of the Service"),
    )


@pytest.mark.parametrize(
    ("kind", "spec", "path", "message"),
    [
        ("ApisixRoute", {"http": {}}, "spec.http", "must be a list (lines that start with -): HTTP rules"),
        ("ApisixRoute", {"http": ["x"]}, "spec.http[0]", "must be a mapping (lines of key: value): HTTP rules"),
        ("ApisixRoute", route(name=""), "spec.http[0].name", "must not be empty"),
        ("ApisixRoute", route(backends=[]), "spec.http[0].backends", "backends is missing"),
        ("ApisixRoute", route(match={"paths": []}), "spec.http[0].match.paths", "must not be empty: paths;"),
        (
            "ApisixRoute",
            route(match={"paths": ["/"], "hosts": ["a b"]}),
            "spec.http[0].match.hosts[0]",
            "has a character or form that is not allowed",
        ),
        ("ApisixRoute", route(match={"paths": ["/"], "methods": ["get"]}), "spec.http[0].match.methods[0]", "'GET'"),
        (
            "ApisixRoute",
            route(backends=[{"serviceName": "web", "servicePort": 70000}]),
            "spec.http[0].backends[0].servicePort",
            "must be the number (1 to 65535) or the name of a port",
        ),
        (
            "ApisixRoute",
            route(backends=[{"serviceName": "web", "servicePort": 80, "weight": -1}]),
            "spec.http[0].backends[0].weight",
            "must be 0 or more",
        ),
        ("ApisixRoute", route(timeout={"read": "5"}), "spec.http[0].timeout.read", "such as 500ms, 30s or 1m30s"),
        ("ApisixRoute", {"http": [http_rule(), http_rule()]}, "spec.http", "rename one"),
        ("ApisixRoute", {"stream": [stream_rule(), stream_rule()]}, "spec.stream", "rename one"),
        (
            "ApisixRoute",
            {"stream": [stream_rule(match={"ingressPort": 0})]},
            "spec.stream[0].match.ingressPort",
            "1 or",
        ),
        (
            "ApisixRoute",
            route_when(expression(subject={"scope": "Header"})),
            "spec.http[0].match.exprs[0].subject.name",
            "subject.name is missing",
        ),
        (
            "ApisixRoute",
            route_when(expression(set=["1"])),
            "spec.http[0].match.exprs[0]",
            "exactly one of value and set",
        ),
        ("ApisixRoute", route_when(expression(op="In")), "spec.http[0].match.exprs[0].op", "In and NotIn need set"),
        ("ApisixRoute", route_when(expression(op="Like")), "spec.http[0].match.exprs[0].op", "must be one of 'Equal'"),
        ("ApisixUpstream", {"loadbalancer": {"type": "chash"}}, "spec.loadbalancer", "type chash needs key"),
        ("ApisixUpstream", {"passHost": "rewrite"}, "spec", "passHost rewrite needs upstreamHost"),
        ("ApisixUpstream", {"timeout": {"read": "-5s"}}, "spec.timeout", "a timeout is negative"),
        ("ApisixUpstream", {"healthCheck": {"passive": {}}}, "spec.healthCheck.active", "is missing"),
        ("ApisixUpstream", active_check(timeout="soon"), "spec.healthCheck.active.timeout", "or a number of seconds"),
        ("ApisixUpstream", active_check(timeout=True), "spec.healthCheck.active.timeout", "or a number of seconds"),
        (
            "ApisixUpstream",
            {"externalNodes": [{"name": "a.example.com", "type": "Host"}]},
            "spec.externalNodes[0].type",
            "must be one of 'Domain' or 'Service'",
        ),
        ("ApisixTls", {"secret": SECRET}, "spec.hosts", "is missing: host names"),
        ("ApisixTls", {"hosts": ["a.example.com"], "secret": "cert"}, "spec.secret", "must be a mapping"),
        ("ApisixConsumer", {"authParameter": {"keyAuth": {}}}, "spec.authParameter.keyAuth", "value or secretRef"),
        (
            "ApisixConsumer",
            {"authParameter": {"jwtAuth": {"value": {"key": "k", "algorithm": "RS256"}}}},
            "spec.authParameter.jwtAuth.value.algorithm",
            "needs public_key or private_key",
        ),
        (
            "ApisixConsumer",
            {"authParameter": {"hmacAuth": {"value": {"secret_key": "s"}}}},
            "spec.authParameter.hmacAuth.value",
            "key_id is missing",
        ),
        ("ApisixClusterConfig", {"admin": {"baseURL": "http://apisix"}}, "spec.admin.baseURL", "must match"),
        (
            "ApisixClusterConfig",
            {"monitoring": {"skywalking": {"enable": True, "sampleRatio": 2}}},
            "spec.monitoring.skywalking.sampleRatio",
            "must be 1 or less",
        ),
        ("ApisixPluginConfig", {"plugins": [{"name": "cors", "config": "x"}]}, "spec.plugins[0].config", "a mapping"),
        ("ApisixGlobalRule", {"plugins": [{"enable": True}]}, "spec.plugins[0].name", "is missing: name of the plugin"),
    ],
)
def test_one_mistake_gives_its_path_and_the_remedy(kind: str, spec: dict[str, Any], path: str, message: str) -> None:
    got = problems(kind, spec)
    assert [got_path for got_path, _ in got] == [path]
    assert message in got[0][1]


def test_no_message_echoes_a_value() -> None:
    secret = "canary-7f3a"
    spec = {
        "authParameter": {
            "keyAuth": {"value": {"key": {secret: secret}}},
            "jwtAuth": {"value": {"key": "k", "exp": secret, "algorithm": secret}},
            "hmacAuth": {"secretRef": secret, "value": secret},
        },
        "plugins": [{"name": "x", "config": secret}],
    }
    with pytest.raises(SpecError) as caught:
        parse_spec("ApisixConsumer", spec)
    assert len(caught.value.problems) == 5
    assert secret not in str(caught.value)
    assert caught.value.__context__ is None or secret not in str(caught.value.__context__)


def test_missing_spec_is_an_empty_one() -> None:
    assert [path for path, _ in problems("ApisixTls", None)] == ["spec.hosts", "spec.secret"]


def test_null_counts_as_absent() -> None:
    spec = {
        "ingressClassName": None,
        "http": [http_rule(plugins=None, priority=None, timeout={"read": None})],
        "stream": None,
    }
    assert parse_spec("ApisixRoute", spec) == parse_spec("ApisixRoute", route(timeout={}))


def test_null_inside_the_config_of_a_plugin_stays() -> None:
    got = parse_spec("ApisixPluginConfig", {"plugins": [{"name": "p", "secretRef": None, "config": {"a": None}}]})
    assert got.plugins[0].config == {"a": None}


def test_null_does_not_hide_another_mistake() -> None:
    assert [path for path, _ in problems("ApisixTls", {"hosts": None, "secret": SECRET, "client": None})] == [
        "spec.hosts"
    ]


def test_parsing_does_not_change_the_object() -> None:
    spec = route(plugins=None)
    parse_spec("ApisixRoute", spec)
    assert spec == route(plugins=None)


def test_unknown_field_is_ignored_when_parsing() -> None:
    assert parse_spec("ApisixRoute", route(proirity=7)) == parse_spec("ApisixRoute", route())


def test_unknown_field_is_found_with_the_nearest_known_one() -> None:
    spec = {
        **route(
            proirity=7,
            match={"paths": ["/"], "Hosts": ["a"], "remote_addrs": []},
            plugins=[{"name": "x", "config": {"anything": 1}, "zzz": 1}],
        ),
        "tcp": [],
    }
    assert unknown_fields("ApisixRoute", spec) == (
        ("spec.http[0].match.Hosts", "hosts"),
        ("spec.http[0].match.remote_addrs", "remoteAddrs"),
        ("spec.http[0].proirity", "priority"),
        ("spec.http[0].plugins[0].zzz", None),
        ("spec.tcp", None),
    )


def test_both_spellings_of_timeouts_are_known() -> None:
    assert unknown_fields("ApisixUpstream", active_check(unhealthy={"timeouts": 1, "timeout": 2})) == ()


def test_labels_and_arguments_are_free() -> None:
    spec = {
        "subsets": [{"name": "v1", "labels": {"version": "v1"}}],
        "discovery": {"serviceName": "s", "type": "dns", "args": {"a": "b"}},
    }
    assert unknown_fields("ApisixUpstream", spec) == ()


@pytest.mark.parametrize("spec", [None, {"http": 7}, {"http": [None]}, {"http": [{"match": "x"}]}, {"http": None}])
def test_unknown_fields_of_a_broken_spec_are_none(spec: dict[str, Any] | None) -> None:
    assert unknown_fields("ApisixRoute", spec) == ()
