"""Stories of plugins: those of a rule, with Secrets and authentication, and those of an ApisixPluginConfig."""

from typing import Any

import pytest

from e2e.cluster.client import Manifest
from e2e.devgateway.process import DevGateway
from e2e.scene import Scene, plugin, rule, websocket


def with_plugins(scene: Scene, *plugins: Manifest, **fields: Any) -> Manifest:
    """Apply the route `web` from the whole host to the Service `web`, with plugins."""
    return scene.route("web", rule("all", {"hosts": [scene.host], "paths": ["/*"]}, plugins=list(plugins), **fields))


def plugin_config(scene: Scene, name: str, *plugins: Manifest, namespace: str = "") -> Manifest:
    return scene.apply("ApisixPluginConfig", name, namespace=namespace, spec={"plugins": list(plugins)})


def header_set(value: str) -> Manifest:
    """Return a plugin that sets a header of every response."""
    return plugin("response-rewrite", {"headers": {"set": {"X-Mark": value}}})


def until_mark(scene: Scene, value: str) -> None:
    scene.traffic.until(lambda answer: answer.headers.get("x-mark", "") == value, scene.host)


def test_requests_are_rewritten_before_they_reach_the_pod(scene: Scene) -> None:
    scene.serve("web")
    config = {
        "regex_uri": ["^/api/(.*)", "/v2/$1"],
        "host": "inside.example.org",
        "headers": {"set": {"X-Version": "2"}, "remove": ["X-Debug"]},
    }
    with_plugins(scene, plugin("proxy-rewrite", config))
    scene.until_pod("web")
    seen = scene.send("/api/users?page=3", headers={"X-Debug": "1"}).seen
    assert (seen["path"], seen["query"], seen["headers"]["host"]) == ("/v2/users", "page=3", "inside.example.org")
    assert seen["headers"]["x-version"] == "2"
    assert "x-debug" not in seen["headers"]


def test_responses_are_rewritten(scene: Scene) -> None:
    scene.serve("web")
    with_plugins(scene, plugin("response-rewrite", {"status_code": 201, "body": "rewritten", "headers": {"X-A": "b"}}))
    # Without a pod, the gateway's own response would be rewritten.
    answer = scene.until_pod("web")
    assert (answer.status, answer.text, answer.headers["x-a"]) == (201, "rewritten", "b")


def test_a_redirect_needs_no_pod(scene: Scene) -> None:
    scene.serve("web")
    with_plugins(scene, plugin("redirect", {"uri": "/new$uri", "ret_code": 308}))
    answer = scene.until_status(308, "/old")
    assert (answer.headers["location"], answer.pod) == ("/new/old", "")


def test_plugins_respond_if_a_rule_has_no_backend(scene: Scene) -> None:
    match = {"hosts": [scene.host], "paths": ["/*"]}
    config = {"abort": {"http_status": 418, "body": "short"}}
    scene.route("web", {"name": "all", "match": match, "plugins": [plugin("fault-injection", config)]})
    assert scene.until_status(418).text == "short"
    scene.wait_synced("ApisixRoute", "web")


def test_a_disabled_plugin_does_nothing_and_a_removed_one_stops(scene: Scene) -> None:
    scene.serve("web")
    with_plugins(scene, header_set("on"))
    until_mark(scene, "on")
    with_plugins(scene, header_set("on") | {"enable": False})
    until_mark(scene, "")
    with_plugins(scene, header_set("again"))
    until_mark(scene, "again")
    with_plugins(scene)
    until_mark(scene, "")
    assert "plugins" not in (scene.record("routes", "web_all") or {})


def test_flat_keys_of_a_secret_override_the_configuration_and_are_followed(scene: Scene) -> None:
    scene.serve("web")
    scene.secret("answer", body="from the Secret")
    with_plugins(scene, plugin("echo", {"body": "from the route", "after_body": "!"}, secretRef="answer"))
    scene.traffic.until(lambda answer: answer.text == "from the Secret!", scene.host)
    scene.secret("answer", body="changed")
    scene.traffic.until(lambda answer: answer.text == "changed!", scene.host)
    scene.wait_synced("ApisixRoute", "web")


