"""Hosts with auth-tls-secret: no https request without a certificate reaches a backend."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.model.json import FrozenJson
from tests.unit.translation.nginx.native.written import served, written
from tests.unit.translation.nginx.objects import ingress, translated
from tests.unit.translation.objects import pem

CA = {
    "kind": "Secret",
    "metadata": {"name": "ca", "namespace": "shop"},
    "stringData": {"ca.crt": pem().certificate},
}


@pytest.mark.parametrize("host", ["shop.test", "*.shop.test", ""])
@pytest.mark.parametrize("alias", ["", "alias.test"])
def test_https_requests_need_a_verified_certificate_before_anything_else(host: str, alias: str) -> None:
    given: dict[str, Any] = {"server_alias": alias} if alias else {}
    item = ingress("web", ("/", "Prefix"), host=host, auth_tls_secret="shop/ca", **given)

    outcome = translated(item, CA)
    routes = [record.body for record in outcome.records if record.key.kind == "routes"]

    by_https = [each for each in routes if ["scheme", "==", "http"] not in each.get("vars", [])]
    first = max(by_https, key=lambda body: int(body["priority"]))
    assert ["ssl_client_verify", "!", "==", "SUCCESS"] in first["vars"]
    assert first["plugins"]["fault-injection"]["abort"]["http_status"] == 400
    assert all(each["uris"] == ["/*"] for each in routes)
    reported = [problem for _, problem in outcome.problems if "auth-tls-secret" in problem.path]
    assert bool(reported) == (not host)


def to_the_page(*objects: dict[str, Any]) -> list[FrozenJson]:
    """Return the routes that send clients without a certificate to the page at `/no-cert`."""
    bodies = [record.body for record in translated(CA, *objects).records if record.key.kind == "routes"]
    return [body for body in bodies if rewritten(body).get("regex_uri") == WITHOUT_QUERY]


WITHOUT_QUERY = ["^[\\s\\S]*$", "/no-cert"]


def rewritten(body: FrozenJson) -> FrozenJson:
    """Return what a route does to the address of a request."""
    found: FrozenJson = body.get("plugins", {}).get("proxy-rewrite", {})
    return found


def with_page(*paths: tuple[str, str], **given: Any) -> dict[str, Any]:
    """Return an Ingress that shows clients without a certificate a page."""
    return ingress("web", *paths, auth_tls_secret="shop/ca", auth_tls_error_page="/no-cert", **given)


def test_clients_without_a_certificate_only_get_the_page_of_the_host() -> None:
    got = to_the_page(with_page(("/", "Prefix")))

    assert [body["plugins"]["proxy-rewrite"].get("method", "") for body in got] == ["", "GET"]
    for body in got:
        assert ["ssl_client_verify", "!", "==", "SUCCESS"] in body["vars"]
        assert ["scheme", "==", "https"] in body["vars"]
        assert set(rewritten(body)) <= {"use_real_request_uri_unsafe", "regex_uri", "method", "headers"}
        assert rewritten(body)["use_real_request_uri_unsafe"] is True


@pytest.mark.parametrize(
    "given",
    [
        {"whitelist_source_range": "192.0.2.0/24"},
        {"auth_url": "http://auth.example/"},
        {"auth_type": "basic", "auth_secret": "absent"},
        {"enable_cors": "true"},
        {"use_regex": "true"},
        {"enable_modsecurity": "true"},
        {"permanent_redirect": "https://new.test/"},
    ],
)
def test_a_page_behind_other_conditions_is_not_shown(given: dict[str, Any]) -> None:
    assert not to_the_page(with_page(("/", "Prefix"), **given))


@pytest.mark.parametrize(
    ("page", "want"),
    [
        ("http://errors.test/no-cert", {"redirect": {"uri": "http://errors.test/no-cert", "ret_code": 302}}),
        ("errors.test/no-cert", {"redirect": {"uri": "errors.test/no-cert", "ret_code": 302}}),
        ("@named", {"fault-injection": {"abort": {"http_status": 500}}}),
        ("1", {"fault-injection": {"abort": {"http_status": 400}}}),
    ],
)
def test_other_pages_are_addresses_that_clients_get_as_they_are(page: str, want: dict[str, Any]) -> None:
    item = ingress("web", ("/", "Prefix"), auth_tls_secret="shop/ca", auth_tls_error_page=page)
    bodies = [record.body for record in translated(CA, item).records if record.key.kind == "routes"]
    refusals = [body for body in bodies if ["ssl_client_verify", "!", "==", "SUCCESS"] in body.get("vars", [])]
    assert refusals
    assert all({name: body["plugins"].get(name) for name in want} == want for body in refusals)


def test_manifests_refuse_clients_without_a_certificate_instead_of_showing_the_page() -> None:
    found = written("apisixroute", with_page(("/", "Prefix")), CA)

    texts = [str(record.body) for record in served(found, CA).records if "'ssl_client_verify'" in str(record.body)]
    assert texts
    assert all("400" in text for text in texts)
    assert not any("/no-cert" in text for text in texts)


def test_the_page_is_that_of_the_location_that_matches_it() -> None:
    page = ingress("page", ("/no-cert", "Exact"), age=1, upstream_vhost="page.test")

    got = to_the_page(with_page(("/", "Prefix")), page)

    assert got
    assert not to_the_page(with_page(("/other", "Exact")))
