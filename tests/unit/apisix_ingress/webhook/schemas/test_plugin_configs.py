"""Plugins of an object, by the schemas of the clusters that get them."""

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.webhook.checks.all_checks import Checks
from apisix_ingress.webhook.review import ALLOWED, Verdict
from apisix_ingress.webhook.schemas.book import SchemaBook, compile_subsystem
from apisix_ingress.webhook.schemas.plugin_configs import Books
from tests.factories import make_secret, make_service
from tests.fakes.clock import FakeClock
from tests.unit.apisix_ingress.webhook.worlds import (
    ask,
    book,
    make_checks,
    make_world,
    manifest,
    plugin,
    route_spec,
    rule,
)
from translation.core.options import Options

WRONG = {"count": 1, "rejected_code": 4711}
CODE = "Must be less than or equal to 599"


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("ApisixRoute", route_spec(plugin("redirect"), plugin("limit-count", WRONG)), "spec.http[0].plugins[1]"),
        ("ApisixPluginConfig", {"plugins": [plugin("limit-count", WRONG)]}, "spec.plugins[0]"),
        ("ApisixGlobalRule", {"plugins": [plugin("limit-count", WRONG)]}, "spec.plugins[0]"),
        ("ApisixConsumer", {"plugins": [plugin("limit-count", WRONG)]}, "spec.plugins[0]"),
    ],
)
def test_a_wrong_configuration_is_denied_with_the_message_of_1_8_and_its_path(
    kind: str, spec: JsonObject, path: str
) -> None:
    got = ask(make_checks(make_service()), manifest(spec, kind=kind))
    assert got.denials == (
        f"{path}: limit-count plugin's config is invalid",
        f"{path}.config.rejected_code: {CODE}",
    )


def test_mistakes_of_several_plugins_accumulate() -> None:
    spec = {
        "http": [
            rule(plugin("limit-count", {})),
            rule(plugin("limit-count", {**WRONG, "policy": "magic"}), plugin("key-auht"), name="two"),
        ]
    }
    got = ask(make_checks(make_service()), manifest(spec))
    assert sorted(got.denials) == [
        "spec.http[0].plugins[0].config: count is required",
        "spec.http[0].plugins[0]: limit-count plugin's config is invalid",
        'spec.http[1].plugins[0].config.policy: must be one of the following: "local", "redis"',
        f"spec.http[1].plugins[0].config.rejected_code: {CODE}",
        "spec.http[1].plugins[0]: limit-count plugin's config is invalid",
        "spec.http[1].plugins[1]: unknown plugin key-auht; did you mean key-auth?",
    ]


def test_plugin_without_configuration_has_an_empty_one() -> None:
    bare = {"name": "limit-count", "enable": True}
    got = ask(make_checks(make_service()), manifest(route_spec(bare)))
    assert "spec.http[0].plugins[0].config: count is required" in got.denials
    assert ask(make_checks(make_service()), manifest(route_spec({"name": "redirect", "enable": True}))) == ALLOWED


def test_a_plugin_that_is_not_enabled_is_not_checked() -> None:
    off = [plugin("limit-count", {}, enable=False), plugin("no-such-plugin", enable=False)]
    assert ask(make_checks(make_service()), manifest(route_spec(*off))) == ALLOWED


def test_unknown_plugin_is_denied_with_the_nearest_known_name() -> None:
    got = ask(make_checks(make_service()), manifest(route_spec(plugin("limit-cuont"), plugin("no-such-plugin"))))
    assert got.denials == (
        "spec.http[0].plugins[0]: unknown plugin limit-cuont; did you mean limit-count?",
        "spec.http[0].plugins[1]: unknown plugin no-such-plugin; enable it in the gateway or remove it",
    )


def test_plugins_are_checked_while_the_service_is_missing() -> None:
    got = ask(make_checks(), manifest(route_spec(plugin("limit-cuont"))))
    assert len(got.denials) == len(got.warnings) == 1


def test_configuration_that_a_secret_completes_is_checked_as_a_whole() -> None:
    spec = route_spec(plugin("limit-count", {"count": 1, "policy": "redis"}, secretRef="redis"))
    secret = make_secret("redis", data={"redis_password": b"s3cret"})
    assert ask(make_checks(make_service(), secret), manifest(spec)) == ALLOWED
    wrong = make_secret("redis", data={"redis_password": b"", "policy": b"s3cret"})
    got = ask(make_checks(make_service(), wrong), manifest(spec))
    assert len(got.denials) == 3
    assert "s3cret" not in str(got)


