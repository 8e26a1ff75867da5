"""Translations are total: for any spec the result is a value, and inputs stay unchanged."""

import copy
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from apisix_ingress.model.json import JsonObject
from crds import KINDS
from tests.unit.translation.objects import (
    OPTIONS,
    get,
    ingress,
    ingress_rule,
    make,
    route,
    rule,
    secret,
    service,
    upstream,
    world,
)
from translation.core.outcome import Published, records_of
from translation.core.translators import translate

NOW = datetime(2026, 1, 1, tzinfo=UTC)

SEEDS = (
    route(
        rule(
            match={
                "hosts": ["a.example.com"],
                "remoteAddrs": ["10.0.0.1"],
                "exprs": [{"subject": {"scope": "Header", "name": "X"}, "op": "In", "set": ["a"]}],
            },
            timeout={"connect": "5s"},
            authentication={"enable": True, "type": "keyAuth", "keyAuth": {"header": "X"}},
            plugins=[{"name": "p", "config": {"a": {"b": 1}}, "secretRef": "secret"}],
            upstreams=[{"name": "web", "weight": 1}],
        ),
        stream=[
            {
                "name": "s",
                "protocol": "TCP",
                "match": {"ingressPort": 9100},
                "backend": {"serviceName": "web", "servicePort": 80, "subset": "s"},
            }
        ],
    ),
    upstream(
        loadbalancer={"type": "chash", "hashOn": "header", "key": "X"},
        timeout={"read": "5s"},
        externalNodes=[{"name": "a.example.com", "type": "Domain"}],
        healthCheck={
            "active": {"timeout": 5, "healthy": {"interval": "1s"}},
            "passive": {"unhealthy": {"timeouts": 1}},
        },
        portLevelSettings=[{"port": 80, "scheme": "grpc", "tlsSecret": {"name": "secret", "namespace": "default"}}],
        subsets=[{"name": "s", "labels": {"a": "b"}}],
    ),
    make(
        "ApisixTls",
        "tls",
        spec={
            "hosts": ["a.example.com"],
            "secret": {"name": "secret", "namespace": "default"},
            "client": {"caSecret": {"name": "secret", "namespace": "default"}, "depth": 1},
        },
    ),
    make("ApisixConsumerGroup", "g", spec={"plugins": [{"name": "p", "enable": True, "secretRef": "secret"}]}),
    make(
        "ApisixSecretManager",
        "vault",
        namespace="",
        spec={"type": "vault", "config": {"token": "t"}, "secretRef": {"name": "secret", "namespace": "default"}},
    ),
    make("ApisixProto", "proto", spec={"content": "message Empty {}"}),
    make("ApisixConsumer", "c", spec={"group": "g", "authParameter": {"jwtAuth": {"value": {"key": "k", "exp": 60}}}}),
    make("ApisixGlobalRule", "rule", spec={"plugins": [{"name": "p", "enable": True, "secretRef": "secret"}]}),
    make(
        "ApisixClusterConfig",
        "default",
        namespace="",
        spec={
            "monitoring": {"skywalking": {"enable": True, "sampleRatio": 0.5}},
            "admin": {"baseURL": "http://a:1"},
            "pluginMetadata": {"p": {}},
        },
    ),
    make("ApisixPluginConfig", "pc", spec={"plugins": [{"name": "p", "secretRef": "secret"}]}),
    ingress(
        ingress_rule(),
        defaultBackend={"service": {"name": "web", "port": {"number": 80}}},
        tls=[{"hosts": ["a.example.com"], "secretName": "secret"}],
    ),
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 70_000) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    result = copy.copy(value)
    result[path[0]] = put(value[path[0]], path[1:], new)
    return result


@st.composite
def damaged(draw: st.DrawFn) -> JsonObject:
    """Draw one of the seeds with a few places of its spec replaced by anything."""
    raw = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 3))):
        spec = raw["spec"]
        raw = {**raw, "spec": put(spec, draw(st.sampled_from(list(places(spec)))), draw(JSON))}
    return raw


def test_each_kind_has_a_seed() -> None:
    assert {raw["kind"] for raw in SEEDS} == {*KINDS, "Ingress"}


@settings(max_examples=150, deadline=None)
@given(damaged())
def test_translation_of_any_spec_is_a_value(raw: JsonObject) -> None:
    objects = [raw, service(), secret(a__b="c"), *([upstream()] if raw["kind"] != "ApisixUpstream" else [])]
    found = world(*objects)
    item = get(found, raw["kind"], raw["metadata"]["name"], raw["metadata"]["namespace"])
    before = copy.deepcopy(dict(item.spec))
    got = translate(item, found.view(), OPTIONS, NOW)
    assert repr(item.spec) == repr(before)
    assert isinstance(got, Published) is not any(problem.severity == "error" for problem in got.problems)
    assert all(record.payload for record in records_of(got))
