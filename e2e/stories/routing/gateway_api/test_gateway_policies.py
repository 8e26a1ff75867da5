"""The kinds of 2.x: policies, plugins and consumers with the Gateway API, and what remains without their CRDs."""

import pytest

from e2e.cluster.client import Manifest
from e2e.definitions import extension_kinds
from e2e.definitions.extension_kinds import make
from e2e.definitions.gateway_kinds import CONTROLLER, gateway, http_route
from e2e.definitions.gateway_kinds import make as make_gateway_object
from e2e.story import Stage

pytestmark = pytest.mark.usefixtures("gateway_kinds", "extension_kinds")

CLASS = make_gateway_object("GatewayClass", "apisix", controllerName=CONTROLLER)
TARGET = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "web"}


def accepted(item: Manifest | None) -> list[str]:
    """Return the reasons of the condition Accepted, by ancestor."""
    ancestors = ((item or {}).get("status") or {}).get("ancestors") or []
    return [each["reason"] for entry in ancestors for each in entry["conditions"]]


def extension(name: str) -> Manifest:
    """Return a filter that refers to a PluginConfig."""
    reference = {"group": "apisix.apache.org", "kind": "PluginConfig", "name": name}
    return {"type": "ExtensionRef", "extensionRef": reference}


def begin(stage: Stage) -> None:
    stage.start()
    stage.serve()
    stage.apply([CLASS, gateway(), http_route(stage.host)])
    stage.traffic.until_status(200, stage.host)


def test_a_policy_restricts_a_route_and_a_second_one_reports_the_conflict(stage: Stage) -> None:
    begin(stage)
    stage.apply(make("HTTPRoutePolicy", "a", targetRefs=[TARGET], priority=1, vars=[["http_x_beta", "==", "1"]]))
    stage.traffic.until_status(404, stage.host)
    stage.traffic.until_status(200, stage.host, headers={"X-Beta": "1"})
    stage.api.wait("HTTPRoutePolicy", "a", lambda item: accepted(item) == ["Accepted"], "it", namespace=stage.namespace)
    stage.apply(make("HTTPRoutePolicy", "b", targetRefs=[TARGET], priority=2))
    stage.api.wait(
        "HTTPRoutePolicy", "b", lambda item: accepted(item) == ["Conflicted"], "it", namespace=stage.namespace
    )
    stage.api.delete("HTTPRoutePolicy", "a", namespace=stage.namespace)
    stage.traffic.until_status(200, stage.host)
    stage.api.wait("HTTPRoutePolicy", "b", lambda item: accepted(item) == ["Accepted"], "it", namespace=stage.namespace)


def test_a_consumer_of_a_gateway_authenticates_with_its_key(stage: Stage) -> None:
    begin(stage)
    route = http_route(stage.host, filters=[extension("auth")])
    stage.apply(make("PluginConfig", "auth", plugins=[{"name": "key-auth", "config": {}}]))
    stage.apply(route)
    stage.traffic.until_status(401, stage.host)
    credential = {"type": "key-auth", "config": {"key": f"key-of-{stage.namespace}"}}
    stage.apply(make("Consumer", "client", gatewayRef={"name": "gw"}, credentials=[credential]))
    stage.traffic.until_status(200, stage.host, headers={"apikey": f"key-of-{stage.namespace}"})
    stage.api.wait("Consumer", "client", lambda item: "status" in (item or {}), "a status", namespace=stage.namespace)


def test_a_rule_without_backends_is_answered_by_its_plugins(stage: Stage) -> None:
    begin(stage)
    moved = {"uri": "/new", "ret_code": 302}
    stage.apply(make("PluginConfig", "moved", plugins=[{"name": "redirect", "config": moved}]))
    stage.apply(http_route(stage.host, filters=[extension("moved")], backendRefs=[]))
    assert stage.traffic.until_status(302, stage.host).headers["location"] == "/new"
    stage.apply(make("PluginConfig", "auth", plugins=[{"name": "key-auth", "config": {}}]))
    stage.apply(http_route(stage.host, filters=[extension("auth"), extension("moved")], backendRefs=[]))
    stage.traffic.until_status(401, stage.host)
    stage.apply(make("PluginConfig", "moved", plugins=[{"name": "redirect", "config": {**moved, "ret_code": 307}}]))
    stage.apply(make("PluginConfig", "auth", plugins=[{"name": "proxy-rewrite", "config": {"uri": "/x"}}]))
    stage.traffic.until_status(307, stage.host)
    stage.api.delete("PluginConfig", "auth", namespace=stage.namespace)
    stage.traffic.until_status(500, stage.host)


def test_a_plugin_gets_a_value_of_a_secret_and_its_rotation(stage: Stage) -> None:
    begin(stage)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}}
    source = {"valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}}
    config = {"headers": {"set": {"X-Token": source}}}
    stage.apply([{**secret, "stringData": {"token": "one"}}, http_route(stage.host, filters=[extension("token")])])
    stage.apply(make("PluginConfig", "token", plugins=[{"name": "proxy-rewrite", "config": config}]))
    stage.traffic.until_status(200, stage.host)
    stage.traffic.until(lambda answer: answer.received("x-token") == "one", stage.host)
    stage.apply({**secret, "stringData": {"token": "two"}})
    stage.traffic.until(lambda answer: answer.received("x-token") == "two", stage.host)


def test_settings_of_a_service_are_removed_with_the_crd_of_their_policy(stage: Stage) -> None:
    begin(stage)
    service = {"group": "", "kind": "Service", "name": "web"}
    stage.apply(
        make("BackendTrafficPolicy", "web", targetRefs=[service], passHost="rewrite", upstreamHost="inner.test")
    )
    stage.traffic.until(lambda answer: answer.received("host") == "inner.test", stage.host)
    extension_kinds.remove(stage.api)
    stage.traffic.until(lambda answer: answer.received("host") == stage.host, stage.host)
    extension_kinds.install(stage.api)
    stage.apply(
        make("BackendTrafficPolicy", "web", targetRefs=[service], passHost="rewrite", upstreamHost="inner.test")
    )
    stage.traffic.until(lambda answer: answer.received("host") == "inner.test", stage.host)
