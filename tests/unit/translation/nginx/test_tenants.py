"""Hosts of ingress-nginx with the settings for users who do not trust each other."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.offline import Outcome
from tests.unit.translation.nginx.objects import OPTIONS, ingress, translated

STRICT = replace(OPTIONS, external_addresses="refuse-internal", plugins="reviewed")


def statuses(outcome: Outcome) -> set[int | None]:
    """Return the responses of the routes without a backend; None for routes with one."""
    found = (record.body for record in outcome.records if record.key.kind == "routes")
    plugins = (body.get("plugins", {}).get("fault-injection") for body in found)
    return {each["abort"]["http_status"] if each else None for each in plugins}


def password_file(line: str) -> dict[str, Any]:
    data = {"auth": base64.b64encode(line.encode()).decode()}
    return {"kind": "Secret", "metadata": {"name": "users", "namespace": "shop"}, "data": data}


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9090@auth.example/v1/routes",
        "http://127.0.0.1:9090%2f@auth.example/",
        "http://auth.example@127.0.0.1/",
        "http://127.0.0.1?@auth.example/",
        "http://127.0.0.1\\@auth.example/",
        "http://auth.example#$http_x",
        "http://auth.example$http_x/",
        "http://$http_x/",
    ],
)
def test_an_auth_url_whose_host_depends_on_the_parser_is_not_served_or_closes_the_path(url: str) -> None:
    assert statuses(translated(ingress("web", ("/", "Prefix"), auth_url=url), options=STRICT)) <= {503}


@pytest.mark.parametrize("url", ["https://auth.example:8443/check?u=$remote_addr", "http://auth.example"])
def test_a_plain_auth_url_is_called(url: str) -> None:
    assert statuses(translated(ingress("web", ("/", "Prefix"), auth_url=url), options=STRICT)) == {None}


@pytest.mark.parametrize(
    "hashed",
    [
        "$6$rounds=999999999$salt$hash",
        "$5$rounds=999999999$salt$hash",
        "$2y$31$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZabcdef",
        "$y$jFT$salt$hash",
        "$7$DU..../....salt$hash",
        "$sha1$4000000000$salt$hash",
        "$md5,rounds=4000000000$salt$$hash",
    ],
)
def test_password_hashes_that_occupy_a_worker_for_long_close_the_path(hashed: str) -> None:
    web = ingress("web", ("/", "Prefix"), auth_type="basic", auth_secret="users")

    assert statuses(translated(web, password_file(f"me:{hashed}"), options=STRICT)) == {503}


@pytest.mark.parametrize(
    "hashed",
    [
        "$6$salt$hash",
        "$6$rounds=5000$salt$hash",
        "$apr1$salt$hash",
        "$2y$12$abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZabcdef",
        "$y$j9T$salt$hash",
        "{SHA}hash",
        "{PLAIN}word",
        "abJnggxhB/yWI",
    ],
)
def test_common_password_hashes_are_checked(hashed: str) -> None:
    web = ingress("web", ("/", "Prefix"), auth_type="basic", auth_secret="users")

    assert statuses(translated(web, password_file(f"me:{hashed}"), options=STRICT)) == {None}


@pytest.mark.parametrize("name", ["mirror_host", "auth_signin_redirect_param", "auth_cache_key", "x_forwarded_prefix"])
def test_an_annotation_with_a_line_break_is_ignored_or_not_served(name: str) -> None:
    given: dict[str, Any] = {"auth_url": "http://auth.example", "auth_signin": "http://in.example"}
    given |= {"rewrite_target": "/x", "mirror_target": "http://mirror.example", name: "a\r\nX-Evil: 1"}

    outcome = translated(ingress("web", ("/", "Prefix"), **given), options=STRICT)

    assert not any("X-Evil" in str(record.body) for record in outcome.records)
