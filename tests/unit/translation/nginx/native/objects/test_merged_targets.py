"""HTTPRoutes for hosts of ingress-nginx: one action for each path."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.translation.nginx.native.written import kinds, notes, served, written
from tests.unit.translation.nginx.objects import SERVICE, ingress
from translation.nginx.native.write import Manifests


def routes(*objects: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the route records of the manifests with their plugins; the guards of a Gateway are not among them."""
    outcome = served(written("httproute", *objects))
    assert [str(problem) for _, problem in outcome.problems if problem.severity == "error"] == []
    configs = {each.key.id: each.body["plugins"] for each in outcome.records if each.key.kind == "plugin_configs"}
    bodies = [each.body for each in outcome.records if each.key.kind == "routes" and "upstream_id" in each.body]
    return [{**body, "plugins": configs.get(body.get("plugin_config_id", ""), {})} for body in bodies]


def test_a_path_has_what_the_provider_adds_by_default() -> None:
    got = routes(ingress("web", ("/foo", "Prefix")))

    (body,) = (body for body in got if "/foo/*" in body["uris"])
    assert body["plugins"]["client-control"] == {"max_body_size": 1048576}
    assert body["plugins"]["proxy-rewrite"]["headers"]["set"]["X-Forwarded-Scheme"] == "http"
    assert "/foo" in body["uris"]


def test_requests_that_match_no_path_get_404() -> None:
    got = routes(ingress("web", ("/foo", "Prefix")))

    (body,) = (body for body in got if "/*" in body["uris"])
    assert body["plugins"]["fault-injection"]["abort"]["http_status"] == 404


def test_the_redirect_of_the_root_does_not_compete_with_the_paths_below_it() -> None:
    got = routes(ingress("web", ("/", "Prefix"), app_root="/app"))

    assert sorted(tuple(body["uris"]) for body in got) == [("/",), ("/*",)]


def test_an_address_list_is_kept() -> None:
    got = routes(ingress("web", ("/", "Prefix"), whitelist_source_range="10.0.0.0/8"))

    rule = {"case": [["remote_addr", "!", "ipmatch", ["10.0.0.0/8"]]], "actions": [["return", {"code": 403}]]}
    assert all(body["plugins"]["workflow"] == {"rules": [rule]} for body in got)


def test_a_path_without_its_protection_is_closed() -> None:
    users = {"kind": "Secret", "metadata": {"name": "users", "namespace": "shop"}, "data": {"auth": "dTp7U0hBfXg="}}
    guarded = ingress("web", ("/admin", "Prefix"), auth_type="basic", auth_secret="users")

    got = routes(guarded, ingress("plain", ("/", "Prefix"), age=1), users)

    (body,) = (body for body in got if "/admin" in body["uris"])
    assert body["plugins"] == {"fault-injection": {"abort": {"http_status": 503}}}


def test_a_preflight_takes_precedence_over_an_address_list() -> None:
    got = routes(ingress("web", ("/", "Prefix"), enable_cors="true", whitelist_source_range="10.0.0.0/8"))

    abort = got[0]["plugins"]["fault-injection"]["abort"]
    assert (abort["http_status"], abort["vars"]) == (204, [[["request_method", "==", "OPTIONS"]]])
    assert got[0]["plugins"]["workflow"]


def test_settings_of_the_backend_become_those_of_its_service() -> None:
    found = written("httproute", ingress("web", ("/", "Prefix"), proxy_read_timeout="5", upstream_hash_by="$uri"))

    (upstream,) = (item for item in found.shared if item["kind"] == "ApisixUpstream")
    (level,) = upstream["spec"]["portLevelSettings"]
    assert level["timeout"] == {"connect": "5s", "send": "60s", "read": "5s"}
    assert level["loadbalancer"] == {"type": "chash", "hashOn": "vars", "key": "uri"}


def test_a_pattern_matches_from_the_start_in_any_case() -> None:
    import re

    got = routes(ingress("web", ("/v[0-9]+", "ImplementationSpecific"), use_regex="true"))

    patterns = [body["vars"][-1][2] for body in got if body.get("vars") and body["vars"][-1][0] == "uri"]
    matching = [pattern for pattern in patterns if re.search(pattern, "/V1/x") and not re.search(pattern, "/x/v1")]
    assert len(matching) == 1


