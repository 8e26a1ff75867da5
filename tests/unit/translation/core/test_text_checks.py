"""Control characters and references to the gateway's secrets, in every kind and in every string field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from apisix_ingress.state.world import World
from tests.unit.translation.objects import (
    OPTIONS,
    get,
    ingress,
    ingress_rule,
    make,
    pem,
    protected_by,
    reported,
    route,
    rule,
    secret,
    service,
    upstream,
    world,
)
from tests.unit.translation.settling import bodies, problems, settle
from translation.annotations.reader import PREFIX
from translation.consumer import translate_consumer
from translation.core.context import Context
from translation.core.options import Options
from translation.core.outcome import Outcome, records_of
from translation.core.text_checks import check_spec
from translation.global_rule import translate_global_rule
from translation.ingress import translate_ingress
from translation.plugin_config import translate_plugin_config
from translation.route import translate_route
from translation.tls import translate_tls
from translation.upstream import translate_upstream

REFUSE = replace(OPTIONS, secret_references="refuse")
TRANSLATORS: Mapping[str, Callable[[CustomObject, View, Options], Outcome]] = {
    "ApisixRoute": translate_route,
    "Ingress": translate_ingress,
    "ApisixUpstream": translate_upstream,
    "ApisixPluginConfig": translate_plugin_config,
    "ApisixGlobalRule": translate_global_rule,
    "ApisixConsumer": translate_consumer,
    "ApisixTls": translate_tls,
}
TLS = {"hosts": ["a.example.com"], "secret": {"name": "secret", "namespace": "default"}}


def translate(raw: JsonObject, *others: JsonObject, options: Options = OPTIONS) -> Outcome:
    found = world(service(), raw, *others)
    kind, name = raw["kind"], raw["metadata"]["name"]
    return TRANSLATORS[kind](get(found, kind, name), found.view(), options)


def with_plugin(config: JsonObject, kind: str = "ApisixRoute") -> JsonObject:
    plugins = [{"name": "some", "enable": True, "config": config}]
    if kind == "ApisixRoute":
        return route(rule(plugins=plugins))
    return make(kind, spec={"plugins": plugins})


def annotated(name: str, value: str, **others: str) -> JsonObject:
    values = {PREFIX + key.replace("_", "-"): text for key, text in others.items()}
    return ingress(ingress_rule(), annotations=values | {PREFIX + name: value})


# A place for a text in each kind, and the field that a problem names.
PLACES: Mapping[str, tuple[Callable[[str], JsonObject], str]] = {
    "route name": (lambda text: route(rule(text)), "spec.http[0].name"),
    "route path": (lambda text: route(rule(match={"paths": ["/a", f"/{text}"]})), "spec.http[0].match.paths[1]"),
    "route expression": (
        lambda text: route(
            rule(match={"exprs": [{"subject": {"scope": "Query", "name": text}, "op": "Equal", "value": "x"}]})
        ),
        "spec.http[0].match.exprs[0].subject.name",
    ),
    "route expression value": (
        lambda text: route(
            rule(match={"exprs": [{"subject": {"scope": "Path"}, "op": "In", "set": ["x", text]}]}),
        ),
        "spec.http[0].match.exprs[0].set[1]",
    ),
    "route header of a plugin": (
        lambda text: with_plugin({"headers": {"set": {"X-A": text}}}),
        "spec.http[0].plugins[0].config.headers.set.X-A",
    ),
    "route uri of a plugin": (
        lambda text: with_plugin({"regex_uri": ["^/a", text]}),
        "spec.http[0].plugins[0].config.regex_uri[1]",
    ),
    "route label": (
        lambda text: make("ApisixRoute", "route", spec={"http": [rule()]}, labels={"team": text}),
        "metadata.labels[team]",
    ),
    "stream SNI": (
        lambda text: route(
            stream=[
                {
                    "name": "s",
                    "protocol": "TCP",
                    "match": {"ingressPort": 9100, "host": text},
                    "backend": {"serviceName": "web", "servicePort": 80},
                }
            ]
        ),
        "spec.stream[0].match.host",
    ),
    "ingress path": (lambda text: ingress(ingress_rule(f"/{text}")), "spec.rules[0].http.paths[0].path"),
    "ingress annotation": (
        lambda text: annotated("rewrite-target", f"/a{text}b"),
        f"metadata.annotations[{PREFIX}rewrite-target]",
    ),
    "ingress header": (
        lambda text: annotated("response-rewrite-set-header", f"X-A:a{text}b", enable_response_rewrite="true"),
        f"metadata.annotations[{PREFIX}response-rewrite-set-header]",
    ),
    "upstream": (
        lambda text: upstream(loadbalancer={"type": "chash", "hashOn": "header", "key": text}),
        "spec.loadbalancer.key",
    ),
    "plugin config": (
        lambda text: with_plugin({"header": text}, "ApisixPluginConfig"),
        "spec.plugins[0].config.header",
    ),
    "global rule": (lambda text: with_plugin({"host": text}, "ApisixGlobalRule"), "spec.plugins[0].config.host"),
    "tls": (
        lambda text: make("ApisixTls", spec={**TLS, "client": {"caSecret": {"name": "ca", "namespace": text}}}),
        "spec.client.caSecret.namespace",
    ),
}
HIDDEN = ["\x00", "\n", "\r\n", "\t", "\x1b[31m", "\x7f", "\x85", "\u2028", "\u2029", "\u202e", "\u2066", "\u200f"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", HIDDEN)
def test_invisible_characters_are_refused_everywhere(place: str, text: str) -> None:
    make_object, field = PLACES[place]
    got = translate(make_object(f"x{text}y"), secret(), secret("ca"))
    assert f"error ControlCharacter {field}" in reported(got)
    assert records_of(got) == ()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", ["$env://HOME", "$ENV://HOME", "$Env://A/b", "$secret://vault/1/a", "$SECRET://x"])
def test_references_to_secrets_are_refused_everywhere_by_the_setting(place: str, text: str) -> None:
    make_object, field = PLACES[place]
    got = translate(make_object(text), secret(), secret("ca"), options=REFUSE)
    assert f"error SecretReferenceRefused {field}" in reported(got)
    assert (records_of(got), protected_by(got)) == ((), ())


@pytest.mark.parametrize("place", PLACES)
def test_references_to_secrets_are_let_through_by_default(place: str) -> None:
    make_object, _ = PLACES[place]
    got = translate(make_object("$env://HOME"), secret(), secret("ca"))
    assert [line for line in reported(got) if "SecretReferenceRefused" in line] == []


def test_texts_of_plugins_may_have_several_lines_but_no_other_control_characters() -> None:
    text = "-- a\n\tb\r\n\u202b"
    got = translate(with_plugin({"body": text, "deep": [{"functions": [text]}]}))
    assert reported(got) == []
    assert records_of(got)[0].body["plugins"]["some"] == {"body": text, "deep": [{"functions": [text]}]}
    refused = translate(with_plugin({"body": "a\x00b", "deep": [{"functions": ["\x1b"]}]}))
    assert reported(refused) == [
        "error ControlCharacter spec.http[0].plugins[0].config.body",
        "error ControlCharacter spec.http[0].plugins[0].config.deep[0].functions[0]",
    ]


def test_function_of_a_match_and_credentials_may_have_several_lines() -> None:
    assert reported(translate(route(rule(match={"filter_func": "function(vars)\n return true\nend"})))) == []
    value = {"key": "k", "public_key": "-----BEGIN\n-----END\n", "algorithm": "RS256"}
    consumer = make("ApisixConsumer", spec={"authParameter": {"jwtAuth": {"value": value}}})
    assert reported(translate(consumer)) == []


@pytest.mark.parametrize("config", [{"a\x00": 1}, {"headers": {"X\r\nY": "z"}}, {"deep": {"$env://A": 1}}])
def test_keys_are_texts_too_and_their_path_shows_what_they_hold(config: JsonObject) -> None:
    (line,) = reported(translate(with_plugin(config), options=REFUSE))
    assert line.isprintable()
    assert line.startswith("error ")


def test_lists_and_ends_of_annotations_may_be_written_on_several_lines() -> None:
    got = translate(annotated("allowlist-source-range", "10.0.0.1,\n  10.0.0.2\n"))
    assert reported(got) == []
    assert records_of(got)[0].body["plugins"]["ip-restriction"] == {"whitelist": ["10.0.0.1", "10.0.0.2"]}
    body = "<p>\n</p>"
    got = translate(annotated("response-rewrite-body", body, enable_response_rewrite="true"))
    assert records_of(got)[0].body["plugins"]["response-rewrite"] == {"body": body}


def test_annotations_of_other_controllers_are_ignored() -> None:
    got = translate(ingress(ingress_rule(), annotations={"other/note": "a\x00\n$env://HOME"}), options=REFUSE)
    assert reported(got) == []


@pytest.mark.parametrize("raw", [with_plugin({}, "ApisixPluginConfig"), route(rule(plugins=[{"name": "some"}]))])
@pytest.mark.parametrize(
    ("value", "want"), [("$env://HOME", "SecretReferenceRefused"), ("a\x00b", "ControlCharacter"), ("a\nb", "")]
)
def test_values_of_a_secret_count_as_texts_of_the_object(raw: JsonObject, value: str, want: str) -> None:
    spec: dict[str, Any] = raw["spec"]
    rules = spec.get("http", [spec])
    changed = [{**item, "plugins": [{**item["plugins"][0], "secretRef": "secret"}]} for item in rules]
    raw = {**raw, "spec": {"http": changed} if "http" in spec else changed[0]}
    got = translate(raw, secret(key=value), options=REFUSE)
    assert [problem.code for problem in got.problems] == [want] * bool(want)
    assert not any(value in str(problem) for problem in got.problems)


def test_credentials_from_a_secret_count_as_texts_of_the_object() -> None:
    consumer = make("ApisixConsumer", spec={"authParameter": {"keyAuth": {"secretRef": {"name": "secret"}}}})
    got = translate(consumer, secret(key="$ENV://KEY"), options=REFUSE)
    assert reported(got) == ["error SecretReferenceRefused spec.authParameter.keyAuth.secretRef.name"]
    assert protected_by(got) == ()


def test_settings_of_a_service_fail_the_route_that_uses_them() -> None:
    bad = upstream(loadbalancer={"type": "chash", "hashOn": "vars_combinations", "key": "$env://HOME"})
    got = translate(route(rule()), bad, options=REFUSE)
    assert reported(got) == ["error SecretReferenceRefused spec.http[0].backends[0].serviceName"]
    assert protected_by(got) == ()
    external = upstream(
        "ext",
        externalNodes=[{"type": "Domain", "name": "a.com"}],
        loadbalancer={"type": "chash", "hashOn": "vars_combinations", "key": "x\ny"},
    )
    item = {key: value for key, value in rule(upstreams=[{"name": "ext"}]).items() if key != "backends"}
    assert reported(translate(route(item), external)) == ["error ControlCharacter spec.http[0].upstreams[0].name"]


def test_route_falls_with_the_plugin_config_that_refers_to_a_secret() -> None:
    raw = route(rule(plugin_config_name="web"))
    got = translate(raw, with_plugin({"key": "$secret://a/b/c"}, "ApisixPluginConfig"), options=REFUSE)
    assert reported(got) == ["error SecretReferenceRefused spec.http[0].plugin_config_name"]
    assert protected_by(got) == ()
    assert reported(translate(raw, with_plugin({"key": 5}, "ApisixPluginConfig"), options=REFUSE)) == []


def test_only_the_first_of_very_many_mistakes_are_reported() -> None:
    scope = Context("ApisixRoute", "default", World(()).view(), OPTIONS)
    check_spec(scope, {"list": ["\x00"] * 5000})
    assert [problem.path for problem in scope.problems] == [f"spec.list[{index}]" for index in range(10)]


def test_very_deep_texts_are_found() -> None:
    deep: Any = "\x00"
    for _ in range(5000):
        deep = [deep]
    scope = Context("ApisixRoute", "default", World(()).view(), OPTIONS)
    check_spec(scope, {"a": deep})
    assert [problem.code for problem in scope.problems] == ["ControlCharacter"]


def test_certificate_of_an_ingress_is_not_taken_for_a_text() -> None:
    pair = pem()
    certificate = secret(tls__crt=pair.certificate, tls__key=pair.key)
    raw = ingress(ingress_rule(), tls=[{"hosts": ["a.example.com"], "secretName": "secret"}])
    found = settle(service(), certificate, raw, options=REFUSE)
    assert problems(found)["Ingress default/ing"] == ["CertificateExpired"]
    assert any(path.startswith("ssls/") for path in bodies(found))


@pytest.mark.parametrize("name", ["upstream-retries", "upstream-connect-timeout", "http-redirect-code"])
@pytest.mark.parametrize("value", ["9" * 5000, "9" * 5000 + "s"])
def test_numbers_that_json_parsers_do_not_preserve_are_skipped(name: str, value: str) -> None:
    got = translate(annotated(name, value, http_redirect="/a"))
    assert reported(got) == [f"warning InvalidAnnotation metadata.annotations[{PREFIX}{name}]"]


def test_durations_that_no_computer_keeps_are_refused() -> None:
    got = translate(route(rule(timeout={"connect": "9" * 5000 + "s"})))
    assert reported(got) == ["error InvalidSpec spec.http[0].timeout.connect"]
