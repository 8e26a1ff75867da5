"""Plugins with Secrets and authentication."""

import copy
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from crds.v2.common import Plugin
from crds.v2.route import Authentication
from tests.unit.translation.objects import OPTIONS, make, secret, world
from translation.core.context import Context
from translation.core.options import Options
from translation.plugins.configs import Plugins, authenticate, translate_plugins
from translation.plugins.mirrors import RAW_PATH

REFUSE = Options(code_plugins="refuse")


def translate(
    *plugins: JsonObject, objects: tuple[JsonObject, ...] = (), options: Options = OPTIONS
) -> tuple[Plugins, Context]:
    scope = Context("ApisixRoute", "default", world(*objects).view(), options)
    return translate_plugins(scope, [Plugin.model_validate(item) for item in plugins], "spec.plugins"), scope


def reported(scope: Context) -> list[tuple[str, str, str]]:
    return [(problem.severity, problem.code, problem.path) for problem in scope.problems]


def test_disabled_plugin_is_skipped_and_absent_config_is_empty() -> None:
    got, scope = translate({"name": "a", "enable": False}, {"name": "b", "enable": True})
    assert got == {"b": {}}
    assert reported(scope) == []


def test_the_last_of_two_plugins_with_one_name_is_used() -> None:
    got, scope = translate({"name": "a", "config": {"x": 1}}, {"name": "a", "config": {"x": 2}})
    assert got == {"a": {"x": 2}}
    assert reported(scope) == [("warning", "PluginTwice", "spec.plugins[1]")]


def test_secret_is_merged_without_config() -> None:
    got, _ = translate({"name": "a", "secretRef": "secret"}, objects=(secret(key="k"),))
    assert got == {"a": {"key": "k"}}


def test_secret_wins_and_dots_lead_into_mappings() -> None:
    config = {"key": "old", "deep": {"a": "1", "b": "2"}, "flat": "text"}
    before = copy.deepcopy(config)
    objects = (secret(key="new", deep__a="s", flat__x__y="z"),)
    got, _ = translate({"name": "p", "config": config, "secretRef": "secret"}, objects=objects)
    assert got == {"p": {"key": "new", "deep": {"a": "s", "b": "2"}, "flat": {"x": {"y": "z"}}}}
    assert config == before


@pytest.mark.parametrize(
    ("config", "has_function"),
    [
        ({"host": "http://copy.test"}, True),
        ({"host": "http://copy.test", "path": "/a", "path_concat_mode": "prefix"}, True),
        ({"host": "http://copy.test", "path": "/a"}, False),
    ],
)
def test_copies_have_the_path_as_the_client_wrote_it(config: JsonObject, has_function: bool) -> None:
    got, _ = translate({"name": "proxy-mirror", "config": config})
    assert got == {"proxy-mirror": config | ({"_meta": {"pre_function": RAW_PATH}} if has_function else {})}


def of_secret(key: object = "key", **more: object) -> JsonObject:
    return {"valueFrom": {"secretKeyRef": {"name": "secret", "key": key, **more}}}


def test_a_value_anywhere_in_a_configuration_comes_from_a_secret() -> None:
    config = {"instances": [{"auth": {"header": {"Authorization": of_secret()}}}], "timeout": 1}
    before = copy.deepcopy(config)
    got, scope = translate({"name": "ai-proxy-multi", "config": config}, objects=(secret(key="Bearer k"),))
    assert got == {"ai-proxy-multi": {"instances": [{"auth": {"header": {"Authorization": "Bearer k"}}}], "timeout": 1}}
    assert (config, scope.problems) == (before, [])


