"""URLs to which a function of the gateway sends requests: no text of a client can change scheme, host or port."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.offline import Outcome
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.problem import Problem
from tests.unit.translation.nginx.host.bodies import config, routes, status
from tests.unit.translation.nginx.objects import OPTIONS, ingress, translated
from translation.nginx.tables.destinations import Destination, destination_of

STRICT = replace(OPTIONS, external_addresses="refuse-internal", plugins="reviewed")

CHOSEN_BY_CLIENTS = [
    "http://169.254$http_x",
    "http://10.244.50$http_x/",
    "http://etcd.apisix.sv${http_x}/",
    "http://$http_x",
    "http://$http_x/",
    "http://$arg_host:8080/",
    "http://auth.test:80$http_x",
    "http://auth.test:$http_x/",
    "http://auth.test:80$args",
    "http://auth.test$request_uri_x",
    "http://auth.test$uri",
    "http://auth.test${args}",
    "$scheme://auth.test/",
    "http$arg_s://auth.test/",
    "http://$hostname/",
    "http://$host$http_x/",
    "http://$host.$http_x/",
    "http://$host:$http_x/",
]
"""URLs in which a variable could change scheme, host or port."""

READ_DIFFERENTLY = [
    "http://me@auth.test/",
    "http://me:word@auth.test/",
    "http://127.0.0.1:80@auth.test/",
    "http://127.0.0.1:80%2f@auth.test/",
    "http://auth.test#/x",
    "http://auth.test/#@other.test",
    "http://auth.test\\@other.test/",
    "http://auth.test/x\\y",
    "http://[::1",
    "http://auth.test:80:81/",
    "http://auth.test:/",
    "http://auth.test:0/",
    "http://auth.test:65536/",
    "http://auth.test:999999/",
    "http:///auth.test/",
    "http:/auth.test/",
    "http://",
    "//auth.test/",
    "ftp://auth.test/",
    "HTTP://auth.test/",
    "auth.test/",
    "http://bücher.test/",
    "http://ⓛocalhost/",
    "http://auth..test/",
    "http://auth.test/a b",
    "http://auth.test/\r\nHost: other.test",
    "http://auth.test /",
    " http://auth.test/",
]
"""Texts in which parsers find different hosts, or none."""


@pytest.mark.parametrize("url", CHOSEN_BY_CLIENTS + READ_DIFFERENTLY)
def test_a_url_whose_host_is_not_fixed_has_no_destination(url: str) -> None:
    assert destination_of(url) is None


@pytest.mark.parametrize(
    ("url", "want"),
    [
        ("http://auth.test", Destination("http", "auth.test", None, "")),
        ("http://auth.test.", Destination("http", "auth.test.", None, "")),
        ("https://auth.test:8443/x?u=$remote_addr", Destination("https", "auth.test", 8443, "/x?u=$remote_addr")),
        ("http://auth.test?x=$args", Destination("http", "auth.test", None, "?x=$args")),
        ("http://auth.test//other.test/", Destination("http", "auth.test", None, "//other.test/")),
        ("http://auth.test/@other.test", Destination("http", "auth.test", None, "/@other.test")),
        ("http://auth.test$request_uri", Destination("http", "auth.test", None, "$request_uri")),
        ("http://auth.test:81${request_uri}", Destination("http", "auth.test", 81, "${request_uri}")),
        ("http://0251.0376.0251.0376/", Destination("http", "0251.0376.0251.0376", None, "/")),
        ("http://0xa9fea9fe/", Destination("http", "0xa9fea9fe", None, "/")),
        ("http://[fd00::1]:80/", Destination("http", "[fd00::1]", 80, "/")),
        ("https://$host/auth", Destination("https", "$host", None, "/auth")),
        ("https://auth.${host}:444/auth", Destination("https", "auth.${host}", 444, "/auth")),
    ],
)
def test_a_plain_url_has_a_destination(url: str, want: Destination) -> None:
    assert destination_of(url) == want


def problems(outcome: Outcome, annotation: str) -> list[Problem]:
    return [problem for _, problem in outcome.problems if problem.path.endswith(f"/{annotation}]")]


def early(outcome: Outcome) -> list[JsonObject]:
    """Return the data of the functions that run before the requests to the backend."""
    plugins = (body.get("plugins", {}).get("serverless-pre-function", {}) for body in routes(outcome))
    return [plugin["ingress_nginx"] for plugin in plugins if plugin]


@pytest.mark.parametrize("options", [OPTIONS, STRICT])
@pytest.mark.parametrize("url", CHOSEN_BY_CLIENTS + READ_DIFFERENTLY)
def test_nothing_is_mirrored_to_a_host_that_is_not_fixed_and_the_ingress_reports_it(url: str, options: object) -> None:
    outcome = translated(ingress("web", ("/", "Prefix"), mirror_target=url), options=options)  # type: ignore[arg-type]

    if url == " http://auth.test/":  # Spaces around a value do not belong to it.
        return
    assert not any("mirror" in data for data in early(outcome))
    assert problems(outcome, "mirror-target") != []


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://169.254.169.254/latest",
        "http://0251.0376.0251.0376/",
        "http://0xa9fea9fe/",
        "http://2852039166/",
        "http://[::ffff:127.0.0.1]/",
        "http://localhost/",
        "http://LOCALHOST./",
        "http://127.0.0.1.nip.io/",
        "http://metadata.google.internal./",
        "http://mirror/",
        "http://$host/",
    ],
)
def test_a_mirror_that_the_settings_refuse_is_reported_and_the_path_is_served(url: str) -> None:
    outcome = translated(ingress("web", ("/", "Prefix"), mirror_target=url), options=STRICT)

    assert not any("mirror" in data for data in early(outcome))
    assert {status(body) for body in routes(outcome)} == {None}
    assert [each.code for each in problems(outcome, "mirror-target")] == ["NginxNotServed"]


@pytest.mark.parametrize("options", [OPTIONS, STRICT])
@pytest.mark.parametrize("url", [each for each in CHOSEN_BY_CLIENTS + READ_DIFFERENTLY if each == each.strip()])
def test_an_auth_url_whose_host_is_not_fixed_closes_the_path(url: str, options: object) -> None:
    outcome = translated(ingress("web", ("/", "Prefix"), auth_url=url), options=options)  # type: ignore[arg-type]

    assert {status(body) for body in routes(outcome)} <= {503}
    assert problems(outcome, "auth-url") != [] or outcome.problems


@pytest.mark.parametrize("url", ["https://$host/auth", "http://auth.$host:4180/auth"])
@pytest.mark.parametrize(
    ("host", "given", "is_served"),
    [
        ("shop.test", {}, True),
        ("*.shop.test", {}, True),
        ("", {}, False),
        ("shop.test", {"server_alias": "~^.*$"}, False),
    ],
)
def test_the_host_of_a_request_is_the_service_only_where_the_ingress_limits_it(
    url: str, host: str, given: dict[str, Any], is_served: bool
) -> None:
    outcome = translated(ingress("web", ("/", "Prefix"), host=host, auth_url=url, **given))

    assert any("upstream_id" in body for body in routes(outcome)) == is_served
    assert (problems(outcome, "auth-url") == []) == is_served


def test_the_service_of_the_config_map_may_not_be_chosen_by_clients_either() -> None:
    outcome = translated(ingress("web", ("/", "Prefix")), config(global_auth_url="http://$http_x/"))

    assert {status(body) for body in routes(outcome)} == {503}


def test_a_function_gets_the_fixed_part_of_its_url_to_compare() -> None:
    given: dict[str, Any] = {
        "auth_url": "https://$host:444/check?u=$remote_user",
        "mirror_target": "http://mirror.test:81$request_uri",
    }

    (data,) = {str(each): each for each in early(translated(ingress("web", ("/", "Prefix"), **given)))}.values()

    assert (data["external"]["uri"], data["external"]["base"]) == (
        "https://$host:444/check?u=$remote_user",
        "https://$host:444",
    )
    assert (data["mirror"]["uri"], data["mirror"]["base"]) == (
        "http://mirror.test:81$real_request_uri",
        "http://mirror.test:81",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auth_signin", "https://$host/login?rd=$escaped_request_uri"),
        ("permanent_redirect", "http://169.254.169.254/"),
        ("temporal_redirect", "http://169.254.169.254/"),
        ("proxy_redirect_to", "http://169.254.169.254/"),
        ("app_root", "/x"),
    ],
)
def test_addresses_for_clients_are_not_requested_by_the_gateway(name: str, value: str) -> None:
    given: dict[str, Any] = {"auth_url": "http://auth.test/", "proxy_redirect_from": "/x", name: value}

    outcome = translated(ingress("web", ("/", "Prefix"), **given), options=STRICT)

    sent = {data[kind]["uri"] for data in early(outcome) for kind in ("external", "mirror") if kind in data}
    assert sent <= {"http://auth.test/"}
