"""Every place that plugins come from is reviewed: routes, plugin configs, consumers, annotations, the webhook."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from tests.factories import make_service
from tests.unit.apisix_ingress.webhook.worlds import ask, make_checks, manifest
from tests.unit.translation.objects import get, ingress, make, protected_by, route, rule, secret, service, world
from translation.consumer import translate_consumer
from translation.core.options import Options
from translation.core.outcome import Outcome, records_of
from translation.ingress import translate_ingress
from translation.plugin_config import translate_plugin_config
from translation.route import translate_route

TENANT = Options(plugins="reviewed", external_addresses="refuse-internal")
LOOP = "http://127.0.0.1:9090/"
AUTH = {"name": "proxy-mirror", "config": {"host": LOOP}}
TRANSLATE = {
    "ApisixRoute": translate_route,
    "Ingress": translate_ingress,
    "ApisixConsumer": translate_consumer,
    "ApisixPluginConfig": translate_plugin_config,
}


def translate(raw: JsonObject, *others: JsonObject, options: Options = TENANT) -> Outcome:
    found = world(service(), raw, *others)
    kind = raw["kind"]
    return TRANSLATE[kind](get(found, kind, raw["metadata"]["name"]), found.view(), options)


def errors(found: Outcome) -> list[tuple[str, str]]:
    return [(problem.code, problem.path) for problem in found.problems if problem.severity == "error"]


def backed(annotations: dict[str, str]) -> JsonObject:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    given = {f"k8s.apisix.apache.org/{name}": value for name, value in annotations.items()}
    return ingress({"host": "a.example", "http": {"paths": paths}}, annotations=given)


def consumer(**spec: Any) -> JsonObject:
    return make("ApisixConsumer", "jack", spec=spec)


LDAP = {"enable": True, "type": "ldapAuth", "ldapAuth": {"base_dn": "b", "ldap_uri": "localhost:389", "uid": "u"}}
WOLF = {"server": LOOP, "appid": "a", "header_prefix": "X-"}
STREAM = {
    "name": "s",
    "protocol": "TCP",
    "match": {"ingressPort": 9100},
    "backend": {"serviceName": "web", "servicePort": 80},
    "plugins": [{"name": "brand-new", "enable": True}],
}
QUOTA = {"name": "limit-count", "enable": True, "config": {"count": 1, "time_window": 1, "group": "g"}}


@pytest.mark.parametrize(
    ("raw", "want"),
    [
        (route(rule(plugins=[AUTH])), ("AddressRefused", "spec.http[0].plugins[0].config.host")),
        (route(rule(authentication=LDAP)), ("AddressRefused", "spec.http[0].authentication")),
        (route(stream=[STREAM]), ("PluginRefused", "spec.stream[0].plugins[0]")),
        (make("ApisixPluginConfig", "pc", spec={"plugins": [AUTH]}), ("AddressRefused", "spec.plugins[0].config.host")),
        (
            consumer(authParameter={"wolfRBAC": {"value": WOLF}}),
            ("PluginRefused", "spec.authParameter.wolfRBAC.value"),
        ),
        (consumer(plugins=[QUOTA]), ("PluginRefused", "spec.plugins[0]")),
        (
            backed({"auth-uri": "http://auth.example/"}),
            ("PluginRefused", "metadata.annotations[k8s.apisix.apache.org/auth-uri]"),
        ),
    ],
    ids=lambda item: str(item)[:50],
)
def test_nothing_is_published_of_an_object_with_a_refused_plugin(raw: JsonObject, want: tuple[str, str]) -> None:
    got = translate(raw)
    assert (errors(got), records_of(got), protected_by(got)) == ([want], (), ())
    assert errors(translate(raw, options=Options())) == []


def test_secret_of_a_consumer_is_reviewed() -> None:
    raw = consumer(authParameter={"wolfRBAC": {"secretRef": {"name": "secret"}}})
    got = translate(raw, secret(server=LOOP, appid="a", header_prefix="X-"))
    assert errors(got) == [("PluginRefused", "spec.authParameter.wolfRBAC.secretRef.name")]


@pytest.mark.parametrize(
    "raw",
    [
        consumer(authParameter={"keyAuth": {"value": {"key": "k"}}}),
        consumer(authParameter={"basicAuth": {"value": {"username": "u", "password": "p"}}}),
        consumer(authParameter={"jwtAuth": {"value": {"key": "k", "secret": "s", "private_key": "x", "exp": 9}}}),
        consumer(authParameter={"hmacAuth": {"value": {"access_key": "a", "secret_key": "s", "keep_headers": True}}}),
        consumer(authParameter={"ldapAuth": {"value": {"user_dn": "cn=u"}}}),
        backed({"enable-cors": "true", "auth-type": "keyAuth"}),
        backed({"http-allow-methods": "GET", "enable-response-rewrite": "true", "response-rewrite-body": "x"}),
        backed({"enable-csrf": "true", "csrf-key": "k", "allowlist-source-range": "10.0.0.0/8"}),
        backed({"rewrite-target-regex": "a", "rewrite-target-regex-template": "/b", "http-to-https": "true"}),
        route(rule(authentication={"enable": True, "type": "jwtAuth", "jwtAuth": {"header": "X"}})),
        route(rule(backends=[{"serviceName": "web", "servicePort": 80}] * 2)),
    ],
    ids=lambda item: str(item)[-90:],
)
def test_generated_plugins_pass_the_review(raw: JsonObject) -> None:
    strict, free = (translate(raw, options=replace(TENANT, plugins=plugins)) for plugins in ("reviewed", "all"))
    assert records_of(strict)
    assert (records_of(strict), strict.problems) == (records_of(free), free.problems)


def test_route_falls_with_the_plugin_config_that_it_names() -> None:
    config = make("ApisixPluginConfig", "pc", spec={"plugins": [AUTH]})
    raw = route(rule("a", plugin_config_name="pc"), rule("b", plugin_config_name="pc"))
    assert errors(translate(raw, config)) == [
        ("AddressRefused", "spec.http[0].plugin_config_name"),
        ("AddressRefused", "spec.http[1].plugin_config_name"),
    ]


def test_shared_names_are_those_of_the_plugin_configs_namespace() -> None:
    got = translate(make("ApisixPluginConfig", "pc", spec={"plugins": [QUOTA]}))
    assert records_of(got)[0].body["plugins"]["limit-count"]["group"] == "default/g"


def test_the_webhook_agrees_with_the_translation() -> None:
    spec = {"http": [rule(plugins=[{**AUTH, "enable": True}])]}
    got = ask(make_checks(make_service(), options=TENANT, books={}), manifest(spec))
    said = [str(problem) for problem in translate(route(*spec["http"])).problems]
    assert list(got.denials) == said
    assert "kubernetes.external_addresses: refuse-internal" in said[0]
