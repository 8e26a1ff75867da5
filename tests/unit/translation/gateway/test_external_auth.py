"""The filter ExternalAuth: the record that asks, the record that is asked, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.exposure import Exposure
from apisix_ingress.model.json import JsonObject
from apisix_ingress.state.world import World
from tests.unit.translation.gateway.objects import CLASS, gateway, of_parents, route, rule
from tests.unit.translation.objects import OPTIONS, make, service
from tests.unit.translation.settling import bodies, settle
from translation.nginx.functions.external_auth import ASK, MARK
from translation.plugins.exposure import exposure

ON = replace(OPTIONS, gateway_experimental=True)
PRESET = replace(
    ON, cross_namespace="grant", code_plugins="refuse", external_addresses="refuse-internal", plugins="reviewed"
)
NAME = "HTTPRoute_default_app_86602af047ab2387_0_Gateway_default_gw_http"


def auth(http: JsonObject | None = None, namespace: str = "", name: str = "auth", **rest: Any) -> JsonObject:
    backend = {"name": name, "port": 80, **({"namespace": namespace} if namespace else {})}
    return {
        "type": "ExternalAuth",
        "externalAuth": {"protocol": "HTTP", "backendRef": backend, "http": http or {}, **rest},
    }


def served(*filters: JsonObject, options: Any = ON, objects: tuple[JsonObject, ...] = (), **rest: Any) -> World:
    entry = route(rule(*filters), hostnames=["a.test"], **rest)
    return settle(CLASS, gateway(), service(), service("auth"), entry, *objects, options=options)


def routes(found: World) -> dict[str, JsonObject]:
    return {str(body["name"]): dict(body) for path, body in bodies(found).items() if path.startswith("routes/")}


@pytest.mark.parametrize("options", [ON, PRESET])
def test_a_request_is_asked_about_through_a_path_of_the_gateway(options: Any) -> None:
    http = {"path": "/check$1/", "allowedHeaders": ["Cookie", "Host"], "allowedResponseHeaders": ["X-User", "Te"]}
    found = served(auth(http, forwardBody={"maxSize": 1000}), options=options)
    assert of_parents(found) == [{"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs"}]
    asking, asked = routes(found)[NAME], routes(found)[f"{NAME}_auth"]
    path = asked["uri"].removesuffix("/*")
    assert asking["plugins"]["serverless-pre-function"]["functions"] == [ASK]
    assert asking["plugins"]["serverless-pre-function"]["ingress_nginx"] == {
        "external": {
            "base": "http://127.0.0.1:9080",
            "namespace": "default",
            "uri": f"http://127.0.0.1:9080{path}",
            "headers": ["authorization", "cookie"],
            "copied": ["x-user"],
            "most": 1000,
        }
    }
    assert asking["upstream_id"] != asked["upstream_id"]
    assert asked["hosts"] == asking["hosts"] == ["a.test"]
    assert asked["vars"] == [["realip_remote_addr", "==", "127.0.0.1"]]
    assert asked["plugins"]["proxy-rewrite"]["regex_uri"][1] == "/check$$1$1"
    # The function permits a request only if the response has this header: another route did not ask the service.
    assert asked["plugins"]["response-rewrite"] == {"headers": {"set": {MARK: path}}}


def test_the_record_that_asks_guards_its_path() -> None:
    found = routes(served(auth()))
    assert [exposure(found[name]) for name in (NAME, f"{NAME}_auth")] == [Exposure.GUARDED, Exposure.OPEN]


def test_the_other_filters_of_the_rule_apply() -> None:
    config = make("ApisixPluginConfig", "pc", spec={"plugins": [{"name": "gzip", "config": {}}]})
    extension = {
        "type": "ExtensionRef",
        "extensionRef": {"group": "apisix.apache.org", "kind": "ApisixPluginConfig", "name": "pc"},
    }
    rewrite = {"type": "URLRewrite", "urlRewrite": {"hostname": "b.test"}}
    body = routes(served(rewrite, auth(), extension, objects=(config,)))[NAME]
    assert set(body["plugins"]) == {"proxy-rewrite", "serverless-pre-function"}
    assert "plugin_config_id" in body


@pytest.mark.parametrize(
    ("backend", "want"), [({"name": "absent"}, "!BackendNotFound"), ({"namespace": "b"}, "!RefNotPermitted")]
)
def test_without_the_service_nothing_passes(backend: JsonObject, want: str) -> None:
    found = served(auth(**backend), objects=(service("auth", namespace="b"),))
    assert of_parents(found) == [{"Accepted": "Accepted", "ResolvedRefs": want}]
    (body,) = routes(found).values()
    assert "upstream_id" not in body
    assert body["plugins"] == {"fault-injection": {"abort": {"http_status": 500}}}


def test_a_service_of_another_namespace_needs_a_grant() -> None:
    source = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "default"}
    spec = {"from": [source], "to": [{"group": "", "kind": "Service", "name": "auth"}]}
    grant = make("ReferenceGrant", "grant", namespace="b", spec=spec)
    found = served(auth(namespace="b"), objects=(service("auth", namespace="b"), grant))
    assert of_parents(found) == [{"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs"}]
    assert set(routes(found)) == {NAME, f"{NAME}_auth"}


REDIRECT = {"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}
GRPC = {"type": "ExternalAuth", "externalAuth": {"protocol": "GRPC", "backendRef": {"name": "auth"}, "grpc": {}}}


@pytest.mark.parametrize(
    ("filters", "want"),
    [
        ((GRPC,), "!UnsupportedValue"),
        ((auth(), auth()), "!UnsupportedValue"),
        ((auth(), REDIRECT), "!IncompatibleFilters"),
        ((auth({"path": "check"}),), "!UnsupportedValue"),
        ((auth({"path": "/a/../b"}),), "!UnsupportedValue"),
        ((auth({"path": "/a/.%2E"}),), "!UnsupportedValue"),
        ((auth({"path": "/a b"}),), "!UnsupportedValue"),
        ((auth({"allowedHeaders": ["a b"]}),), "!UnsupportedValue"),
        ((auth({"allowedResponseHeaders": ["a:\n"]}),), "!UnsupportedValue"),
    ],
)
def test_what_gateways_cannot_do_is_refused(filters: tuple[JsonObject, ...], want: str) -> None:
    found = served(*filters)
    assert of_parents(found)[0]["Accepted"] == want
    assert routes(found) == {}


def test_the_filter_is_refused_without_the_setting_for_experimental_fields() -> None:
    assert of_parents(served(auth(), options=OPTIONS))[0]["Accepted"] == "!UnsupportedValue"
