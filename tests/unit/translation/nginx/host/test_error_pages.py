"""Pages of the backend for errors, and limits of requests that end with one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apisix_ingress.model.json import FrozenJson
from tests.unit.translation.nginx.host.bodies import asking, config, early, routes
from tests.unit.translation.nginx.objects import OPTIONS, SERVICE, ingress, translated
from translation.core.options import Options

ERRORS = {**SERVICE, "metadata": {"name": "errors", "namespace": "shop"}}


def test_listed_statuses_are_shown_by_the_backend_for_errors() -> None:
    shown = ingress(
        "web", ("/", "Prefix"), custom_http_errors="404,503", default_backend="errors", proxy_body_size="1k"
    )

    got = [asking(body) for body in routes(translated(shown, ERRORS)) if body.get("upstream_id")]

    assert got
    for wanted in got:
        assert wanted["errors"]["codes"] == {"404": True, "503": True}
        assert wanted["errors"]["headers"]["X-Service-Name"] == "web"
        assert "upstream" in wanted["errors"]
        assert wanted["limit"] == 1024


def test_the_function_does_not_wait_for_long_where_teams_share_a_gateway() -> None:
    """It waits also after its client has left, and the gateway keeps the connection."""
    shown = ingress("web", ("/", "Prefix"), custom_http_errors="404", proxy_read_timeout="2000000")

    def times(options: Options) -> set[int]:
        found = [asking(body) for body in routes(translated(shown, options=options)) if body.get("upstream_id")]
        return {each["timeout"]["read"] for each in found}

    assert (times(OPTIONS), times(replace(OPTIONS, plugins="reviewed"))) == ({2_000_000}, {600})


def test_refused_requests_never_reach_the_backend_where_their_page_is_shown() -> None:
    secret = {
        "kind": "Secret",
        "metadata": {"name": "users", "namespace": "shop"},
        "stringData": {"auth": "joe:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n"},
    }
    guarded = ingress(
        "web", ("/", "Prefix"), custom_http_errors="401,403", default_backend="errors", auth_type="basic",
        auth_secret="users", whitelist_source_range="192.0.2.0/24",
    )  # fmt: skip

    got = [body for body in routes(translated(guarded, ERRORS, secret)) if body.get("upstream_id")]

    refusing = [body for body in got if asking(body).get("refused") == 403]
    assert {body["upstream_id"] for body in refusing} == {asking(body)["errors"]["upstream"] for body in refusing}
    for body in got:
        if body not in refusing:
            assert body["plugins"]["serverless-pre-function"]["ingress_nginx"]["shown"] == {"401": True, "403": True}
            assert asking(body)["errors"]["codes"] == {"401": True, "403": True}


def test_a_grpc_backend_is_guarded_without_pages_for_refused_requests() -> None:
    secret = {
        "kind": "Secret",
        "metadata": {"name": "users", "namespace": "shop"},
        "stringData": {"auth": "joe:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n"},
    }
    guarded = ingress(
        "web", ("/", "Prefix"), custom_http_errors="401", default_backend="errors", auth_type="basic",
        auth_secret="users", backend_protocol="GRPC",
    )  # fmt: skip

    got = [body for body in routes(translated(guarded, ERRORS, secret)) if body.get("upstream_id")]

    assert len(got) == 2
    for body in got:
        assert not asking(body)
        assert "shown" not in body["plugins"]["serverless-pre-function"]["ingress_nginx"]


def limiting(body: FrozenJson) -> FrozenJson:
    """Return the data of a route's function that limits requests; empty without one."""
    found: FrozenJson = early(body).get("limits", {})
    return found


def test_a_page_is_shown_for_requests_beyond_a_limit() -> None:
    limited = ingress(
        "web", ("/", "Prefix"), custom_http_errors="503", default_backend="errors", limit_rps="2", limit_rpm="60",
        limit_connections="3", limit_allowlist="192.0.2.0/24",
    )  # fmt: skip

    got = translated(limited, ERRORS)

    want = {
        "id": "ingress-nginx:shop_web_limits", "rate": 2, "burst": 10, "count": 360, "seconds": 60, "status": 503,
        "shown": True, "spared": ["192.0.2.0/24"],
    }  # fmt: skip
    assert [limiting(body) for body in routes(got) if body.get("upstream_id")] == [want, want]
    assert [set(each.body["plugins"]) for each in got.records if each.key.kind == "plugin_configs"] == [{"limit-conn"}]


@pytest.mark.parametrize(("codes", "protocol"), [("404", "HTTP"), ("503", "GRPC")])
def test_without_a_page_for_their_status_plugins_limit_requests(codes: str, protocol: str) -> None:
    limited = ingress(
        "web", ("/", "Prefix"), limit_rps="2", custom_http_errors=codes, default_backend="errors",
        backend_protocol=protocol,
    )  # fmt: skip

    got = translated(limited, ERRORS)

    assert not any(map(limiting, routes(got)))
    assert [set(each.body["plugins"]) for each in got.records if each.key.kind == "plugin_configs"] == [{"limit-req"}]


def test_without_a_backend_for_errors_a_status_of_the_config_map_is_hidden() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix")), config(custom_http_errors="404")))

    errors = next(asking(body)["errors"] for body in got if body.get("upstream_id"))
    assert errors["without"] == 500
    assert "upstream" not in errors


@pytest.mark.parametrize(("codes", "asks"), [("503", True), ("500,502", False)])
def test_the_page_of_503_is_shown_for_a_service_without_endpoints(codes: str, asks: bool) -> None:
    got = routes(translated(ingress("web", ("/", "Exact"), custom_http_errors=codes, default_backend="web")))

    early = [body["plugins"].get("serverless-pre-function", {}) for body in got if "timeout" in body]
    assert early
    assert all(("#(found.nodes" in str(each.get("functions"))) == asks for each in early)
