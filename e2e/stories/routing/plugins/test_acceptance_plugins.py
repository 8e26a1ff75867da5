"""Every plugin that 1.8's own tests used: unchanged at the gateway, removed if disabled, removed if deleted."""

from collections.abc import Mapping
from typing import Any

from e2e.cluster.client import Manifest, wait_until
from e2e.everything import custom
from e2e.scene import Scene, rule

FUNCTION = "return function(conf, ctx) end"
PLUGINS: dict[str, dict[str, Any]] = {
    "api-breaker": {"break_response_code": 502, "unhealthy": {"http_statuses": [505], "failures": 2}},
    "basic-auth": {},
    "client-control": {"max_body_size": 1024},
    "consumer-restriction": {"whitelist": ["jack"]},
    "cors": {"allow_origins": "https://a.example.org"},
    "csrf": {"key": "not-a-secret"},
    "echo": {"body": "said"},
    "fault-injection": {"abort": {"http_status": 418}},
    "hmac-auth": {},
    "ip-restriction": {"whitelist": ["192.0.2.0/24"]},
    "jwt-auth": {},
    "key-auth": {"header": "X-Key"},
    "limit-count": {"count": 2, "time_window": 60, "rejected_code": 503, "key": "remote_addr"},
    "proxy-rewrite": {"uri": "/rewritten"},
    "redirect": {"uri": "/elsewhere", "ret_code": 308},
    "referer-restriction": {"whitelist": ["a.example.org"]},
    "request-id": {"header_name": "X-Id"},
    "request-validation": {"header_schema": {"type": "object", "required": ["x-needed"]}},
    "response-rewrite": {"status_code": 205},
    "serverless-post-function": {"functions": [FUNCTION]},
    "serverless-pre-function": {"phase": "rewrite", "functions": [FUNCTION]},
    "uri-blocker": {"block_rules": ["/blocked"]},
    "wolf-rbac": {"server": "http://192.0.2.1:10080", "appid": "restful"},
}
"""Without two plugins.

server-info is disabled in a default APISIX, and the development gateway does not support ldap-auth, whose record is in
the golden case `route-authentication-ldap-auth`.
"""


def rules(scene: Scene, **more: Any) -> list[Manifest]:
    """Return a rule for each plugin; without `enable`, the plugins are disabled."""
    return [
        rule(name, {"hosts": [scene.host], "paths": [f"/{name}"]}, service="web")
        | ({"plugins": [{"name": name, "config": config, **more}]} if more else {})
        for name, config in PLUGINS.items()
    ]


def plugins(scene: Scene) -> dict[str, Mapping[str, Any]]:
    """Return the plugins of each route."""
    begin = f"{scene.namespace}_web_"
    found = [each for each in scene.gateway.records("routes").values() if each["name"].startswith(begin)]
    return {each["name"].removeprefix(begin): each.get("plugins", {}) for each in found}


def wait_plugins(scene: Scene, want: Mapping[str, Mapping[str, Any]]) -> None:
    wait_until(lambda: plugins(scene), lambda got: got == want, "the plugins of every route")


def test_plugins_of_a_rule_are_at_the_gateway_as_written_while_enabled(scene: Scene) -> None:
    scene.serve("web")
    as_written = {name: {name: config} for name, config in PLUGINS.items()}
    nothing: dict[str, Mapping[str, Any]] = {name: {} for name in PLUGINS}
    scene.route("web", *rules(scene, enable=True))
    wait_plugins(scene, as_written)
    scene.route("web", *rules(scene, enable=False))
    wait_plugins(scene, nothing)
    scene.route("web", *rules(scene, enable=True))
    wait_plugins(scene, as_written)
    scene.route("web", *rules(scene))
    wait_plugins(scene, nothing)


def test_plugins_of_a_plugin_config_are_at_the_gateway_as_written_while_enabled(scene: Scene) -> None:
    def until(want: Mapping[str, Any]) -> None:
        scene.wait_record("plugin_configs", "all", lambda got: (got or {}).get("plugins") == want, "to be as written")

    for enable, want in ((True, PLUGINS), (False, {}), (True, PLUGINS)):
        listed = [{"name": name, "enable": enable, "config": config} for name, config in PLUGINS.items()]
        scene.apply("ApisixPluginConfig", "all", spec={"plugins": listed})
        until(want)


def test_a_stream_route_has_its_plugins(scene: Scene) -> None:
    scene.serve("web")
    config = {"protocol_name": "MQTT", "protocol_level": 4}
    stream = {
        "name": "mqtt",
        "protocol": "TCP",
        "match": {"ingressPort": 9100},
        "backend": {"serviceName": "web", "servicePort": 80},
        "plugins": [{"name": "mqtt-proxy", "enable": True, "config": config}],
    }
    scene.apply("ApisixRoute", "stream", spec=custom("ApisixRoute", "stream", stream=[stream])["spec"])
    scene.wait_synced("ApisixRoute", "stream")
    found = [each.get("plugins") for each in scene.gateway.records("stream_routes").values()]
    assert {"mqtt-proxy": config} in found
