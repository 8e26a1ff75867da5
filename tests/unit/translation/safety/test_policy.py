"""The last policy: objects with a record that is not safe are published, and the record is closed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.state.world import World
from tests.unit.translation.objects import OPTIONS, ingress, make, route, rule, service
from tests.unit.translation.settling import bodies, settle

CLOSED: JsonObject = {"fault-injection": {"abort": {"http_status": 503}}}
LEAVES = {"name": "proxy-rewrite", "enable": True, "config": {"regex_uri": ["^/api(.*)", "$1"]}}


def reported(found: World) -> list[tuple[str, str, str]]:
    return [
        (str(owner), problem.code, problem.severity)
        for owner, report in found.reports.items()
        for problem in report.problems
    ]


def plugins_of(found: World, kind: str) -> dict[str, JsonObject]:
    every = bodies(found)
    return {str(body["name"]): body.get("plugins", {}) for path, body in every.items() if path.startswith(kind)}


def test_a_rule_that_lets_clients_choose_a_host_is_closed_and_the_others_are_served() -> None:
    found = settle(service(), route(rule("good"), rule("bad", plugins=[LEAVES])))
    got = plugins_of(found, "routes")
    assert got == {"default_route_good": {}, "default_route_bad": CLOSED}
    assert reported(found) == [("ApisixRoute default/route", "UnsafeRecord", "degraded")]


def test_a_plugin_config_that_lets_clients_choose_a_host_closes_its_routes() -> None:
    config = make("ApisixPluginConfig", "pc", spec={"plugins": [{"name": "key-auth", "enable": True}, LEAVES]})
    found = settle(service(), config, route(rule("a", plugin_config_name="pc")))
    assert list(plugins_of(found, "plugin_configs").values()) == [{"key-auth": {}, **CLOSED}]
    assert reported(found) == [("ApisixPluginConfig default/pc", "UnsafeRecord", "degraded")]


def test_an_upstream_whose_weights_occupy_a_gateway_has_no_nodes() -> None:
    nodes = [{"type": "Domain", "name": f"{name}.test", "weight": weight} for name, weight in (("a", 10**8), ("b", 1))]
    upstream = make("ApisixUpstream", "ext", spec={"externalNodes": nodes})
    found = settle(upstream, route(rule("a", backends=[], upstreams=[{"name": "ext"}])), options=OPTIONS)
    upstreams = [body for path, body in bodies(found).items() if path.startswith("upstreams")]
    assert [body["nodes"] for body in upstreams] == [[]]
    assert ("ApisixUpstream default/ext", "UnsafeRecord", "degraded") in reported(found)


@pytest.mark.parametrize("value", ["X-A:$env://HOME", "X-A: $Env://HOME", "$env ://HOME", "$secret://x:y"])
@pytest.mark.parametrize("name", ["response-rewrite-set-header", "response-rewrite-add-header"])
def test_references_that_come_together_in_a_header_are_refused(name: str, value: str) -> None:
    prefix = "k8s.apisix.apache.org/"
    given = {f"{prefix}{name}": value, f"{prefix}enable-response-rewrite": "true"}
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}
    raw = ingress({"host": "a.example", "http": paths}, annotations=given)
    found = settle(service(), raw, options=replace(OPTIONS, secret_references="refuse"))
    held = any(code == "SecretReferenceRefused" for _, code, _ in reported(found))
    assert not held or all(plugins == CLOSED for plugins in plugins_of(found, "routes").values())
    # A header named `$env` whose value is `//HOME` is not a reference: only texts are replaced, never names.
    assert held or (name.endswith("set-header") and value.startswith("$env :"))
