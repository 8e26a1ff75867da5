"""Plugins in manifests, checked without a gateway by the schemas that come with the program."""

import json
from dataclasses import replace

import pytest

from apisix_ingress.errors import UsageError
from apisix_ingress.kube.manifests.loader import load
from apisix_ingress.lint.findings import find
from apisix_ingress.lint.plugins import plugin_rules
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.webhook.schemas.published import OFF_BY_DEFAULT, published_book, versions
from tests.factories import make_custom
from tests.unit.apisix_ingress.lint.test_lint import INGRESS, ROUTE, SERVICE
from translation.core.options import Options

DEFAULTS = Options()


def lint(*texts: str, options: Options = DEFAULTS, apisix: str = "3.18") -> list[tuple[str, str, str]]:
    loaded = load(["-"], stdin="---\n".join(texts).encode())
    found = find(loaded, options, plugins=plugin_rules(apisix))
    return [(item.code.word, item.path, item.message) for item in found]


def route(name: str, **config: object) -> str:
    plugins = json.dumps([{"name": name, "enable": True, "config": config}])
    return ROUTE % "web" + f"      plugins: {plugins}\n"


def test_a_misspelt_plugin_is_named_with_the_nearest_one() -> None:
    assert lint(SERVICE, route("limit-cuont", count=1)) == [
        (
            "PluginUnknown",
            "spec.http[0].plugins[0]",
            "unknown plugin limit-cuont in APISIX 3.18; did you mean limit-count?",
        )
    ]


def test_a_misspelt_option_and_a_wrong_value_are_named_with_their_field() -> None:
    path = "spec.http[0].plugins[0].config"
    no_option = "plugin cors of APISIX 3.18 has no such option; did you mean allow_origins?"
    wrong = "Invalid type. Expected: integer, given: string (plugin cors of APISIX 3.18)"
    assert lint(SERVICE, route("cors", max_age="soon", alow_origins="*")) == [
        ("PluginInvalid", f"{path}.max_age", wrong),
        ("PluginOptionUnknown", f"{path}.alow_origins", no_option),
    ]


def test_options_of_alternatives_and_free_names_are_known() -> None:
    redis = {"count": 1, "time_window": 1, "policy": "redis", "redis_host": "10.0.0.1", "_meta": {"priority": 1}}
    assert lint(SERVICE, route("limit-count", **redis)) == []


def test_options_of_a_consumer_are_those_of_its_schema() -> None:
    consumer = """\
apiVersion: apisix.apache.org/v2
kind: ApisixConsumer
metadata: {name: jack}
spec: {authParameter: {keyAuth: {value: {key: one}}}}
"""
    assert lint(consumer) == []


@pytest.mark.parametrize("name", ["opentelemetry", "skywalking", "brotli", "error-page"])
def test_a_plugin_that_is_off_by_default_is_a_warning_with_the_remedy(name: str) -> None:
    ((code, path, message),) = lint(SERVICE, route(name))
    assert (code, path) == ("PluginDisabled", "spec.http[0].plugins[0]")
    assert "off by default: add it to `plugins` in config.yaml" in message
    ours = replace(Options(), trusted_plugins=frozenset({name}))
    assert lint(SERVICE, route(name), options=ours) == []


def test_a_plugin_that_is_off_by_default_is_checked_with_its_schema() -> None:
    got = lint(SERVICE, route("opentelemetry", sampler={"name": 5}))
    assert [each[0] for each in got] == ["PluginDisabled", "PluginInvalid", "PluginInvalid"]


def test_rules_beyond_the_schema_are_checked_with_its_defaults() -> None:
    got = lint(SERVICE, route("cors", allow_credential=True, allow_origins="https://a.example.org", allow_headers="a"))
    path = "spec.http[0].plugins[0].config.allow_methods"
    why = "must not be * (which is its default for some options) with allow_credential: list the values"
    assert got == [("PluginInvalid", path, f"{why} (plugin cors of APISIX 3.18)")]
    assert lint(SERVICE, route("cors", allow_credential=True, _meta={"disable": True})) == []


@pytest.mark.parametrize(
    ("config", "want"),
    [
        ({"http_to_https": True, "uri": "/a"}, "set only one of uri, regex_uri, http_to_https"),
        ({}, "set one of uri, regex_uri, http_to_https"),
    ],
)
def test_a_choice_between_options_is_explained(config: dict[str, object], want: str) -> None:
    ((_, path, message),) = lint(SERVICE, route("redirect", **config))
    assert (path, message) == ("spec.http[0].plugins[0].config", f"{want} (plugin redirect of APISIX 3.18)")


def test_generated_plugins_are_valid() -> None:
    assert lint(SERVICE, INGRESS % 'k8s.apisix.apache.org/enable-cors: "true"') == []


def test_own_plugins_are_those_of_the_settings() -> None:
    ours = replace(Options(), trusted_plugins=frozenset({"our-plugin"}))
    assert lint(SERVICE, route("our-plugin"), options=ours) == []
    ((_, _, message),) = lint(SERVICE, route("our-plugin"))
    assert "kubernetes.trusted_plugins" in message


def test_plugins_are_not_checked_on_request() -> None:
    assert lint(SERVICE, route("limit-cuont"), apisix="none") == []


def test_a_version_without_schemas_is_rejected_with_the_available_ones() -> None:
    with pytest.raises(UsageError, match=rf"APISIX 2\.15 are not included: use one of {versions()[-1]}"):
        plugin_rules("2.15")


@pytest.mark.parametrize("version", versions())
def test_every_shipped_schema_compiles(version: str) -> None:
    book = published_book(version)
    unchecked = {name for name, schema in book.http.plugins.items() if schema is None}
    without_schema = {"ai-aws-content-moderation", "server-info", "skywalking", "ocsp-stapling", "gm"}
    assert (unchecked <= without_schema, book.http.plugins.keys() >= OFF_BY_DEFAULT) == (True, True)
    assert {"limit-count", "key-auth", "proxy-rewrite"} <= book.http.plugins.keys()
    assert "mqtt-proxy" in book.stream.plugins
    assert "key-auth" in book.http.consumers


def test_manifests_may_refer_to_objects_of_a_cluster_whose_own_mistakes_are_not_listed() -> None:
    loaded = load(["-"], stdin=(ROUTE % "web").encode())
    (service,) = load(["-"], stdin=SERVICE.encode()).objects
    lost = make_custom(name="lost", spec={"http": [{"name": "r", "match": {"paths": ["/"]}, "backends": []}]})
    assert [item.code.word for item in find(loaded, Options())] == ["ServiceNotFound"]
    assert find(loaded, Options(), live=[service, lost]) == ()


def test_an_object_of_a_cluster_is_replaced_by_its_manifest_and_keeps_its_age() -> None:
    loaded = load(["-"], stdin="---\n".join([SERVICE, ROUTE % "web"]).encode())
    (stored,) = load(["-"], stdin=(ROUTE % "gone").encode()).objects
    assert isinstance(stored, CustomObject)
    aged = replace(stored, meta=replace(stored.meta, created="2020-01-01T00:00:00Z"))
    assert find(loaded, Options(), live=[aged]) == ()