def test_dotted_keys_of_a_secret_set_nested_configuration(scene: Scene) -> None:
    scene.serve("web")
    scene.apply(
        "Secret", "marks", stringData={"headers.X-Mark": "first", "headers.X-Other": "other", "before_body": ">"}
    )
    with_plugins(scene, plugin("echo", {"headers": {"X-Plain": "plain"}}, secretRef="marks"))
    until_mark(scene, "first")
    got = (scene.record("routes", "web_all") or {})["plugins"]["echo"]
    assert got == {"headers": {"X-Plain": "plain", "X-Mark": "first", "X-Other": "other"}, "before_body": ">"}
    scene.api.patch("Secret", "marks", {"stringData": {"headers.X-Mark": "second"}}, namespace=scene.namespace)
    until_mark(scene, "second")


def test_a_secret_alone_configures_a_plugin(scene: Scene) -> None:
    scene.serve("web")
    scene.secret("answer", body="all of it")
    with_plugins(scene, plugin("echo", secretRef="answer"))
    scene.traffic.until(lambda answer: answer.text == "all of it", scene.host)


def test_a_route_waits_for_its_secret_and_is_kept_after_its_deletion(scene: Scene) -> None:
    scene.serve("web")
    with_plugins(scene, plugin("echo", {}, secretRef="answer"))
    scene.wait_aborted("ApisixRoute", "web", "plugins[0].secretRef", f"Secret {scene.namespace}/answer does not exist")
    assert scene.send().status == 404
    scene.secret("answer", body="here")
    scene.traffic.until(lambda answer: answer.text == "here", scene.host)
    scene.wait_synced("ApisixRoute", "web")
    scene.delete("Secret", "answer")
    scene.wait_aborted("ApisixRoute", "web", f"Secret {scene.namespace}/answer does not exist")
    assert scene.send().text == "here"


def test_key_authentication_admits_only_consumers(scene: Scene) -> None:
    if not isinstance(scene.gateway, DevGateway):
        pytest.skip("the consumer is put past the controller, which only the development gateway is asked for")
    scene.serve("web")
    name = f"user_{scene.namespace.replace('-', '_')}"
    key = f"key-of-{scene.namespace}"
    scene.gateway.put(f"/consumers/{name}", {"username": name, "plugins": {"key-auth": {"key": key}}})
    try:
        authentication = {"enable": True, "type": "keyAuth", "keyAuth": {"header": "X-Token"}}
        with_plugins(scene, authentication=authentication)
        assert "Missing API key" in scene.until_status(401).text
        assert scene.send(headers={"X-Token": "wrong"}).status == 401
        assert scene.until_pod("web", headers={"X-Token": key}).status == 200
        with_plugins(scene, authentication={**authentication, "enable": False})
        scene.until_pod("web")
    finally:
        scene.gateway.call("DELETE", f"/consumers/{name}")


def test_a_traffic_split_of_the_user_sends_a_header_elsewhere_by_priority(scene: Scene) -> None:
    scene.serve("stable", "canary")
    match = {"hosts": [scene.host], "paths": ["/*"]}
    rules = [{"match": [{"vars": [["http_x_canary", "==", "always"]]}], "weighted_upstreams": [{"weight": 1}]}]
    beta = {"scope": "Header", "name": "X-Canary"}
    scene.route(
        "web",
        rule("stable", match, "stable"),
        rule(
            "canary",
            {**match, "exprs": [{"subject": beta, "op": "RegexMatch", "value": ".+"}]},
            "canary",
            priority=1,
            plugins=[plugin("traffic-split", {"rules": rules})],
        ),
    )
    scene.wait_live("web")
    assert scene.traffic.counts(20, scene.host) == {"stable": 20}
    assert scene.traffic.counts(20, scene.host, headers={"X-Canary": "always"}) == {"canary": 20}
    got = (scene.record("routes", "web_canary") or {})["plugins"]["traffic-split"]
    assert got["rules"][0]["weighted_upstreams"] == [{"weight": 1}]


def test_a_user_defined_traffic_split_may_have_inline_nodes(scene: Scene) -> None:
    scene.serve("stable")
    canary = scene.pods.create("canary")
    nodes = [{"host": canary.address, "port": 80, "weight": 1}]
    split = {
        "match": [{"vars": [["http_x_canary", "==", "1"]]}],
        "weighted_upstreams": [{"upstream": {"type": "roundrobin", "nodes": nodes}, "weight": 1}],
    }
    match = {"hosts": [scene.host], "paths": ["/*"]}
    scene.route("web", rule("all", match, "stable", plugins=[plugin("traffic-split", {"rules": [split]})]))
    scene.wait_live("web")
    assert scene.traffic.counts(20, scene.host) == {"stable": 20}
    assert scene.traffic.counts(20, scene.host, headers={"X-Canary": "1"}) == {"canary": 20}


