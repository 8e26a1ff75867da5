"""ApisixClusterConfig → global rules of one gateway cluster."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.model.admin_address import AdminAddress
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.world import World
from tests.unit.translation.objects import OPTIONS, get, make, protected_by, world
from tests.unit.translation.settling import bodies, problems, settle
from translation.cluster_config import admin_address, translate_cluster_config
from translation.core.options import Options
from translation.core.outcome import NOTHING, Outcome, records_of


def config(name: str = "default", **monitoring: Any) -> JsonObject:
    return make("ApisixClusterConfig", name, namespace="", spec={"monitoring": monitoring})


def rule(plugin: str) -> JsonObject:
    return make("ApisixGlobalRule", "rule", spec={"plugins": [{"name": plugin}]})


def translate(found: World, name: str = "default", *, options: Options = OPTIONS) -> Outcome:
    return translate_cluster_config(get(found, "ApisixClusterConfig", name, ""), found.view(), options)


def test_the_rule_goes_only_to_the_cluster_with_its_name() -> None:
    options = Options(clusters=frozenset({"east", "west"}))
    got = translate(world(config("east", prometheus={"enable": True})), "east", options=options)
    (record,) = records_of(got)
    assert (record.name, record.clusters) == ("east", frozenset({"east"}))
    assert record.body == {"id": record.key.id, "plugins": {"prometheus": {}}}
    assert [(hold.kind, hold.names) for hold in protected_by(got)] == [("global_rules", frozenset({record.name}))]


def test_an_object_not_named_like_a_cluster_yields_no_record() -> None:
    assert translate(world(config("other", prometheus={"enable": True})), "other") == NOTHING


@pytest.mark.parametrize(
    ("monitoring", "plugins"),
    [
        ({"prometheus": {"enable": True, "prefer_name": True}}, {"prometheus": {"prefer_name": True}}),
        ({"skywalking": {"enable": True}}, {"skywalking": {}}),
        ({"skywalking": {"enable": True, "sampleRatio": 0.5}}, {"skywalking": {"sample_ratio": 0.5}}),
        ({"prometheus": {"enable": True}, "skywalking": {"enable": False}}, {"prometheus": {}}),
    ],
)
def test_enabled_features_are_plugins(monitoring: JsonObject, plugins: JsonObject) -> None:
    got = translate(world(config(**monitoring)))
    assert [record.body["plugins"] for record in records_of(got)] == [plugins]


def test_a_broken_spec_keeps_the_published_records() -> None:
    got = translate(world(config(prometheus={"enable": "yes"})))
    assert records_of(got) == ()
    assert len(protected_by(got)) == 1
    assert [(problem.code, problem.path) for problem in got.problems] == [
        ("InvalidSpec", "spec.monitoring.prometheus.enable")
    ]


def metadata(**plugins: Any) -> JsonObject:
    return make("ApisixClusterConfig", "default", namespace="", spec={"pluginMetadata": plugins})


def test_metadata_of_plugins_goes_to_the_cluster_with_its_name() -> None:
    got = translate(world(metadata(csrf={"key": "x"})))
    (record,) = records_of(got)
    assert (str(record.key), record.body) == ("plugin_metadata/csrf", {"key": "x"})
    assert record.clusters == frozenset({"default"})


@pytest.mark.parametrize(("name", "body"), [("a/b", {}), ("", {}), ("gzip", 1)])
def test_invalid_metadata_keeps_all_records_of_the_gateway(name: str, body: object) -> None:
    got = translate(world(metadata(**{name: body}, csrf={})))
    assert records_of(got) == ()
    assert [(hold.kind, hold.ids) for hold in protected_by(got)][1:] == [("plugin_metadata", frozenset({name, "csrf"}))]
    assert [(problem.code, problem.path) for problem in got.problems] == [
        ("InvalidSpec", f"spec.pluginMetadata.{name}")
    ]


PUBLISHED = "edd1c9f034335f136f87ad84b625c8f1"
URL = "http://apisix:9180/apisix/admin"


def admin(**fields: str) -> World:
    return world(make("ApisixClusterConfig", "default", namespace="", spec={"admin": fields}))


def found(got: Outcome) -> list[tuple[str, str, str]]:
    return [(problem.code, problem.path, problem.severity) for problem in got.problems]


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"baseURL": f"{URL}/", "adminKey": "sesame"}, AdminAddress(URL, "sesame")),
        ({"baseURL": URL}, AdminAddress(URL)),
        ({"baseURL": URL, "clientTimeout": "5s"}, AdminAddress(URL)),
    ],
)
def test_the_address_is_that_of_the_object(fields: dict[str, str], want: AdminAddress) -> None:
    place = admin(**fields)
    assert translate(place).problems == ()
    assert admin_address(get(place, "ApisixClusterConfig", "default", "")) == want


def test_without_admin_the_settings_count() -> None:
    assert admin_address(get(world(config()), "ApisixClusterConfig", "default", "")) is None


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"baseURL": "http://gw:99999"}, ("AdminUrlInvalid", "spec.admin.baseURL", "error")),
        ({"baseURL": "http://gw:9180/?a=canary"}, ("AdminUrlInvalid", "spec.admin.baseURL", "error")),
        ({"baseURL": "http://gw"}, ("InvalidSpec", "spec.admin.baseURL", "error")),
        ({"baseURL": URL, "adminKey": "canary canary"}, ("AdminKeyInvalid", "spec.admin.adminKey", "error")),
        ({"baseURL": URL, "adminKey": PUBLISHED}, ("AdminKeyPublished", "spec.admin.adminKey", "warning")),
    ],
)
def test_an_unusable_address_is_reported_without_its_credentials(
    fields: dict[str, str], want: tuple[str, str, str]
) -> None:
    got = translate(admin(**fields))
    assert found(got) == [want]
    assert "canary" not in repr(got)
    assert PUBLISHED not in repr(got)


def test_a_published_key_is_an_error_if_the_settings_refuse_it() -> None:
    got = translate(admin(baseURL=URL, adminKey=PUBLISHED), options=Options(published_keys="refuse"))
    assert found(got) == [("AdminKeyPublished", "spec.admin.adminKey", "error")]


def test_the_key_of_an_address_is_not_shown() -> None:
    assert "sesame" not in repr(AdminAddress(URL, "sesame"))


def test_a_plugin_of_a_global_rule_is_left_to_it() -> None:
    on = {"enable": True}
    got = translate(world(config(prometheus=on, skywalking=on), rule("prometheus")))
    message = (
        "plugin prometheus is skipped: ApisixGlobalRule default/rule already sets it, "
        "and APISIX allows a plugin in one global rule only; remove one"
    )
    assert [record.body["plugins"] for record in records_of(got)] == [{"skywalking": {}}]
    assert got.problems == (Problem("Conflicted", message, "spec.monitoring.prometheus", "degraded"),)


def test_without_a_remaining_plugin_there_is_no_rule() -> None:
    got = translate(world(config(prometheus={"enable": True}), rule("prometheus")))
    assert (records_of(got), [problem.code for problem in got.problems]) == ((), ["Conflicted"])


def test_the_provider_ignores_objects_without_a_cluster_of_their_name() -> None:
    on = {"enable": True}
    got = settle(config(prometheus=on), config("other", prometheus=on))
    assert problems(got) == {"ApisixClusterConfig default": []}
    assert [body["plugins"] for body in bodies(got).values()] == [{"prometheus": {}}]
    assert bodies(got, "west") == {}
