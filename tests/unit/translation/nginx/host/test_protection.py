"""Protection of paths of ingress-nginx: client certificates, passwords and external authentication."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.explain.expressions import evaluate
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from apisix_ingress.model.secrets.fields import place_of
from apisix_ingress.model.secrets.redaction import masked
from tests.unit.translation.nginx.host.bodies import SECRET, config, functions, routes, status
from tests.unit.translation.nginx.objects import OPTIONS, ingress, translated
from translation.nginx.functions.guards import GUARD


def test_a_path_without_working_protection_results_in_503() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix"), enable_modsecurity="true")))

    assert {status(body) for body in got} == {503}


@pytest.mark.parametrize("name", ["ca", "shop/absent", "other/ca", "shop/ca/x"])
@pytest.mark.parametrize("mode", ["on", "off"])
def test_a_secret_of_client_certificates_that_cannot_be_used_closes_the_host(name: str, mode: str) -> None:
    older = ingress("older", ("/older", "Prefix"), auth_tls_secret="shop/ca")
    bad = ingress("bad", ("/", "Prefix"), age=1, auth_tls_secret=name, auth_tls_verify_client=mode)

    assert {status(body) for body in routes(translated(SECRET, older, bad))} == {403}


def test_clients_are_verified_for_names_that_the_certificate_of_the_host_does_not_cover() -> None:
    named = ingress("web", ("/", "Prefix"), auth_tls_secret="shop/ca", server_alias="other.test,*.more.test")

    got = [record.body for record in translated(SECRET, named).records if record.key.kind == "ssls"]

    asking = {tuple(body["snis"]) for body in got if "client" in body}
    assert asking == {("shop.test",), ("other.test", "*.more.test")}


def test_spaces_around_a_value_do_not_switch_protection_off() -> None:
    spaced = ingress("web", ("/", "Prefix"), auth_type=" basic ", auth_secret="absent")

    assert {status(body) for body in routes(translated(spaced))} == {503}


def test_of_redirects_with_an_empty_annotation_none_is_served() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix"), permanent_redirect="/x", permanent_redirect_code="")))

    assert not any("redirect" in body.get("plugins", {}) for body in got)


def test_a_missing_auth_secret_closes_the_path() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix"), auth_type="basic", auth_secret="absent")))

    assert {status(body) for body in got} == {503}


def test_password_hashes_guard_the_path_and_are_data_beside_the_function() -> None:
    secret = {
        "kind": "Secret",
        "metadata": {"name": "users", "namespace": "shop"},
        "stringData": {"auth": "joe:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n"},
    }

    outcome = translated(ingress("web", ("/", "Prefix"), auth_type="basic", auth_secret="users"), secret)

    (shared,) = [record for record in outcome.records if record.key.kind == "plugin_configs"]
    guarded = [record for record in outcome.records if record.key.kind == "routes"]
    data = [record.body["plugins"]["serverless-pre-function"]["ingress_nginx"]["basic"] for record in guarded]
    assert shared.body["plugins"]["serverless-pre-function"]["ingress_nginx"] == {
        "users": {"joe": "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="}
    }
    assert data == [{"realm": "", "users": {"plugin_config_id": shared.key.id}}] * len(guarded)
    assert all(shared.key in record.refs for record in guarded)


def test_a_change_of_a_secret_changes_one_record_of_its_size() -> None:
    def records(word: str) -> dict[RecordKey, Record]:
        lines = "".join(f"user{number}:{{PLAIN}}{word}\n" for number in range(1500))
        secret = {"kind": "Secret", "metadata": {"name": "users", "namespace": "shop"}, "stringData": {"auth": lines}}
        paths = [(f"/p{number}", "Prefix") for number in range(60)]
        first = ingress("first", *paths[:30], auth_type="basic", auth_secret="users")
        other = ingress("other", *paths[30:], age=1, auth_type="basic", auth_secret="users", limit_rps="1")
        return {record.key: record for record in translated(first, other, secret).records}

    before, after = records("one"), records("two")

    changed = [key for key in after if before[key] != after[key]]
    assert [key.kind for key in changed] == ["plugin_configs"]
    assert after[changed[0]].size < 2 * 1500 * len("user1499:{PLAIN}two\n")


HEADERS = {"kind": "ConfigMap", "metadata": {"name": "sent", "namespace": "shop"}, "data": {"X-A": "one", "X-B": ""}}


def test_headers_for_an_authentication_service_are_in_one_record() -> None:
    given: dict[str, Any] = {"auth_url": "http://auth.test/", "auth_proxy_set_headers": "shop/sent"}

    outcome = translated(ingress("web", ("/", "Prefix"), ("/x", "Prefix"), **given), HEADERS)

    (shared,) = [record for record in outcome.records if record.key.kind == "plugin_configs"]
    guarded = [record for record in outcome.records if record.key.kind == "routes"]
    assert shared.body["plugins"]["serverless-pre-function"]["ingress_nginx"] == {"headers": {"X-A": "one"}}
    assert {
        record.body["plugins"]["serverless-pre-function"]["ingress_nginx"]["external"]["added"]["plugin_config_id"]
        for record in guarded
    } == {shared.key.id}
    assert all(shared.key in record.refs for record in guarded)


def test_headers_with_a_line_break_for_an_authentication_service_close_the_path() -> None:
    broken = {**HEADERS, "data": {"X-A": "one\r\nX-B: two"}}
    given: dict[str, Any] = {"auth_url": "http://auth.test/", "auth_proxy_set_headers": "shop/sent"}

    outcome = translated(ingress("web", ("/", "Prefix"), **given), broken, options=replace(OPTIONS, plugins="reviewed"))

    assert {status(body) for body in routes(outcome)} == {503}
    assert "X-B" not in str([record.body for record in outcome.records])


def test_satisfy_any_lets_listed_addresses_in_and_asks_the_others() -> None:
    guarded = ingress(
        "web", ("/", "Prefix"), satisfy="any", whitelist_source_range="192.0.2.0/24", auth_url="http://auth.test/check"
    )

    got = routes(translated(guarded))

    first = [body for body in got if ["remote_addr", "ipmatch", ["192.0.2.0/24"]] in body.get("vars", [])]
    assert first
    assert not any(GUARD in functions(body) for body in first)
    assert any(GUARD in functions(body) for body in got if body not in first)
    assert all(body["priority"] > rest["priority"] for body in first[:1] for rest in got if rest not in first)


def test_password_hashes_are_hidden_where_records_are_shown() -> None:
    secret = {
        "kind": "Secret",
        "metadata": {"name": "users", "namespace": "shop"},
        "stringData": {"auth": "joe:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n"},
    }

    outcome = translated(ingress("web", ("/", "Prefix"), auth_type="basic", auth_secret="users"), secret)

    (shared,) = [record.body for record in outcome.records if record.key.kind == "plugin_configs"]
    assert "5en6G6" in str(shared)
    assert "5en6G6" not in str(masked(shared, place_of("plugin_configs", "1")))


def test_an_auth_url_that_the_settings_refuse_closes_the_path() -> None:
    strict = replace(OPTIONS, external_addresses="refuse-internal")
    guarded = ingress("web", ("/", "Prefix"), auth_url="http://169.254.169.254/latest")

    assert {status(body) for body in routes(translated(guarded, options=strict))} == {503}


def test_a_client_certificate_of_another_namespace_closes_the_path() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "cert", "namespace": "other"}, "stringData": {"tls.crt": "x"}}

    got = routes(translated(ingress("web", ("/", "Prefix"), proxy_ssl_secret="other/cert"), secret))

    assert {status(body) for body in got} == {503}


def test_authentication_responses_are_cached_for_the_configured_time() -> None:
    cached = ingress(
        "web", ("/", "Prefix"), auth_url="http://auth.test/check", auth_cache_key="$http_authorization",
        auth_cache_duration="200 202 10m, 401 30s",
    )  # fmt: skip

    got = next(body for body in routes(translated(cached)) if body.get("upstream_id"))

    cache = got["plugins"]["serverless-pre-function"]["ingress_nginx"]["external"]["cache"]
    assert cache == {
        "id": "shop.test Prefix / http://auth.test/check",
        "key": "$http_authorization",
        "valid": {"200": 600, "202": 600, "401": 30},
    }


BLOCKED = {
    "case": [["remote_addr", "ipmatch", ["192.0.2.0/24", "198.51.100.0/24"]]],
    "actions": [["return", {"code": 403}]],
}


def test_blocked_networks_are_compared_with_the_address_in_the_header_of_a_front_proxy() -> None:
    behind = config(use_forwarded_headers="true", block_cidrs="192.0.2.0/24")
    both = ingress(
        "web",
        ("/", "Prefix"),
        whitelist_source_range="203.0.113.0/24",
        denylist_source_range="198.51.100.0/24",
    )

    plain, listed = (routes(translated(each, behind)) for each in (ingress("web", ("/", "Prefix")), both))

    assert {status(body) for body in (*plain, *listed)} == {None}
    assert [body["plugins"]["ip-restriction"]["blacklist"] for body in plain] == [["192.0.2.0/24"]] * 2
    assert [body["plugins"]["workflow"]["rules"] for body in listed] == [[BLOCKED]] * 2


REQUESTS = (
    ({"server_protocol": "HTTP/1.1", "request_method": "GET"}, True),
    ({"server_protocol": "HTTP/1.1", "request_method": "POST", "http_content_length": "5"}, True),
    ({"server_protocol": "HTTP/1.1", "request_method": "POST", "http_transfer_encoding": "chunked"}, False),
    ({"server_protocol": "HTTP/1.1", "request_method": "GET", "http_transfer_encoding": "chunked"}, False),
    ({"server_protocol": "HTTP/2.0", "request_method": "GET"}, True),
    ({"server_protocol": "HTTP/2.0", "request_method": "POST", "http_content_length": "5"}, True),
    ({"server_protocol": "HTTP/2.0", "request_method": "POST"}, False),
)
"""Variables of a request → whether the length of its body is known."""


@pytest.mark.parametrize(("variables", "want"), REQUESTS)
def test_responses_are_buffered_if_the_gateway_has_to_measure_the_body(variables: dict[str, str], want: bool) -> None:
    got = routes(translated(ingress("web", ("/", "Prefix"), proxy_body_size="1k")))

    rules = [body["plugins"]["proxy-buffering"]["_meta"]["filter"] for body in got if body.get("upstream_id")]
    assert [evaluate(each, variables.get).holds for each in rules] == [want, want]


def test_without_a_maximum_body_size_no_response_is_buffered() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix"), proxy_body_size="0")))

    assert {str(body["plugins"]["proxy-buffering"]) for body in got} == {"{'disable_proxy_buffering': True}"}
