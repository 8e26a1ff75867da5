"""What nginx checks before it looks up a location, and what a denied location leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.translation.nginx.host.bodies import SECRET, config, early, redirecting, routes, status
from tests.unit.translation.nginx.objects import ingress, translated

BAD = "192.0.2.0/240"
"""Not a network, so that a path is denied."""


def _response_headers(body: Any) -> dict[str, str]:
    found: dict[str, str] = body["plugins"].get("response-rewrite", {}).get("headers", {}).get("set", {})
    return found


@pytest.mark.parametrize(
    ("path", "annotations"),
    [("/", {"app_root": "/app"}), ("/foo/", {}), ("/", {"from_to_www_redirect": "true"})],
)
def test_blocked_clients_get_no_redirect(path: str, annotations: dict[str, Any]) -> None:
    got = routes(translated(ingress("web", (path, "Prefix"), **annotations), config(block_user_agents="Bad.Bot")))

    for body in got:
        if "redirect" in body["plugins"]:
            same = (each for each in got if (each["uris"], each["hosts"]) == (body["uris"], body["hosts"]))
            first = next(iter(same))
            assert (status(first), first["vars"]) == (403, [["http_user_agent", "~*", r"^Bad\.Bot$"]])


def test_a_blocked_client_gets_no_headers_of_the_location() -> None:
    blocking = config(block_referers="http://spam.test/")

    got = routes(translated(ingress("web", ("/", "Prefix"), enable_cors="true"), blocking))

    assert [_response_headers(body) for body in got if status(body) == 403] == [{}]


def test_blocked_addresses_are_redirected_like_others() -> None:
    got = routes(
        translated(ingress("web", ("/", "Prefix"), permanent_redirect="/new"), config(block_cidrs="192.0.2.0/24"))
    )

    assert [status(body) for body in got if status(body)] == []
    assert redirecting(got)


def test_a_denied_path_has_no_cors_headers_and_answers_preflights_with_503() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix"), enable_cors="true", whitelist_source_range=BAD)))

    assert {status(body) for body in got} == {503}
    assert [name for body in got for name in _response_headers(body) if name != "Strict-Transport-Security"] == []


def test_a_denied_path_is_not_the_target_of_a_redirect_to_its_trailing_slash() -> None:
    denied = ingress("denied", ("/foo/", "Prefix"), age=1, whitelist_source_range=BAD)

    got = routes(translated(ingress("web", ("/", "Prefix")), denied))

    assert [body for body in got if "/foo" in body["uris"]] == []


def test_without_its_secret_of_client_certificates_a_host_has_no_redirects() -> None:
    closed = ingress("web", ("/foo/", "Prefix"), auth_tls_secret="shop/absent", app_root="/foo/")

    assert {status(body) for body in routes(translated(SECRET, closed))} == {403}


def test_a_redirect_to_https_contains_the_port_if_it_is_asked_for() -> None:
    asked = ingress("web", ("/", "Prefix"), force_ssl_redirect="true", use_port_in_redirects="true")

    got = redirecting(routes(translated(asked)))

    assert [plugins["redirect"]["uri"] for plugins in got] == ["https://$host:443$upstream_uri"]


def test_redirects_stay_relative_if_the_config_map_sets_it() -> None:
    given = ingress("web", ("/", "Prefix"), permanent_redirect="/new", relative_redirects="false")

    got = redirecting(routes(translated(given, config(relative_redirects="true"))))

    assert {plugins["redirect"]["uri"] for plugins in got} == {"/new"}


def test_a_wildcard_host_with_an_alias_still_matches_one_label() -> None:
    given = ingress("web", ("/", "Prefix"), host="*.a.test", server_alias="b.test,*.c.test")

    got = [
        condition for body in routes(translated(given)) for condition in body.get("vars", ()) if condition[0] == "OR"
    ]

    one_label = ["host", "~~", r"^[A-Za-z0-9_-]+\.a\.test$"]
    assert got
    assert all(each == ["OR", one_label, ["host", "~~", r"^(b\.test|.+\.c\.test)$"]] for each in got)


@pytest.mark.parametrize(("data", "want"), [({"X-One": "5 $host"}, "5 ${literal ?? $}host"), ({"X.One": "1"}, None)])
def test_custom_headers_are_literal_and_have_valid_names(data: dict[str, str], want: str | None) -> None:
    headers = {"kind": "ConfigMap", "metadata": {"name": "headers", "namespace": "shop"}, "data": data}
    allowed = config(global_allowed_response_headers="X-One,X.One")

    got = routes(translated(ingress("web", ("/", "Prefix"), custom_headers="shop/headers"), headers, allowed))

    assert {_response_headers(body).get("X-One") for body in got} == {want}
    assert (want is None) == any(status(body) == 503 for body in got)


@pytest.mark.parametrize(("size", "limit"), [("10b", 1024 * 1024), ("10B", 1024 * 1024), ("10", 10), ("10k", 10240)])
def test_a_body_size_in_bytes_with_a_unit_is_ignored(size: str, limit: int) -> None:
    got = routes(translated(ingress("web", ("/", "Prefix"), proxy_body_size=size)))

    assert {body["plugins"]["client-control"]["max_body_size"] for body in got if body.get("upstream_id")} == {limit}


@pytest.mark.parametrize(("satisfy", "want"), [("any", True), ("all", None)])
def test_either_of_two_authentications_is_enough_with_satisfy_any(satisfy: str, want: bool | None) -> None:
    secret = {"kind": "Secret", "metadata": {"name": "pw", "namespace": "shop"}, "stringData": {"auth": "u:{PLAIN}p"}}
    both: dict[str, Any] = {
        "auth_type": "basic",
        "auth_secret": "pw",
        "auth_url": "http://192.0.2.1/check",
        "satisfy": satisfy,
    }

    got = [early(body) for body in routes(translated(secret, ingress("web", ("/", "Prefix"), **both)))]

    assert {values.get("any") for values in got if "basic" in values} == {want}


@pytest.mark.parametrize(("given", "want"), [("auth-files", 503), ("nonsense", None)])
def test_an_almost_valid_type_of_secret_closes_the_path(given: str, want: int | None) -> None:
    got = routes(
        translated(ingress("web", ("/", "Prefix"), auth_type="basic", auth_secret="pw", auth_secret_type=given))
    )

    assert {status(body) for body in got} == ({want} if want else set())


def test_a_request_without_the_name_of_a_certificate_is_rejected_before_every_redirect() -> None:
    named = ingress("web", ("/", "Prefix"), auth_tls_secret="shop/ca", auth_tls_match_cn="CN=a", app_root="/app")

    got = routes(translated(SECRET, named))

    wrong = ["ssl_client_s_dn", "!", "~~", "CN=a"]
    rejecting = [body for body in got if wrong in body.get("vars", ())]
    assert [(body["uris"], body["vars"]) for body in rejecting] == [(["/"], [wrong]), (["/*"], [wrong])]
    assert {status(body) for body in rejecting} == {403}
    assert [_response_headers(body) for body in rejecting] == [{}, {}]


@pytest.mark.parametrize("given", [{}, {"use_forwarded_headers": "true"}])
def test_the_redirect_to_a_host_without_www_names_the_scheme_and_port_of_a_front_proxy(given: dict[str, str]) -> None:
    got = redirecting(routes(translated(ingress("web", ("/", "Prefix"), from_to_www_redirect="true"), config(**given))))

    starts = [plugins["redirect"]["uri"].partition("$upstream_uri")[0] for plugins in got]
    forwarded = [
        *("https://shop.test:$original_x_forwarded_port", "https://shop.test:443", "https://shop.test:80"),
        *("http://shop.test:$original_x_forwarded_port", "http://shop.test:443", "http://shop.test:80"),
    ]
    assert starts == (forwarded if given else ["http://shop.test:80", "https://shop.test:443"])