def test_configuration_that_waits_for_its_secret_is_not_judged() -> None:
    spec = route_spec(plugin("limit-count", {}, secretRef="late"), plugin("limit-cuont", {}, secretRef="late"))
    got = ask(make_checks(make_service()), manifest(spec))
    assert got.denials == ("spec.http[0].plugins[1]: unknown plugin limit-cuont; did you mean limit-count?",)


def test_plugins_of_connections_have_their_own_schemas() -> None:
    match = {"ingressPort": 9000}
    backend = {"serviceName": "web", "servicePort": 80}
    streams = [
        {"name": name, "protocol": "TCP", "match": match, "backend": backend, "plugins": [plugin(name)]}
        for name in ("mqtt-proxy", "redirect")
    ]
    item = manifest({"stream": streams})
    got = ask(make_checks(make_service()), item)
    assert got.denials == (
        "spec.stream[0].plugins[0]: mqtt-proxy plugin's config is invalid",
        "spec.stream[0].plugins[0].config: protocol_level is required",
        "spec.stream[1].plugins[0]: unknown plugin redirect; enable it in the gateway or remove it",
    )
    assert ask(make_checks(make_service(), books={"default": book(stream=False)}), item) == ALLOWED


def test_plugin_made_from_annotations_is_checked_once() -> None:
    paths = [
        {"path": path, "pathType": "Exact", "backend": {"service": {"name": "web", "port": {"number": 80}}}}
        for path in ("/a", "/b")
    ]
    spec = {"ingressClassName": "apisix", "rules": [{"http": {"paths": paths}}]}
    values = {"k8s.apisix.apache.org/rewrite-target": f"/{'x' * 30}", "k8s.apisix.apache.org/enable-cors": "true"}
    got = ask(make_checks(make_service()), manifest(spec, kind="Ingress", annotations=values))
    assert sorted(got.denials) == [
        "metadata.annotations.uri: String length must be less than or equal to 20",
        "metadata.annotations: proxy-rewrite plugin's config is invalid",
        "metadata.annotations: unknown plugin cors; enable it in the gateway or remove it",
    ]


def test_credentials_are_checked_by_the_schema_for_consumers() -> None:
    listed = {"plugins": [plugin("key-auth", {"key": 7})]}
    got = ask(make_checks(), manifest(listed, kind="ApisixConsumer"))
    assert got.denials[1] == "spec.plugins[0].config.key: Invalid type. Expected: string, given: integer"
    made = {"authParameter": {"basicAuth": {"value": {"username": "u", "password": "s3cret"}}}}
    got = ask(make_checks(), manifest(made, kind="ApisixConsumer"))
    assert got == Verdict(("spec.authParameter: unknown plugin basic-auth; enable it in the gateway or remove it",))


def test_each_cluster_is_reported_by_name_and_the_unknown_one_is_a_warning() -> None:
    books: Books = {"a": book(), "b": SchemaBook(compile_subsystem({"redirect": {"schema": {}}})), "c": None}
    got = ask(make_checks(make_service(), books=books), manifest(route_spec(plugin("limit-count", {"count": 1}))))
    assert got == Verdict(
        (
            "spec.http[0].plugins[0]: unknown plugin limit-count in gateway cluster b; "
            "enable it in the gateway or remove it",
        ),
        ("plugins were not checked: the schemas of gateway cluster c are unknown at present",),
    )


def test_plugins_of_one_cluster_are_checked_by_its_schemas_alone() -> None:
    books: Books = {"a": SchemaBook(compile_subsystem({"redirect": {"schema": {}}})), "b": book()}
    options = Options(clusters=frozenset({"a", "b"}))
    checks = make_checks(books=books, options=options)
    spec = {"monitoring": {"prometheus": {"enable": True}}}
    assert ask(checks, manifest(spec, kind="ApisixClusterConfig", name="b", namespace="")) == ALLOWED
    got = ask(checks, manifest(spec, kind="ApisixClusterConfig", name="a", namespace=""))
    assert got.denials == (
        "spec.monitoring: unknown plugin prometheus in gateway cluster a; enable it in the gateway or remove it",
    )


def test_a_cluster_without_a_plugin_is_queried_again() -> None:
    asked: list[str] = []
    checks = Checks(make_world(make_service()), Options(), lambda: {"a": book()}, FakeClock().now, asked.append)
    ask(checks, manifest(route_spec(plugin("limit-count", {}))))
    assert asked == []
    ask(checks, manifest(route_spec(plugin("brand-new"))))
    assert asked == ["a"]
