"""Plugins beyond the recording, through a running gateway."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest

from e2e.devgateway.process import DevGateway
from tests.unit.e2e.devgateway.requests import get, node


def route(gateway: DevGateway, ports: dict[str, int], **plugins: dict[str, Any]) -> None:
    named = {name.replace("_", "-"): conf for name, conf in plugins.items()}
    gateway.put("/routes/p", {"uri": "/p", "upstream": node(ports), "plugins": named})


def test_echo_frames_the_body(gateway: DevGateway, ports: dict[str, int]) -> None:
    route(gateway, ports, echo={"before_body": "<", "body": "x", "after_body": ">", "headers": {"X-E": "1"}})
    status, headers, body = get(gateway, "/p")
    assert (status, headers["X-E"], body) == (200, "1", "<x>")


def test_response_rewrite_changes_status_body_and_headers(gateway: DevGateway, ports: dict[str, int]) -> None:
    changes = {"set": {"X-Uri": "$uri"}, "remove": ["X-Upstream"]}
    route(gateway, ports, response_rewrite={"status_code": 201, "body": "new", "headers": changes})
    status, headers, body = get(gateway, "/p")
    assert (status, headers["X-Uri"], "X-Upstream" in headers, body) == (201, "/p", False, "new")


def test_response_rewrite_filters_the_body(gateway: DevGateway, ports: dict[str, int]) -> None:
    route(
        gateway, ports, response_rewrite={"filters": [{"regex": '"upstream": "u(.)"', "replace": '"upstream": "$1"'}]}
    )
    assert get(gateway, "/p")[2]["upstream"] == "1"


def test_cors_responds_to_preflights_and_sets_headers(gateway: DevGateway, ports: dict[str, int]) -> None:
    route(gateway, ports, cors={"allow_origins": "http://a.com", "allow_methods": "GET"})
    status, headers, _ = get(gateway, "/p", {"Origin": "http://a.com"}, method="OPTIONS")
    assert (status, headers["Access-Control-Allow-Methods"]) == (200, "GET")
    assert get(gateway, "/p", {"Origin": "http://a.com"})[1]["Access-Control-Allow-Origin"] == "http://a.com"
    assert "Access-Control-Allow-Origin" not in get(gateway, "/p", {"Origin": "http://b.com"})[1]


def test_fault_injection_aborts_where_its_vars_hold(gateway: DevGateway, ports: dict[str, int]) -> None:
    abort = {"http_status": 418, "body": "tea", "vars": [[["arg_x", "==", "1"]]]}
    route(gateway, ports, fault_injection={"abort": abort})
    assert get(gateway, "/p?x=1")[::2] == (418, "tea")
    assert get(gateway, "/p")[0] == 200


@pytest.mark.parametrize(("replacement", "want"), [("/new/${1}", "/new/p"), ("$1", "p"), ("", "")])
def test_a_redirect_inserts_the_rewritten_path(
    gateway: DevGateway, ports: dict[str, int], replacement: str, want: str
) -> None:
    rewrite = {"use_real_request_uri_unsafe": True, "regex_uri": ["^/(.*)$", replacement]}
    route(gateway, ports, proxy_rewrite=rewrite, redirect={"uri": "https://a.test$upstream_uri"})
    assert get(gateway, "/p")[1]["Location"] == f"https://a.test{want}"


def test_request_id_is_made_or_kept(gateway: DevGateway, ports: dict[str, int]) -> None:
    route(gateway, ports, request_id={})
    _, headers, seen = get(gateway, "/p")
    assert headers["X-Request-Id"] == seen["headers"]["X-Request-Id"]
    assert get(gateway, "/p", {"X-Request-Id": "mine"})[1]["X-Request-Id"] == "mine"


def test_disabled_and_filtered_plugins_do_not_run(gateway: DevGateway, ports: dict[str, int]) -> None:
    only = {"_meta": {"filter": [["arg_on", "==", "1"]]}, "uri": "/other"}
    route(gateway, ports, redirect=only, fault_injection={"abort": {"http_status": 500}, "_meta": {"disable": True}})
    assert (get(gateway, "/p")[0], get(gateway, "/p?on=1")[0]) == (200, 302)


def test_plugin_that_is_only_known_is_ignored(gateway: DevGateway, ports: dict[str, int]) -> None:
    route(gateway, ports, prometheus={})
    assert get(gateway, "/p")[0] == 200


def token(secret: str, **claims: Any) -> str:
    def part(value: bytes) -> str:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")

    text = ".".join(part(json.dumps(value).encode()) for value in ({"alg": "HS256"}, claims))
    return f"{text}.{part(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest())}"


def test_jwt_is_verified(gateway: DevGateway, ports: dict[str, int]) -> None:
    gateway.put("/consumers/jw", {"username": "jw", "plugins": {"jwt-auth": {"key": "jk", "secret": "s" * 32}}})
    route(gateway, ports, jwt_auth={})
    good, later = token("s" * 32, key="jk", exp=time.time() + 60), time.time() - 60
    answers = {
        "good": get(gateway, "/p", {"Authorization": f"Bearer {good}"}),
        "query": get(gateway, f"/p?jwt={good}"),
        "wrong secret": get(gateway, "/p", {"Authorization": token("t" * 32, key="jk")}),
        "expired": get(gateway, "/p", {"Authorization": token("s" * 32, key="jk", exp=later)}),
        "unknown": get(gateway, "/p", {"Authorization": token("s" * 32, key="zz")}),
        "none": get(gateway, "/p"),
    }
    want = {"good": 200, "query": 200, "wrong secret": 401, "expired": 401, "unknown": 401, "none": 401}
    assert {name: answer[0] for name, answer in answers.items()} == want
    assert answers["good"][2]["headers"]["X-Consumer-Username"] == "jw"


def test_credential_of_a_consumer_opens_the_route(gateway: DevGateway, ports: dict[str, int]) -> None:
    gateway.put("/consumers/jack", {"username": "jack"})
    gateway.put("/consumers/jack/credentials/c1", {"plugins": {"key-auth": {"key": "ck"}}})
    route(gateway, ports, key_auth={})
    assert get(gateway, "/p", {"apikey": "ck"})[2]["headers"]["X-Consumer-Username"] == "jack"
    gateway.call("DELETE", "/consumers/jack")
    assert get(gateway, "/p", {"apikey": "ck"})[0] == 401
