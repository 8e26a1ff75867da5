"""Kinds of 2.x: policies, PluginConfigs, Consumers and GatewayProxies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.state.world import World
from tests.unit.translation.gateway.objects import CLASS, assessed, gateway, listener, of_parents, route, rule, verdicts
from tests.unit.translation.objects import OPTIONS, ingress, ingress_rule, make, secret, service, upstream
from tests.unit.translation.settling import bodies, problems, settle
from translation.core.options import Options

TCP = route(rule(), kind="TCPRoute", name="tcp", parentRefs=[{"name": "gw", "sectionName": "tcp"}])
HTTP = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "app"}
STREAM = {"group": "gateway.networking.k8s.io", "kind": "TCPRoute", "name": "tcp"}
SERVICE = {"group": "", "kind": "Service", "name": "web"}
INGRESS = {"group": "networking.k8s.io", "kind": "Ingress", "name": "ing"}


def served(*objects: JsonObject, options: Options = OPTIONS) -> World:
    return settle(CLASS, gateway(listener(), listener("tcp", 9000, "TCP")), service(), *objects, options=options)


def policy(kind: str, name: str, *targets: JsonObject, **spec: Any) -> JsonObject:
    found = make(kind, name, spec={"targetRefs": list(targets), **spec})
    found["metadata"]["creationTimestamp"] = f"2026-01-01T00:00:0{len(name)}Z"
    return found


def standings(found: World, kind: str, name: str) -> dict[str, str]:
    """Return ancestor → the reason of its condition Accepted, with `!` if it is False."""
    states = assessed(found, kind, name).parents
    return {
        f"{each.reference['kind']}/{each.reference['name']}": f"{'' if said.holds else '!'}{said.reason}"
        for each in states
        for said in each.verdicts
    }


def routes(found: World) -> list[Any]:
    return [body for key, body in sorted(bodies(found).items()) if key.startswith("routes/")]


# HTTPRoutePolicy.


def test_policy_of_a_rule_reaches_no_other_rule() -> None:
    target = {**HTTP, "sectionName": "one"}
    app = route(rule(name="one", matches=[{"path": {"value": "/a"}}]), rule(matches=[{"path": {"value": "/b"}}]))
    found = served(app, policy("HTTPRoutePolicy", "a", target, priority=2, vars=[["uri", "~~", "x"]]))
    assert standings(found, "HTTPRoutePolicy", "a") == {"Gateway/gw": "Accepted"}
    got = {body["uris"][0]: (["uri", "~~", "x"] in body["vars"], body["priority"] > 2**25) for body in routes(found)}
    assert got == {"/a": (True, True), "/b": (False, False)}


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"priority": 1}, "Accepted"),
        ({}, "Accepted"),
        ({"priority": 2}, "!Conflicted"),
        ({"priority": -1}, "!Invalid"),
        ({"vars": ["not a list"]}, "!Invalid"),
    ],
)
def test_oldest_policy_sets_the_priority(other: JsonObject, reason: str) -> None:
    app = route(rule())
    found = served(
        app, policy("HTTPRoutePolicy", "a", HTTP, priority=1), policy("HTTPRoutePolicy", "bb", HTTP, **other)
    )
    assert standings(found, "HTTPRoutePolicy", "a") == {"Gateway/gw": "Accepted"}
    assert standings(found, "HTTPRoutePolicy", "bb") == {"Gateway/gw": reason}
    # An invalid policy keeps the route from being published without its conditions.
    assert len(routes(found)) == (0 if reason == "!Invalid" else 1)


def test_a_rule_that_does_not_exist_is_reported() -> None:
    found = served(route(rule()), policy("HTTPRoutePolicy", "a", {**HTTP, "sectionName": "none"}))
    assert standings(found, "HTTPRoutePolicy", "a") == {"Gateway/gw": "!TargetNotFound"}
    assert problems(found)["HTTPRoutePolicy default/a"] == ["TargetNotFound"]


def test_policy_of_an_ingress_adds_conditions_and_priority() -> None:
    ing = ingress(ingress_rule())
    found = served(ing, policy("HTTPRoutePolicy", "a", INGRESS, priority=7, vars=[["http_x", "==", "1"]]))
    assert standings(found, "HTTPRoutePolicy", "a") == {"Ingress/ing": "Accepted"}
    (body,) = routes(found)
    assert (body["priority"], body["vars"]) == (7, [["http_x", "==", "1"]])


def test_policies_for_foreign_objects_are_ignored() -> None:
    foreign = route(rule(), name="foreign", parentRefs=[{"name": "another"}])
    found = served(foreign, policy("HTTPRoutePolicy", "a", {**HTTP, "name": "foreign"}, {**HTTP, "name": "absent"}))
    assert ObjectKey("HTTPRoutePolicy", "default", "a") not in found.reports


def test_a_target_of_another_group_is_ignored() -> None:
    found = served(route(rule()), policy("HTTPRoutePolicy", "a", {**HTTP, "group": "example.org"}, priority=1))
    assert ObjectKey("HTTPRoutePolicy", "default", "a") not in found.reports
    assert routes(found)[0]["priority"] < 2**24


def test_no_more_than_sixteen_policies_apply() -> None:
    every = [policy("HTTPRoutePolicy", f"p{number:02}", HTTP, vars=[["uri", "~~", "x"]]) for number in range(17)]
    found = served(route(rule()), *every)
    (body,) = routes(found)
    assert body["vars"].count(["uri", "~~", "x"]) == 16
    assert standings(found, "HTTPRoutePolicy", "p15") == {"Gateway/gw": "Accepted"}
    assert standings(found, "HTTPRoutePolicy", "p16") == {"Gateway/gw": "!Conflicted"}


# L4RoutePolicy.


def test_oldest_policy_adds_plugins_to_a_stream_route() -> None:
    plugins = [{"name": "ip-restriction", "config": {"whitelist": ["192.0.2.1"]}}]
    found = served(TCP, policy("L4RoutePolicy", "a", STREAM, plugins=plugins), policy("L4RoutePolicy", "bb", STREAM))
    (body,) = (body for key, body in bodies(found).items() if key.startswith("stream_routes"))
    assert body["plugins"] == {"ip-restriction": {"whitelist": ["192.0.2.1"]}}
    assert standings(found, "L4RoutePolicy", "a") == {"Gateway/gw": "Accepted"}
    assert standings(found, "L4RoutePolicy", "bb") == {"Gateway/gw": "!Conflicted"}


@pytest.mark.parametrize("wrong", [{"plugins": "no list"}, {"targetRefs": [{**STREAM, "sectionName": "rule"}]}])
def test_an_invalid_policy_keeps_a_stream_route_from_being_published(wrong: JsonObject) -> None:
    found = served(TCP, policy("L4RoutePolicy", "a", STREAM, **wrong))
    assert standings(found, "L4RoutePolicy", "a") == {"Gateway/gw": "!Invalid"}
    assert not any(key.startswith("stream_routes") for key in bodies(found))


# BackendTrafficPolicy.


def test_an_invalid_policy_leaves_the_upstream_unchanged() -> None:
    broken = policy("BackendTrafficPolicy", "a", SERVICE, loadbalancer={"type": "chash"})
    found = served(route(rule()), broken)
    assert standings(found, "BackendTrafficPolicy", "a") == {"Service/web": "!Invalid"}
    assert not any(key.startswith("upstreams") for key in bodies(found))


def test_settings_of_an_upstream_take_precedence_over_a_policy() -> None:
    found = served(route(rule()), upstream(retries=1), policy("BackendTrafficPolicy", "a", SERVICE, retries=2))
    assert standings(found, "BackendTrafficPolicy", "a") == {"Service/web": "!Conflicted"}
    (body,) = (body for key, body in bodies(found).items() if key.startswith("upstreams"))
    assert body["retries"] == 1


def test_scheme_of_a_grpc_route_overrides_that_of_a_policy() -> None:
    found = served(route(rule(), kind="GRPCRoute"), policy("BackendTrafficPolicy", "a", SERVICE, scheme="http"))
    (body,) = (body for key, body in bodies(found).items() if key.startswith("upstreams"))
    assert body["scheme"] == "grpc"


def test_seventeenth_policy_of_a_service_is_refused() -> None:
    names = [f"p{number:02}" for number in range(17)]
    ports = [{"name": name, "port": 80 + number} for number, name in enumerate(names)]
    every = [policy("BackendTrafficPolicy", name, {**SERVICE, "sectionName": name}) for name in names]
    found = settle(CLASS, gateway(), service(ports=ports), route(rule()), *every)
    assert standings(found, "BackendTrafficPolicy", "p15") == {"Service/web": "Accepted"}
    assert standings(found, "BackendTrafficPolicy", "p16") == {"Service/web": "!Conflicted"}


# PluginConfig and Consumer.


def extension(kind: str = "PluginConfig", name: str = "auth") -> JsonObject:
    return {"type": "ExtensionRef", "extensionRef": {"group": "apisix.apache.org", "kind": kind, "name": name}}


def test_a_filter_refers_to_a_plugin_config_of_either_kind() -> None:
    configs = [
        make(kind, "auth", spec={"plugins": [{"name": "cors"}]}) for kind in ("PluginConfig", "ApisixPluginConfig")
    ]
    for kind in ("PluginConfig", "ApisixPluginConfig"):
        found = served(route(rule(extension(kind))), *configs)
        (body,) = routes(found)
        assert bodies(found)[f"plugin_configs/{body['plugin_config_id']}"]["name"].startswith("PluginConfig_") == (
            kind == "PluginConfig"
        )


def test_a_rule_with_several_plugin_configs_has_the_plugins_of_all() -> None:
    first = make("PluginConfig", "auth", spec={"plugins": [{"name": "cors"}, {"name": "key-auth"}]})
    second = make("ApisixPluginConfig", "more", spec={"plugins": [{"name": "cors", "config": {"max_age": 9}}]})
    header = {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"set": [{"name": "a", "value": "b"}]}}
    found = served(route(rule(header, extension(), extension("ApisixPluginConfig", "more"))), first, second)
    assert of_parents(found)[0]["ResolvedRefs"] == "ResolvedRefs"
    (body,) = routes(found)
    assert body["plugins"] == {
        "cors": {"max_age": 9},
        "key-auth": {},
        "response-rewrite": {"headers": {"set": {"a": "b"}}},
    }
    assert "plugin_config_id" not in body


@pytest.mark.parametrize("more", [[], [{"name": "cors"}, {}], [{"name": "serverless-pre-function"}]])
def test_a_rule_is_closed_if_one_of_several_plugin_configs_cannot_be_used(more: list[JsonObject]) -> None:
    configs = [make("PluginConfig", "auth", spec={"plugins": [{"name": "key-auth"}]})]
    if more:
        configs.append(make("PluginConfig", "more", spec={"plugins": more}))
    options = replace(OPTIONS, code_plugins="refuse")
    found = served(route(rule(extension(), extension(name="more"))), *configs, options=options)
    assert of_parents(found)[0]["ResolvedRefs"] == ("!UnsupportedValue" if more else "!BackendNotFound")
    (body,) = routes(found)
    assert body["plugins"] == {"fault-injection": {"abort": {"http_status": 500}}}
    assert "upstream_id" not in body


@pytest.mark.parametrize("filters", [[extension()], [extension(), extension(name="more")]])
def test_a_rule_whose_plugins_respond_needs_no_backend(filters: list[JsonObject]) -> None:
    names = [each["extensionRef"]["name"] for each in filters]
    configs = [make("PluginConfig", name, spec={"plugins": [{"name": "mocking"}]}) for name in names]
    found = served(route({"filters": filters}), *configs)
    assert of_parents(found)[0] == {"Accepted": "Accepted", "ResolvedRefs": "ResolvedRefs"}
    (body,) = routes(found)
    assert body["plugins"] == ({} if len(filters) == 1 else {"mocking": {}})
    assert "upstream_id" not in body


def test_a_backend_that_does_not_exist_results_in_500_although_plugins_may_respond() -> None:
    config = make("PluginConfig", "auth", spec={"plugins": [{"name": "mocking"}]})
    found = served(route(rule(extension(), service="absent")), config)
    (body,) = routes(found)
    assert body["plugins"] == {"fault-injection": {"abort": {"http_status": 500}}}


def test_a_missing_plugin_config_results_in_500() -> None:
    found = served(route(rule(extension())))
    assert of_parents(found)[0]["ResolvedRefs"] == "!BackendNotFound"
    (body,) = routes(found)
    assert body["plugins"]["fault-injection"]["abort"]["http_status"] == 500


def test_an_invalid_plugin_config_publishes_nothing() -> None:
    found = served(make("PluginConfig", "auth", spec={"plugins": [{}]}))
    assert problems(found)["PluginConfig default/auth"] == ["InvalidSpec"]
    assert not any(key.startswith("plugin_configs") for key in bodies(found))


def consumer(*credentials: JsonObject, **spec: Any) -> JsonObject:
    return make("Consumer", "c", spec={"gatewayRef": {"name": "gw"}, "credentials": list(credentials), **spec})


def test_a_consumer_has_credentials_and_plugins() -> None:
    keys = {"type": "key-auth", "config": {"key": "one"}}
    basic = {"type": "basic-auth", "secretRef": {"name": "s"}, "config": {"username": "u"}}
    found = served(consumer(keys, basic, plugins=[{"name": "cors"}]), secret("s", password="p"))
    want = {"key-auth": {"key": "one"}, "basic-auth": {"username": "u", "password": "p"}, "cors": {}}
    assert bodies(found)["consumers/default_c"]["plugins"] == want
    assert verdicts(found, "Consumer", "c") == {"Accepted": "Accepted", "Programmed": "Programmed"}


@pytest.mark.parametrize(
    ("credentials", "code"),
    [
        ([{"type": "key-auth", "secretRef": {"name": "none"}}], "SecretNotFound"),
        ([{"type": "key-auth", "secretRef": {"name": "s", "namespace": "far"}}], "SecretNotFound"),
        ([{"type": "key-auth"}, {"type": "key-auth"}], "UnsupportedValue"),
        ([{"type": "other"}], "InvalidSpec"),
    ],
)
def test_a_wrong_credential_publishes_no_consumer(credentials: list[JsonObject], code: str) -> None:
    found = served(consumer(*credentials), secret("s", namespace="far", key="k"))
    assert problems(found)["Consumer default/c"] == [code]
    assert verdicts(found, "Consumer", "c") == {"Accepted": "!Invalid", "Programmed": "!Invalid"}
    assert "consumers/default_c" not in bodies(found)


def test_a_secret_that_is_not_text_or_too_large_is_refused() -> None:
    held = secret("s")
    held["data"] = {"key": "/w=="}
    found = served(consumer({"type": "key-auth", "secretRef": {"name": "s"}}), held)
    assert problems(found)["Consumer default/c"] == ["InvalidSecret"]
    found = served(consumer({"type": "key-auth", "secretRef": {"name": "s"}}), secret("s", key="k" * 70_000))
    assert problems(found)["Consumer default/c"] == ["TooLarge"]


def test_a_grant_lets_a_consumer_use_a_secret_of_another_namespace() -> None:
    source = {"group": "apisix.apache.org", "kind": "Consumer", "namespace": "default"}
    grant = make(
        "ReferenceGrant", "g", namespace="far", spec={"from": [source], "to": [{"group": "", "kind": "Secret"}]}
    )
    wanted = consumer({"type": "key-auth", "secretRef": {"name": "s", "namespace": "far"}})
    found = served(wanted, secret("s", namespace="far", key="k"), grant)
    assert bodies(found)["consumers/default_c"]["plugins"] == {"key-auth": {"key": "k"}}


@pytest.mark.parametrize("reference", [{"name": "other"}, {"name": "gw", "kind": "Service"}, {}, {"name": 1}])
def test_a_consumer_of_another_gateway_is_ignored(reference: JsonObject) -> None:
    found = served(consumer({"type": "key-auth", "config": {"key": "one"}}, gatewayRef=reference))
    assert ObjectKey("Consumer", "default", "c") not in found.reports


def test_plugins_that_would_replace_those_of_routes_are_refused_on_consumers() -> None:
    options = replace(OPTIONS, plugins="reviewed")
    wanted = consumer(plugins=[{"name": "proxy-rewrite", "config": {"uri": "/"}}])
    found = settle(CLASS, gateway(), wanted, options=options)
    assert problems(found)["Consumer default/c"] == ["PluginRefused"]


# GatewayProxy.


def proxied(spec: JsonObject | None, **reference: str) -> World:
    wanted = {"group": "apisix.apache.org", "kind": "GatewayProxy", "name": "p", **reference}
    entry = gateway(infrastructure={"parametersRef": wanted})
    return settle(CLASS, entry, *([make("GatewayProxy", "p", spec=spec)] if spec is not None else []))


def test_addresses_of_a_gateway_proxy_are_those_of_the_gateway() -> None:
    found = proxied({"statusAddress": ["192.0.2.1", "gw.example.org", "192.0.2.1"]})
    assert verdicts(found, "Gateway", "gw")["Accepted"] == "Accepted"
    want = (("IPAddress", "192.0.2.1"), ("Hostname", "gw.example.org"))
    assert assessed(found, "Gateway", "gw").addresses == want


def test_a_gateway_shows_the_addresses_of_the_service_that_its_gateway_proxy_publishes() -> None:
    wanted = {"group": "apisix.apache.org", "kind": "GatewayProxy", "name": "p"}
    status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    balancer = {**service("lb", type="LoadBalancer"), "status": status}
    proxy = make("GatewayProxy", "p", spec={"publishService": "lb"})
    found = settle(CLASS, gateway(infrastructure={"parametersRef": wanted}), balancer, proxy)
    assert assessed(found, "Gateway", "gw").addresses == (("IPAddress", "192.0.2.1"),)


@pytest.mark.parametrize(
    ("spec", "reference"),
    [
        (None, {}),
        ({}, {"kind": "ConfigMap", "group": ""}),
        ({"plugins": [{"name": "cors", "enabled": True}]}, {}),
        ({"pluginMetadata": {"a": {}}}, {}),
        ({"statusAddress": 1}, {}),
    ],
)
def test_parameters_that_cannot_be_used_are_refused(spec: JsonObject | None, reference: dict[str, str]) -> None:
    found = proxied(spec, **reference)
    assert verdicts(found, "Gateway", "gw") == {"Accepted": "!InvalidParameters", "Programmed": "!Invalid"}


def test_disabled_plugins_of_a_gateway_proxy_do_not_matter() -> None:
    found = proxied({"plugins": [{"name": "cors", "enabled": False}], "provider": {"type": "ControlPlane"}})
    assert verdicts(found, "Gateway", "gw") == {"Accepted": "Accepted", "Programmed": "Programmed"}