@pytest.mark.parametrize(
    ("value", "objects", "code"),
    [
        (of_secret(), (), "SecretNotFound"),
        (of_secret("other"), (secret(key="k"),), "InvalidSecret"),
        (of_secret(1), (secret(key="k"),), "InvalidSpec"),
        (of_secret(namespace="victim"), (secret(key="k"),), "InvalidSpec"),
        ({"valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}, (), "InvalidSpec"),
        ({"valueFrom": "text"}, (), "InvalidSpec"),
    ],
)
def test_a_value_that_no_secret_has_is_reported(value: JsonObject, objects: tuple[JsonObject, ...], code: str) -> None:
    _, scope = translate({"name": "p", "config": {"list": [value]}}, objects=objects)
    (problem,) = scope.problems
    assert (problem.severity, problem.code) == ("error", code)
    assert problem.path.startswith("spec.plugins[0].config.list[0].valueFrom")


def test_a_mapping_with_further_fields_refers_to_no_secret() -> None:
    config = {"a": {"valueFrom": {"secretKeyRef": {}}, "b": 1}}
    got, scope = translate({"name": "p", "config": config})
    assert (got, scope.problems) == ({"p": config}, [])


def test_a_longer_key_replaces_a_conflicting_text_in_any_order() -> None:
    for data in ({"a": "1", "a__b": "2"}, {"a__b": "2", "a": "1"}):
        got, _ = translate({"name": "p", "secretRef": "secret"}, objects=(secret(**data),))
        assert got == {"p": {"a": {"b": "2"}}}


def test_key_that_ends_with_a_dot_leads_to_a_mapping_without_a_value() -> None:
    got, _ = translate(
        {"name": "p", "config": {"a": {"x": 1}}, "secretRef": "secret"}, objects=(secret(a__="1", b__="2"),)
    )
    assert got == {"p": {"a": {"x": 1}, "b": {}}}


def test_a_missing_secret_fails_and_later_plugins_are_still_checked() -> None:
    _, scope = translate({"name": "a", "secretRef": "x"}, {"name": "b", "secretRef": "y"})
    assert reported(scope) == [
        ("error", "SecretNotFound", "spec.plugins[0].secretRef"),
        ("error", "SecretNotFound", "spec.plugins[1].secretRef"),
    ]


def test_secret_value_that_is_not_text_fails_without_being_shown() -> None:
    raw = make("Secret", "secret", data={"key": "/w=="})
    _, scope = translate({"name": "a", "secretRef": "secret"}, objects=(raw,))
    assert reported(scope) == [("error", "InvalidSecret", "spec.plugins[0].secretRef")]
    assert "Secret default/secret: the value of key is not UTF-8; replace it" in scope.problems[0].message


@pytest.mark.parametrize(
    "name",
    [
        "serverless-pre-function",
        "serverless-post-function",
        "ext-plugin-pre-req",
        "ext-plugin-post-resp",
        "exit-transformer",
        "inspect",
        "script",
        "body-transformer",
        "ai-prompt-template",
        "request-validation",
        "oas-validator",
        "public-api",
        "batch-requests",
    ],
)
def test_a_plugin_that_runs_code_is_rejected_if_the_settings_forbid_it(name: str) -> None:
    plugin = {"name": name, "config": {}}
    assert reported(translate(plugin)[1]) == []
    _, scope = translate({"name": "cors"}, plugin, options=REFUSE)
    assert [str(problem) for problem in scope.problems] == [
        f"spec.plugins[1].name: plugin {name} is rejected by the controller's setting "
        "kubernetes.code_plugins: refuse; remove it"
    ]
    assert reported(scope) == [("error", "CodeRefused", "spec.plugins[1].name")]


def test_disabled_plugin_that_runs_code_is_not_refused() -> None:
    assert reported(translate({"name": "inspect", "enable": False}, options=REFUSE)[1]) == []


def test_code_in_the_meta_of_a_harmless_plugin_is_refused_from_a_secret_too() -> None:
    inline = {"name": "cors", "config": {"_meta": {"pre_function": "return function() end"}}}
    merged = {"name": "cors", "config": {"_meta": {"disable": False}}, "secretRef": "secret"}
    hidden = secret(_meta__pre_function="return function() end")
    for plugin in (inline, merged):
        assert reported(translate(plugin, objects=(hidden,))[1]) == []
        _, scope = translate(plugin, objects=(hidden,), options=REFUSE)
        assert reported(scope) == [("error", "CodeRefused", "spec.plugins[0].config")]
        assert "_meta.pre_function of plugin cors is rejected" in scope.problems[0].message


def test_other_meta_of_a_plugin_is_let_through() -> None:
    plugin = {"name": "cors", "config": {"_meta": {"priority": 1}}}
    assert reported(translate(plugin, options=REFUSE)[1]) == []


@pytest.mark.parametrize(
    ("block", "want"),
    [
        ({"enable": True}, {"basic-auth": {}}),
        ({"enable": True, "type": "basicAuth"}, {"basic-auth": {}}),
        ({"enable": True, "type": "keyAuth"}, {"key-auth": {}}),
        ({"enable": True, "type": "keyAuth", "keyAuth": {"header": "X"}}, {"key-auth": {"header": "X"}}),
        ({"enable": True, "type": "jwtAuth"}, {"jwt-auth": {}}),
        ({"enable": True, "type": "jwtAuth", "jwtAuth": {"cookie": "c"}}, {"jwt-auth": {"cookie": "c"}}),
        ({"enable": True, "type": "ldapAuth"}, {"ldap-auth": {}}),
        (
            {"enable": True, "type": "ldapAuth", "ldapAuth": {"base_dn": "b", "use_tls": True}},
            {"ldap-auth": {"base_dn": "b", "use_tls": True}},
        ),
        ({"enable": True, "type": "wolfRBAC"}, {"wolf-rbac": {}}),
        ({"enable": True, "type": "hmacAuth"}, {"hmac-auth": {}}),
        ({"enable": False, "type": "keyAuth"}, {}),
        (None, {}),
    ],
)
def test_authentication_becomes_a_plugin(block: dict[str, Any] | None, want: Plugins) -> None:
    got: Plugins = {}
    scope = Context("ApisixRoute", "default", world().view(), OPTIONS)
    authenticate(scope, got, Authentication.model_validate(block) if block else None, "spec.http[0].authentication")
    assert got == want
