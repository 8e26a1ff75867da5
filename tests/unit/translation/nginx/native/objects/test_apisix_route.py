"""ApisixRoutes for hosts of ingress-nginx: their records are those of the provider."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.offline import Outcome
from tests.unit.translation.nginx.native.written import kinds, notes, served, written
from tests.unit.translation.nginx.objects import ingress, translated
from translation.nginx.functions.headers import CONNECTION

CASES: dict[str, list[dict[str, Any]]] = {
    "a prefix": [ingress("web", ("/foo", "Prefix"))],
    "a slash at the end": [ingress("web", ("/foo/", "Prefix"), ("/", "Exact"))],
    "patterns": [
        ingress("regex", ("/v[0-9]+", "ImplementationSpecific"), use_regex="true"),
        ingress("plain", ("/plain", "Exact"), age=1),
    ],
    "a rewrite": [ingress("web", ("/v1(/|$)(.*)", "ImplementationSpecific"), rewrite_target="/$2")],
    "a pattern that may fail": [
        ingress("web", ("/a/((b|c)/?)*$", "ImplementationSpecific"), use_regex="true", limit_rps="5")
    ],
    "redirects": [
        ingress("web", ("/", "Prefix"), force_ssl_redirect="true", app_root="/app", from_to_www_redirect="true")
    ],
    "a permanent redirect": [ingress("web", ("/old", "Prefix"), permanent_redirect="https://new.test/x")],
    "denied addresses": [ingress("web", ("/", "Prefix"), denylist_source_range="10.0.0.0/8")],
    "CORS": [ingress("web", ("/", "Prefix"), enable_cors="true", cors_allow_origin="https://a.test")],
    "limits": [ingress("web", ("/a", "Prefix"), ("/b", "Prefix"), limit_rps="5")],
    "a hash": [ingress("web", ("/", "Prefix"), upstream_hash_by="$request_uri")],
    "timeouts": [ingress("web", ("/", "Prefix"), proxy_read_timeout="5", proxy_next_upstream_tries="1")],
    "the address of the Service": [ingress("web", ("/", "Prefix"), service_upstream="true")],
    "a wildcard": [ingress("web", ("/", "Prefix"), host="*.shop.test")],
    "every host": [ingress("web", ("/", "Prefix"), host="")],
}


SCHEMES = ("http", "https")


def routes(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the actions for each path and scheme, in the order in which a gateway tries them."""
    bodies = {record.key: record.body for record in outcome.records}
    upstreams = {key.id: _of_upstream(body) for key, body in bodies.items() if key.kind == "upstreams"}
    configs = {key.id: body["plugins"] for key, body in bodies.items() if key.kind == "plugin_configs"}
    found = []
    for body in (body for key, body in bodies.items() if key.kind == "routes"):
        kept = {name: body[name] for name in ("hosts", "timeout", "enable_websocket") if body.get(name)}
        plugins = {**configs.get(body.get("plugin_config_id", ""), {}), **body.get("plugins", {})}
        addresses = [["remote_addr", "ipmatch", body["remote_addrs"]]] if "remote_addrs" in body else []
        conditions = [*(list(each) for each in body.get("vars", ())), *addresses]
        for uri, scheme in product(body["uris"], SCHEMES):
            if all(each[:2] != ["scheme", "=="] or each[2] == scheme for each in conditions):
                found.append(
                    kept
                    | {
                        "uri": uri,
                        "scheme": scheme,
                        "priority": body.get("priority", 0),
                        "vars": sorted(str(each) for each in conditions if each[0] != "scheme"),
                        "plugins": _of_request(plugins, uri, scheme),
                        "upstream": upstreams.get(body.get("upstream_id", "")),
                    }
                )
    found.sort(key=lambda each: (each["uri"], each["scheme"], -each["priority"]))
    for each in found:
        del each["priority"]
    return found


def _of_request(plugins: dict[str, Any], uri: str, scheme: str) -> dict[str, Any]:
    """Return the plugins that have an effect for a path and a scheme, with the path in redirects."""
    found = dict(plugins)
    if found.get("serverless-pre-function", {}).get("functions") == [CONNECTION]:
        del found["serverless-pre-function"]  # Manifests cannot contain it.
    rewrite = found.get("response-rewrite", {})
    if rewrite.get("vars") == [["scheme", "==", "https"]]:
        found["response-rewrite"] = {name: each for name, each in rewrite.items() if name != "vars"}
        if scheme == "http":
            del found["response-rewrite"]
    if "uri" in found.get("redirect", {}):
        location = found["redirect"]["uri"].replace("$host$uri/", f"$host{uri}/")
        found["redirect"] = {**found["redirect"], "uri": location}
    return found


def _of_upstream(body: Any) -> dict[str, Any]:
    names = ("scheme", "retries", "type", "hash_on", "key", "nodes", "pass_host")
    return {name: body[name] for name in names if name in body}


@pytest.mark.parametrize("case", CASES)
def test_the_records_are_those_of_the_provider(case: str) -> None:
    found = written("apisixroute", *CASES[case])

    got = served(found)

    assert [str(problem) for _, problem in got.problems] == []
    assert routes(got) == routes(translated(*CASES[case]))


HARBOR = [(path, "Prefix") for path in ("/api/", "/service/", "/v2/", "/c/", "/")]


def test_no_rule_is_repeated() -> None:
    found = written("apisixroute", ingress("harbor", *HARBOR, ssl_redirect="true", force_ssl_redirect="true"))

    (route,) = (item for item in found.hosts["shop.test"] if item["kind"] == "ApisixRoute")
    rules = route["spec"]["http"]
    assert [rule["name"] for rule in rules] == ["01-redirect", "02-redirect", "03-serve"]
    assert [rule["priority"] for rule in rules] == [30, 20, 10]
    assert rules[0]["match"]["paths"] == ["/service", "/api", "/v2", "/c"]


