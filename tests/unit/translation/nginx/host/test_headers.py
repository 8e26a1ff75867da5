"""Headers of requests and responses, as ingress-nginx sets, hides, trusts and limits them."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.model.json import FrozenJson
from tests.unit.translation.nginx.host.bodies import TRUSTING, asking, config, functions, redirecting, routes, status
from tests.unit.translation.nginx.objects import ingress, translated
from translation.nginx.functions.headers import CONNECTION, INVALID, MANY, UNDERSCORES


def set_headers(body: FrozenJson) -> set[str]:
    """Return the names of the response headers that a route sets."""
    return set(body.get("plugins", {}).get("response-rewrite", {}).get("headers", {}).get("set", {}))


def test_answers_without_a_backend_have_the_headers_of_the_location() -> None:
    listed = ingress("web", ("/", "Prefix"), enable_cors="true", whitelist_source_range="192.0.2.0/24")

    got = [body for body in routes(translated(listed)) if status(body) == 403]

    schemes = {next(when[2] for when in body["vars"] if when[0] == "scheme"): set_headers(body) for body in got}
    assert "Access-Control-Allow-Origin" in schemes["http"] & schemes["https"]
    assert schemes["https"] - schemes["http"] == {"Strict-Transport-Security"}


@pytest.mark.parametrize("redirect", [{"force_ssl_redirect": "true"}, {"permanent_redirect": "https://new.test"}])
def test_preflights_come_before_redirects(redirect: dict[str, Any]) -> None:
    got = routes(translated(ingress("web", ("/", "Prefix"), enable_cors="true", **redirect)))
    first = next(body for body in got if "redirect" in body["plugins"] or status(body))
    assert (status(first), ["request_method", "==", "OPTIONS"] in first["vars"]) == (204, True)


def test_backend_headers_are_hidden_unless_they_are_also_set() -> None:
    hidden = config(hide_headers="X-Powered-By,Strict-Transport-Security")

    got = routes(translated(ingress("web", ("/", "Prefix")), hidden))

    headers = [body["plugins"]["response-rewrite"]["headers"] for body in got if body.get("upstream_id")]
    assert [each["remove"] for each in headers if "set" in each] == [["X-Powered-By"]]


def test_lists_of_cors_may_be_separated_by_spaces() -> None:
    spaced = ingress("web", ("/", "Prefix"), enable_cors="true", cors_allow_methods="PUT GET", cors_allow_headers="*")

    got = next(body for body in routes(translated(spaced)) if body.get("upstream_id"))

    headers = got["plugins"]["response-rewrite"]["headers"]["set"]
    assert headers["Access-Control-Allow-Methods"] == "PUT GET"
    assert headers["Access-Control-Allow-Headers"].startswith("DNT,")


def test_what_a_front_proxy_says_is_passed_on_if_it_is_trusted() -> None:
    trusting = config(use_forwarded_headers="true")

    got = routes(translated(ingress("web", ("/", "Prefix"), force_ssl_redirect="true"), trusting))

    served = [body["plugins"] for body in got if body.get("upstream_id")]
    reported = [plugins["serverless-pre-function"]["ingress_nginx"]["forwarded"] for plugins in served]
    assert reported == [{"port": "80", "keeps_host": False}, {"port": "443", "keeps_host": False}]
    redirects = {plugins["redirect"]["uri"].removesuffix("$upstream_uri") for plugins in map(dict, redirecting(got))}
    assert redirects == {"https://$original_x_forwarded_host", "https://$host"}


def test_answers_are_compressed_as_the_config_map_says() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix")), config(use_gzip="true", gzip_types="image/png")))

    gzip = next(body["plugins"]["gzip"] for body in got if body.get("upstream_id"))
    assert gzip == {"types": ["text/html", "image/png"], "comp_level": 1, "min_length": 256, "vary": True}


@pytest.mark.parametrize(
    ("value", "protocol", "buffering", "want"),
    [
        ("16k", "HTTP", "on", 16384),
        ("4k", "HTTP", "on", None),
        ("16k", "GRPC", "on", None),
        ("16k", "HTTP", "off", None),
        ("16kb", "HTTP", "on", None),
    ],
)
def test_a_function_passes_response_headers_that_are_too_large_for_the_gateway(
    value: str, protocol: str, buffering: str, want: int | None
) -> None:
    given = ingress(
        "web", ("/", "Exact"), proxy_buffer_size=value, backend_protocol=protocol, proxy_request_buffering=buffering
    )

    got = [body for body in routes(translated(given)) if body.get("upstream_id")]

    assert [asking(body).get("head") for body in got] == [want] * 2


@pytest.mark.parametrize("objects", TRUSTING)
def test_headers_with_an_underscore_are_dropped_where_a_header_is_trusted(objects: tuple[dict[str, Any], ...]) -> None:
    allowed = config(enable_underscores_in_headers="true")

    got = [body for body in routes(translated(*objects)) if body.get("upstream_id")]
    got_allowed = [body for body in routes(translated(*objects, allowed)) if body.get("upstream_id")]

    assert got
    assert all(functions(body)[1] == UNDERSCORES for body in got)
    assert not any(UNDERSCORES in functions(body) for body in got_allowed)


def test_invalid_header_names_are_passed_on_request() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix")), config(ignore_invalid_headers="false")))

    assert [functions(body) for body in got if body.get("upstream_id")] == [[CONNECTION, INVALID]] * 2


@pytest.mark.parametrize("key", ["use_forwarded_headers", "enable_real_ip"])
def test_the_number_of_headers_is_limited_if_one_of_them_has_the_address_of_the_client(key: str) -> None:
    listed = ingress("web", ("/", "Prefix"), whitelist_source_range="192.0.2.0/24", limit_rps="1")

    got = [functions(body) for body in routes(translated(listed, config(**{key: "true"}))) if body.get("upstream_id")]

    assert [each[1] for each in got] == [MANY, MANY]
    assert not any(MANY in functions(body) for body in routes(translated(listed)))