def test_a_plugin_config_is_applied_updated_and_may_be_created_late(scene: Scene) -> None:
    scene.serve("web")
    with_plugins(scene, plugin_config_name="marks")
    scene.wait_aborted("ApisixRoute", "web", f"ApisixPluginConfig {scene.namespace}/marks does not exist")
    assert scene.send().status == 404
    plugin_config(scene, "marks", header_set("first"))
    until_mark(scene, "first")
    scene.wait_synced("ApisixRoute", "web")
    scene.wait_synced("ApisixPluginConfig", "marks")
    plugin_config(scene, "marks", header_set("second"))
    until_mark(scene, "second")
    plugin_config(scene, "marks", header_set("second") | {"enable": False}, plugin("echo", {"body": "all"}))
    scene.traffic.until(lambda answer: (answer.text, answer.headers.get("x-mark")) == ("all", None), scene.host)
    found = scene.record("plugin_configs", "marks") or {}
    assert found["plugins"] == {"echo": {"body": "all"}}
    assert (scene.record("routes", "web_all") or {})["plugin_config_id"] == found["id"]


def test_a_plugin_config_follows_its_secret(scene: Scene) -> None:
    scene.serve("web")
    scene.secret("answer", body="one")
    plugin_config(scene, "answers", plugin("echo", {}, secretRef="answer"))
    with_plugins(scene, plugin_config_name="answers")
    scene.traffic.until(lambda answer: answer.text == "one", scene.host)
    scene.secret("answer", body="two")
    scene.traffic.until(lambda answer: answer.text == "two", scene.host)


def test_plugins_of_the_rule_override_those_of_its_plugin_config(scene: Scene) -> None:
    scene.serve("web")
    plugin_config(scene, "marks", header_set("config"), plugin("echo", {"body": "config"}))
    with_plugins(scene, header_set("rule"), plugin_config_name="marks")
    until_mark(scene, "rule")
    assert scene.send().text == "config"


def test_a_plugin_config_of_another_namespace_is_used(scene: Scene) -> None:
    scene.serve("web")
    with scene.api.namespace() as other:
        plugin_config(scene, "marks", header_set("other"), namespace=other)
        plugin_config(scene, "marks", header_set("own"))
        with_plugins(scene, plugin_config_name="marks", plugin_config_namespace=other)
        until_mark(scene, "other")
        plugin_config(scene, "marks", header_set("changed"), namespace=other)
        until_mark(scene, "changed")
        with_plugins(scene, plugin_config_name="marks")
        until_mark(scene, "own")


def test_a_plugin_config_deleted_while_it_is_referred_to_keeps_guarding(scene: Scene) -> None:
    scene.serve("web")
    plugin_config(scene, "guard", plugin("ip-restriction", {"blacklist": ["127.0.0.0/8"]}))
    with_plugins(scene, plugin_config_name="guard")
    scene.until_status(403)
    scene.delete("ApisixPluginConfig", "guard")
    scene.wait_aborted("ApisixRoute", "web", f"ApisixPluginConfig {scene.namespace}/guard does not exist")
    assert scene.send().status == 403
    assert scene.names("plugin_configs") == {"guard"}
    with_plugins(scene)
    scene.until_pod("web")
    scene.wait_record("plugin_configs", "guard", lambda found: found is None, "to be gone")


def test_a_websocket_is_forwarded_if_the_rule_enables_it(scene: Scene) -> None:
    scene.serve("web")
    on, off = ({"hosts": [scene.host], "paths": [path]} for path in ("/ws/on", "/ws/off"))
    scene.route("web", rule("on", on, websocket=True), rule("off", off))
    scene.wait_live("web")
    assert websocket(scene, "/ws/on", "hello") == "hello"
    assert websocket(scene, "/ws/off", "hello") == "refused"


def test_without_a_webhook_the_gateway_reports_an_unknown_plugin(scene: Scene) -> None:
    scene.serve("web")
    with_plugins(scene, header_set("one"))
    until_mark(scene, "one")
    with_plugins(scene, plugin("promtheus", {}))
    scene.wait_aborted("ApisixRoute", "web", "unknown plugin [promtheus]")
    until_mark(scene, "one")
    with_plugins(scene, header_set("two"))
    until_mark(scene, "two")
    scene.wait_synced("ApisixRoute", "web")