def test_an_http_route_keeps_headers_and_weights_of_a_canary() -> None:
    new = {"kind": "Service", "metadata": {"name": "new", "namespace": "shop"}, "spec": {"ports": [{"port": 80}]}}
    canary = ingress(
        "canary", ("/", "Prefix"), service="new", age=1, canary="true", canary_by_header="X-New", canary_weight="20"
    )

    found = written("httproute", ingress("web", ("/", "Prefix")), canary, new)

    (route,) = (item for item in found.hosts["shop.test"] if item["kind"] == "HTTPRoute")
    rules = route["spec"]["rules"]
    assert [[each["name"] for each in rule["backendRefs"]] for rule in rules] == [["new"], ["web"], ["new", "web"]]
    assert rules[0]["matches"][0]["headers"] == [{"type": "Exact", "name": "x-new", "value": "always"}]


def test_a_backend_in_another_namespace_gets_a_grant() -> None:
    other = ingress("other", ("/other", "Prefix"), age=1)
    other["metadata"]["namespace"] = "team"
    service = {"kind": "Service", "metadata": {"name": "web", "namespace": "team"}, "spec": {"ports": [{"port": 80}]}}

    found = written("httproute", ingress("web", ("/", "Prefix")), other, service)

    (grant,) = (item for item in found.hosts["shop.test"] if item["kind"] == "ReferenceGrant")
    assert grant["metadata"]["namespace"] == "team"
    assert grant["spec"]["from"][0]["namespace"] == "shop"


@pytest.mark.parametrize("share", [{"canary_weight": "20"}, {"canary_weight": "100"}, {"canary_by_header": "X-New"}])
def test_a_canary_of_another_namespace_needs_http_routes(share: dict[str, Any]) -> None:
    canary = ingress("canary", ("/", "Prefix"), service="new", age=1, canary="true", **share)
    canary["metadata"]["namespace"] = "team"
    new = {"kind": "Service", "metadata": {"name": "new", "namespace": "team"}, "spec": {"ports": [{"port": 80}]}}

    granted = written("httproute", ingress("web", ("/", "Prefix")), canary, new)
    found = written("apisixroute", ingress("web", ("/", "Prefix")), canary, new)

    named = {(each["name"], each.get("namespace")) for rule in _rules(granted) for each in rule["backendRefs"]}
    assert ("new", "team") in named
    assert any("canary" in reason for reason in notes(found, "differs"))
    assert all(item["metadata"].get("namespace") == "shop" for item in found.hosts["shop.test"])
    assert "'new'" not in str(found.hosts["shop.test"])


def _rules(found: Manifests) -> list[Any]:
    return [rule for item in found.hosts["shop.test"] if item["kind"] == "HTTPRoute" for rule in item["spec"]["rules"]]


def test_listeners_of_a_host_are_in_a_listener_set() -> None:
    found = written("httproute", ingress("web", ("/", "Prefix")))

    assert kinds(found) == ["ApisixPluginConfig", "ApisixUpstream", "Gateway", "HTTPRoute", "ListenerSet"]


def test_requests_for_any_host_reach_the_routes_of_every_namespace() -> None:
    got = routes(ingress("web", ("/foo", "Prefix"), host=""))

    assert any("/foo/*" in body["uris"] for body in got)


def test_a_header_that_excludes_the_canary_takes_precedence_over_its_cookie() -> None:
    canary = ingress("canary", ("/", "Prefix"), age=1, service="next", canary="true", canary_by_header="X-Canary",
                     canary_by_cookie="beta")  # fmt: skip
    following = {**SERVICE, "metadata": {"name": "next", "namespace": "shop"}}

    found = written("httproute", ingress("web", ("/", "Prefix")), canary, following)

    (route,) = (each for each in found.hosts["shop.test"] if each["kind"] == "HTTPRoute")
    rules = [
        (rule["matches"][0].get("headers", [{}])[0].get("value", ""), rule["backendRefs"][0]["name"])
        for rule in route["spec"]["rules"]
    ]
    assert [name for value, name in rules if value in ("always", "never", "")] == ["next", "web", "web"]
    assert rules[1] == ("never", "web")
