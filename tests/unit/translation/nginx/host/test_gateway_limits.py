"""Values that ingress-nginx accepts and the fields of gateways do not: served otherwise, or closed and reported."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.offline import Outcome
from apisix_ingress.model.json import FrozenJson
from tests.unit.translation.nginx.host.bodies import SECRET, config, early, routes, status
from tests.unit.translation.nginx.objects import ingress, translated
from tests.unit.translation.objects import pem


def codes(outcome: Outcome, annotation: str) -> list[str]:
    """Return the codes of the problems with an annotation."""
    return [problem.code for _, problem in outcome.problems if problem.path.endswith(f"/{annotation}]")]


def served(outcome: Outcome) -> FrozenJson:
    return next(body for body in routes(outcome) if body.get("upstream_id"))


def vhost(value: str) -> Outcome:
    return translated(ingress("web", ("/", "Prefix"), ("/admin", "Prefix"), upstream_vhost=value))


@pytest.mark.parametrize(
    ("value", "by_plugin", "by_function"),
    [
        ("app.internal:8080", "app.internal:8080", None),
        ("$service_name.$namespace.svc:$service_port", "web.shop.svc:80", None),
        ("${ingress_name}.test", "web.test", None),
        ("my_host", None, "my_host"),
        ("my_app.internal:8080", None, "my_app.internal:8080"),
        ("$http_host", None, None),
        ("$best_http_host", None, None),
        ("${host}", None, None),
    ],
)
def test_a_host_for_backends_is_sent(value: str, by_plugin: str | None, by_function: str | None) -> None:
    outcome = vhost(value)

    got = served(outcome)
    assert got["plugins"]["proxy-rewrite"].get("host") == by_plugin
    assert early(got).get("upstream_host") == by_function
    assert codes(outcome, "upstream-vhost") == []


@pytest.mark.parametrize("value", ["$http_x", "api.$host", "$uri", "a/b", "a.test:999999", "a:b:c", "a*", "[::1]"])
def test_a_host_for_backends_that_gateways_cannot_send_closes_the_paths(value: str) -> None:
    outcome = vhost(value)

    assert {status(body) for body in routes(outcome)} == {503}
    assert codes(outcome, "upstream-vhost") == ["NginxNotServed"]


@pytest.mark.parametrize("target", ["/x$", "/$/y", "/$-", "$"])
def test_a_malformed_rewrite_target_closes_the_paths(target: str) -> None:
    outcome = translated(ingress("web", ("/(.*)", "ImplementationSpecific"), rewrite_target=target))

    assert {status(body) for body in routes(outcome)} == {503}
    assert codes(outcome, "rewrite-target") == ["NginxNotServed"]


@pytest.mark.parametrize("name", ["a:b/c", "JSESSIONID.node1", "a~b"])
def test_a_cookie_that_gateways_cannot_hash_has_the_default_name(name: str) -> None:
    outcome = translated(ingress("web", ("/", "Prefix"), affinity="cookie", session_cookie_name=name))

    keys = {record.body.get("key") for record in outcome.records if record.key.kind == "upstreams"}
    cookies = {
        text.partition("=")[0]
        for body in routes(outcome)
        for text in body["plugins"].get("response-rewrite", {}).get("headers", {}).get("add", [])
    }
    assert keys - {"$request_id", None} == {"INGRESSCOOKIE"}
    assert cookies == {"Set-Cookie: INGRESSCOOKIE"}
    assert codes(outcome, "session-cookie-name") == ["NginxDiffers"]


@pytest.mark.parametrize(
    ("path", "given", "want"),
    [
        ("/v1/items:batch", {}, "Path=/v1/"),
        ("/items:batch", {}, "Path=/"),
        ("/x", {"session_cookie_path": "/a/b:c/d"}, "Path=/a/"),
        ("/x", {"session_cookie_domain": "a:b"}, "Path=/x"),
    ],
)
def test_a_cookie_has_no_colon(path: str, given: dict[str, Any], want: str) -> None:
    outcome = translated(ingress("web", (path, "Exact"), affinity="cookie", **given))

    texts = {
        text
        for body in routes(outcome)
        for text in body["plugins"].get("response-rewrite", {}).get("headers", {}).get("add", [])
    }
    start = f"Set-Cookie: INGRESSCOOKIE=$request_id; {want}"
    assert f"{start}; HttpOnly" in texts
    assert all(":" not in text.partition(": ")[2] for text in texts)


def test_an_alias_that_is_not_a_host_is_ignored_and_reported() -> None:
    outcome = translated(ingress("web", ("/", "Prefix"), server_alias="a.test, b/c, www.*"))

    assert {tuple(body["hosts"]) for body in routes(outcome)} == {("shop.test", "a.test")}
    assert codes(outcome, "server-alias") == ["NginxDiffers"]


def test_a_ca_that_is_too_large_for_a_gateway_closes_the_host() -> None:
    large = {**SECRET, "stringData": {"ca.crt": pem().certificate * 200}}

    outcome = translated(ingress("web", ("/", "Prefix"), auth_tls_secret="shop/ca"), large)

    assert {status(body) for body in routes(outcome)} == {403}
    assert codes(outcome, "auth-tls-secret") == ["NginxNotServed"]


def test_a_long_list_of_origins_is_one_pattern_for_each() -> None:
    origins = [f"https://a{number}.example.test" for number in range(300)]

    outcome = translated(
        ingress("web", ("/", "Prefix"), enable_cors="true", cors_allow_origin=",".join([*origins, origins[0]]))
    )

    got = served(outcome)["plugins"]["cors"]["allow_origins_by_regex"]
    assert got[:1] == ["(?i)^https://a0\\.example\\.test$"]
    assert len(got) == 300


def test_every_header_is_exposed_only_without_credentials() -> None:
    given: dict[str, Any] = {"enable_cors": "true", "cors_allow_origin": "http://a.test", "cors_expose_headers": "*"}

    with_credentials = translated(ingress("web", ("/", "Prefix"), **given))
    without = translated(ingress("web", ("/", "Prefix"), **given, cors_allow_credentials="false"))

    assert "expose_headers" not in served(with_credentials)["plugins"]["cors"]
    assert served(without)["plugins"]["cors"]["expose_headers"] == "*"


LARGE = "999999999999999999"


@pytest.mark.parametrize(
    "given",
    [
        {"proxy_body_size": "999999999999999g", "proxy_buffer_size": "999999999999999g"},
        {"limit_rps": LARGE, "limit_rpm": LARGE, "limit_burst_multiplier": LARGE, "limit_connections": LARGE},
        {"proxy_read_timeout": LARGE, "proxy_next_upstream_tries": LARGE, "auth_tls_verify_depth": LARGE},
    ],
)
def test_numbers_are_at_most_the_largest_that_gateways_read(given: dict[str, Any]) -> None:
    outcome = translated(ingress("web", ("/", "Prefix"), auth_tls_secret="shop/ca", **given), SECRET)

    def numbers(value: object) -> list[float]:
        if isinstance(value, dict):
            return [each for item in value.values() for each in numbers(item)]
        if isinstance(value, list):
            return [each for item in value for each in numbers(item)]
        return [value] if isinstance(value, int | float) else []

    assert max(each for record in outcome.records for each in numbers(record.body)) <= 2**53
    assert served(outcome)["timeout"]["read"] <= 2_147_483


@pytest.mark.parametrize("code", ["0", "200", "999", "-1", "x"])
def test_a_status_in_the_config_map_that_is_not_permitted_has_its_default(code: str) -> None:
    keys = {"http_redirect_code": code, "limit_req_status_code": code, "limit_conn_status_code": code}
    given: dict[str, Any] = {"force_ssl_redirect": "true", "limit_rps": "1", "limit_connections": "1"}

    outcome = translated(ingress("web", ("/", "Prefix"), **given), config(**keys))

    redirects = {body["plugins"]["redirect"]["ret_code"] for body in routes(outcome) if "redirect" in body["plugins"]}
    (limits,) = [record.body["plugins"] for record in outcome.records if record.key.kind == "plugin_configs"]
    assert redirects == {308}
    assert {limits[name]["rejected_code"] for name in ("limit-req", "limit-conn")} == {503}


def test_a_redirect_to_one_character_is_a_pattern() -> None:
    given: dict[str, Any] = {"permanent_redirect": "/", "relative_redirects": "true"}

    got = [body["plugins"]["redirect"] for body in routes(translated(ingress("web", ("/", "Prefix"), **given)))]

    assert got == [{"regex_uri": ["^[\\s\\S]*$", "/"], "ret_code": 301}] * len(got)
