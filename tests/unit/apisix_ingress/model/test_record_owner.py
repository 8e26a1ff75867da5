"""From a record to its owner."""

from typing import Any

import pytest

from apisix_ingress.model import names
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.record_owner import (
    client_labels,
    namespace_of_name,
    origin,
    origin_of_name,
    secrets_of,
    source_of,
)

SECRET = {"meta_secret_namespace": "shop", "meta_secret_name": "cert"}


@pytest.mark.parametrize(
    ("kind", "body", "want"),
    [
        ("routes", {"name": names.route_name("shop", "web", "rule_1")}, ObjectKey("ApisixRoute", "shop", "web")),
        ("routes", {"name": names.ingress_route_name("shop", "web", "h", "/")}, ObjectKey("Ingress", "shop", "web")),
        ("upstreams", {"name": names.service_upstream_name("shop", "web", 80)}, ObjectKey("Service", "shop", "web")),
        ("upstreams", {"name": names.object_name("shop", "web")}, ObjectKey("ApisixUpstream", "shop", "web")),
        ("plugin_configs", {"name": "shop_web"}, ObjectKey("ApisixPluginConfig", "shop", "web")),
        ("plugin_configs", {"name": "PluginConfig_shop_web"}, ObjectKey("PluginConfig", "shop", "web")),
        ("ssls", {"labels": SECRET}, ObjectKey("Secret", "shop", "cert")),
        ("ssls", {}, None),
        ("routes", {"name": "by-hand"}, None),
        ("routes", {"name": 5}, None),
        ("routes", {"name": names.truncated(names.ingress_route_name("shop", "w" * 253, "h", "/"))}, None),
        ("routes", {}, None),
        ("consumers", {"name": "shop_web_x"}, None),
    ],
)
def test_a_record_names_its_object(kind: RecordKind, body: dict[str, Any], want: ObjectKey | None) -> None:
    labels = names.owner_labels("apisix-ingress", body.get("labels"))
    assert origin(RecordKey(kind, "1"), {**body, "labels": labels}) == want


@pytest.mark.parametrize("labels", [None, [], {}, {"managed-by": "me"}])
def test_a_foreign_record_gives_no_information(labels: object) -> None:
    assert origin(RecordKey("routes", "1"), {"name": "shop_web_rule", "labels": labels}) is None


LONG = "x" * 250


@pytest.mark.parametrize(
    ("kind", "name", "want"),
    [
        ("routes", names.route_name("shop", "web", "rule"), "shop"),
        ("routes", names.route_name("shop", "web", LONG), "shop"),
        ("routes", names.route_name("shop", LONG, "rule"), "shop"),
        ("routes", names.ingress_route_name("shop", LONG, "h", "/"), "shop"),
        ("stream_routes", names.stream_route_name("shop", "web", LONG), "shop"),
        ("routes", "by-hand", ""),
    ],
)
def test_a_shortened_name_still_has_its_namespace(kind: RecordKind, name: str, want: str) -> None:
    assert namespace_of_name(kind, names.truncated(name)) == want


@pytest.mark.parametrize(
    ("kind", "name", "want"),
    [
        ("upstreams", names.service_upstream_name("shop", "web", 80), "shop/web"),
        ("upstreams", names.service_upstream_name("shop", "web", 80, variant="https"), "shop/web"),
        ("upstreams", names.service_upstream_name("shop", "web", 80, subset="v1", granularity="service"), "shop/web"),
        ("upstreams", names.object_name("shop", "external"), "shop/external"),
        ("plugin_configs", names.object_name("shop", "limits"), "shop/limits"),
        ("plugin_configs", names.object_name("shop", "limits", "PluginConfig"), "shop/limits"),
        ("upstreams", names.truncated(names.service_upstream_name("shop", LONG, 80)), "shop/"),
        ("plugin_configs", names.nginx_limits("shop", "web"), ""),
        ("upstreams", "by-hand", ""),
    ],
)
def test_a_record_names_what_others_refer_to(kind: RecordKind, name: str, want: str) -> None:
    assert source_of(kind, name) == want


CLIENT = client_labels("certs", "client")


@pytest.mark.parametrize(
    ("kind", "body", "want"),
    [
        ("ssls", {"labels": SECRET}, ("shop/cert",)),
        ("ssls", {"labels": SECRET | CLIENT}, ("shop/cert", "certs/client")),
        ("upstreams", {"labels": CLIENT, "tls": {}}, ("certs/client",)),
        ("upstreams", {"labels": CLIENT}, ()),
        ("routes", {"labels": SECRET | CLIENT}, ()),
        ("ssls", {"labels": {}}, ()),
        ("ssls", {"labels": None}, ()),
        ("ssls", {"labels": []}, ()),
    ],
)
def test_a_record_names_the_secrets_of_its_certificates(
    kind: RecordKind, body: JsonObject, want: tuple[str, ...]
) -> None:
    assert secrets_of(kind, body) == want


def test_a_route_of_a_host_of_ingress_nginx_is_not_of_an_apisix_route() -> None:
    assert origin_of_name("routes", "ingress-nginx:_wiki.test_27216933-1") is None