def test_rules_of_both_schemes_with_the_same_action_are_one() -> None:
    found = written("apisixroute", ingress("old", ("/", "Prefix"), permanent_redirect="https://new.test"))

    (route,) = (item for item in found.hosts["shop.test"] if item["kind"] == "ApisixRoute")
    assert not any("exprs" in rule["match"] for rule in route["spec"]["http"])


def test_common_plugins_are_in_one_plugin_config() -> None:
    more = {"kind": "Service", "metadata": {"name": "more", "namespace": "shop"}, "spec": {"ports": [{"port": 80}]}}
    two = ingress("two", ("/two", "Prefix"), service="more", age=1, force_ssl_redirect="true")

    found = written("apisixroute", ingress("web", ("/", "Prefix"), force_ssl_redirect="true"), two, more)

    configs = [item for item in found.hosts["shop.test"] if item["kind"] == "ApisixPluginConfig"]
    names = {item["metadata"]["name"] for item in configs}
    (route,) = (item for item in found.hosts["shop.test"] if item["kind"] == "ApisixRoute")
    used = [rule.get("plugin_config_name") for rule in route["spec"]["http"] if "backends" in rule]
    assert (len(used), set(used)) == (2, names)


def test_a_note_about_large_response_headers_does_not_mention_retries() -> None:
    got = notes(written("apisixroute", ingress("web", ("/", "Prefix"), proxy_buffer_size="16k")), "differs")

    assert any(reason.startswith("proxy-buffer-size") for reason in got)
    assert not any("proxy-next-upstream" in reason for reason in got)


def test_an_address_list_lets_only_these_clients_to_the_backend() -> None:
    got = served(written("apisixroute", ingress("web", ("/", "Prefix"), whitelist_source_range="10.0.0.0/8")))

    bodies = sorted((r.body for r in got.records if r.key.kind == "routes"), key=lambda body: -body["priority"])
    assert [body["remote_addrs"] for body in bodies if "upstream_id" in body] == [["10.0.0.0/8"]] * 2
    assert {body["plugins"]["fault-injection"]["abort"]["http_status"] for body in bodies[2:]} == {403}
    assert len({body["priority"] for body in bodies}) == len(bodies)


def test_a_canary_becomes_rules_and_weights() -> None:
    canary = ingress(
        "canary", ("/", "Prefix"), service="new", age=1, canary="true", canary_by_header="X-New", canary_weight="20"
    )
    new = {"kind": "Service", "metadata": {"name": "new", "namespace": "shop"}, "spec": {"ports": [{"port": 80}]}}

    found = written("apisixroute", ingress("web", ("/", "Prefix")), canary, new)

    (route,) = (item for item in found.hosts["shop.test"] if item["kind"] == "ApisixRoute")
    plain = [rule for rule in route["spec"]["http"] if rule.get("backends")][:3]
    assert [[each["serviceName"] for each in rule["backends"]] for rule in plain] == [["new"], ["web"], ["new", "web"]]
    assert [each["weight"] for each in plain[2]["backends"]] == [20, 80]


@pytest.mark.parametrize(
    "protected",
    [{"auth_type": "basic", "auth_secret": "users"}, {"auth_url": "http://a.test/"}],
)
def test_a_protection_that_cannot_be_expressed_closes_the_path(protected: dict[str, Any]) -> None:
    users = {"kind": "Secret", "metadata": {"name": "users", "namespace": "shop"}, "data": {"auth": "dTp7U0hBfXg="}}
    plain = ingress("plain", ("/", "Prefix"), age=1)

    found = written("apisixroute", ingress("web", ("/admin", "Prefix"), **protected), plain, users)

    closed = [body for body in routes(served(found)) if "/admin" in body["uri"]]
    assert {body["plugins"]["fault-injection"]["abort"]["http_status"] for body in closed} == {503}
    assert len(notes(found, "closed")) == 1


def test_two_paths_that_need_different_protocols_of_one_port_are_not_mixed_up() -> None:
    secure = ingress("secure", ("/secure", "Prefix"), age=1, backend_protocol="HTTPS")

    found = written("apisixroute", ingress("web", ("/", "Prefix")), secure)

    assert any("different protocols" in reason for reason in notes(found, "closed"))


def test_each_host_has_its_own_objects() -> None:
    found = written("apisixroute", ingress("one", ("/", "Prefix"), host="a.test"), ingress("two", ("/", "Prefix")))

    assert list(found.hosts) == ["a.test", "shop.test"]
    assert kinds(found) == ["ApisixRoute", "ApisixUpstream"]


def test_a_path_with_error_pages_keeps_its_address_list_and_its_backend() -> None:
    errors = {"kind": "Service", "metadata": {"name": "errors", "namespace": "shop"}, "spec": {"ports": [{"port": 80}]}}
    item = ingress(
        "web",
        ("/", "Prefix"),
        custom_http_errors="403,503",
        default_backend="errors",
        whitelist_source_range="10.0.0.0/8",
    )

    found = written("apisixroute", item, errors)

    (route,) = (each for each in found.hosts["shop.test"] if each["kind"] == "ApisixRoute")
    rules = route["spec"]["http"]
    assert {each["serviceName"] for rule in rules for each in rule.get("backends", ())} == {"web"}
    assert all(rule["match"]["remoteAddrs"] == ["10.0.0.0/8"] for rule in rules if rule.get("backends"))
    assert notes(found, "closed") == []
    assert any("custom-http-errors" in reason for reason in notes(found, "differs"))
