"""Routes as gateways get them: merged, and with one function instead of several plugins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apisix_ingress.model.json import FrozenJson
from tests.unit.translation.nginx.host.bodies import config, routes
from tests.unit.translation.nginx.objects import COMPACT, OPTIONS, ingress, translated
from translation.nginx.functions.attached import PASS
from translation.nginx.functions.proxying import SEND_REQUEST
from translation.nginx.functions.requests import REQUEST
from translation.safety.code import code_faults

FUNCTION = {"pre_function": REQUEST}
SECURE = {"secure": {"Strict-Transport-Security": "max-age=31536000; includeSubDomains"}}
CLIENT = {"addresses": "x-forwarded-for", "host": "original_x_forwarded_host"}
VALUES = {"client": CLIENT, "id": True, "unbuffered": "known", **SECURE}


def compact(*objects: dict[str, Any]) -> dict[tuple[str, ...], FrozenJson]:
    """Return the routes by their paths; the tests have one route for each of them."""
    found = routes(translated(*objects, options=COMPACT))
    assert len({tuple(body["uris"]) for body in found}) == len(found)
    return {tuple(body["uris"]): body for body in found}


def test_a_path_is_one_route_for_both_schemes_and_all_paths_below_it() -> None:
    got = compact(ingress("web", ("/api", "Prefix"), ("/only", "Exact")))

    assert {uris: body["priority"] for uris, body in got.items()} == {("/api", "/api/*"): 2, ("/only",): 2, ("/*",): 2}
    assert not any("vars" in body for body in got.values())
    assert got["/api", "/api/*"]["plugins"] == got["/only",]["plugins"]
    assert got["/api", "/api/*"]["plugins"] == {
        "client-control": {"max_body_size": 1048576, "_meta": FUNCTION, "ingress_nginx": VALUES}
    }
    assert got["/*",]["plugins"] == {
        "client-control": {"max_body_size": 1048576, "_meta": FUNCTION, "ingress_nginx": SECURE},
        "fault-injection": {"abort": {"http_status": 404}},
    }


def test_a_path_with_and_without_a_slash_at_its_end_has_routes_for_both() -> None:
    found = compact(ingress("web", ("/a", "Prefix"), ("/a/", "Prefix")))
    assert ("/a", "/a/*") in found


def test_an_exact_path_of_another_ingress_keeps_its_own_route() -> None:
    got = compact(
        ingress("web", ("/api", "Prefix")),
        ingress("own", ("/api", "Exact"), age=1, proxy_read_timeout="7"),
    )

    assert got["/api",]["timeout"] == {"connect": 5, "send": 60, "read": 7}
    assert got["/api/*",]["timeout"] == {"connect": 5, "send": 60, "read": 60}


def test_an_edit_that_splits_a_merged_route_writes_new_routes_for_its_parts() -> None:
    """The merged one is deleted after that; as one of its parts, it would leave the other part of the path open."""
    before = compact(ingress("web", ("/api", "Prefix")))
    after = compact(
        ingress("web", ("/api", "Prefix")), ingress("own", ("/api", "Exact"), age=1, proxy_read_timeout="7")
    )

    merged = before["/api", "/api/*"]["id"]
    assert merged not in {body["id"] for body in after.values()}


def test_a_path_that_redirects_to_https_is_one_route_that_serves_no_http() -> None:
    got = compact(ingress("web", ("/api", "Prefix"), force_ssl_redirect="true"))

    values = {**VALUES, "https": {"code": 308, "keeps_slash": False}}
    assert got["/api", "/api/*"]["plugins"]["client-control"]["ingress_nginx"] == values
    assert got["/*",]["plugins"]["client-control"]["ingress_nginx"] == {**SECURE, "https": values["https"]}
    assert not any("vars" in body for body in got.values())


def test_a_redirect_before_other_checks_keeps_its_route() -> None:
    listed = routes(
        translated(
            ingress("web", ("/api", "Prefix"), force_ssl_redirect="true", denylist_source_range="10.0.0.0/8"),
            options=COMPACT,
        )
    )

    of_path = [body for body in listed if body["uris"] == ["/api", "/api/*"]]
    assert [body.get("vars") for body in of_path] == [
        [["scheme", "==", "http"]],
        [["remote_addr", "ipmatch", ["10.0.0.0/8"]]],
        [["scheme", "==", "https"]],
    ]


def test_routes_with_different_backends_for_the_schemes_are_not_merged() -> None:
    got = routes(translated(ingress("web", ("/api", "Prefix"), backend_protocol="AUTO_HTTP"), options=COMPACT))

    served = [(body["uris"], body["vars"][0][2]) for body in got if "upstream_id" in body]
    assert served == [(["/api", "/api/*"], "http"), (["/api", "/api/*"], "https")]


def test_headers_of_the_operator_replace_those_of_the_function() -> None:
    headers = {
        "kind": "ConfigMap",
        "metadata": {"name": "headers", "namespace": "shop"},
        "data": {"X-Scheme": "own", "X-Forwarded-For": "10.0.0.1", "X-Team": "a"},
    }
    got = compact(
        ingress("web", ("/api", "Prefix")),
        headers,
        config(proxy_set_headers="shop/headers", generate_request_id="false"),
    )

    plugins = got["/api", "/api/*"]["plugins"]
    assert plugins["client-control"]["ingress_nginx"] == {name: VALUES[name] for name in VALUES if name != "id"}
    assert plugins["proxy-rewrite"] == {
        "headers": {"set": headers["data"], "remove": ["X-Forwarded-For"]},
        "use_real_request_uri_unsafe": True,
    }


def test_constant_headers_of_cors_are_written_by_the_function() -> None:
    headers = {"kind": "ConfigMap", "metadata": {"name": "headers", "namespace": "shop"}, "data": {"X-Team": "a"}}
    found = translated(
        ingress("web", ("/api", "Prefix"), enable_cors="true"),
        headers,
        config(add_headers="shop/headers"),
        options=COMPACT,
    )
    served = next(body["plugins"] for body in routes(found) if "upstream_id" in body)

    assert served["response-rewrite"] == {"headers": {"set": {"X-Team": "a"}}}
    function = dict(served["client-control"]["ingress_nginx"])
    assert function.pop("headers")["Access-Control-Allow-Origin"] == "*"
    assert function == VALUES


def test_the_judge_of_records_accepts_the_function_only_where_it_belongs() -> None:
    assert list(code_faults("client-control", {"_meta": FUNCTION})) == []
    assert [fault.steps for fault in code_faults("proxy-rewrite", {"_meta": FUNCTION})] == [("_meta", "pre_function")]
    inside = {"_meta": FUNCTION, "ingress_nginx": {"secure": {"_meta": FUNCTION}}}
    assert [fault.steps for fault in code_faults("client-control", inside)] == [("ingress_nginx", "secure", "_meta")]
    changed = {"_meta": {"pre_function": f"{REQUEST} "}}
    assert [fault.steps for fault in code_faults("client-control", changed)] == [("_meta", "pre_function")]


def test_the_function_runs_other_functions_which_the_judge_of_records_knows() -> None:
    got = compact(ingress("web", ("/api", "Prefix"), proxy_http_version="1.0"))

    plugins = got["/api", "/api/*"]["plugins"]
    assert plugins["client-control"]["ingress_nginx"]["functions"] is True
    plugin = plugins["serverless-post-function"]
    assert plugin["functions"] == [SEND_REQUEST, PASS]
    assert list(code_faults("serverless-post-function", plugin)) == []
    texts: tuple[object, ...] = ("return 1", 7, [])
    for text in texts:
        changed = code_faults("serverless-post-function", {**plugin, "functions": [PASS, text]})
        assert [fault.steps for fault in changed] == [("functions", 1)]


def test_the_function_passes_the_policies_of_records() -> None:
    options = replace(COMPACT, code_plugins="refuse", plugins="reviewed")
    got = routes(translated(ingress("web", ("/api", "Prefix")), options=options))
    assert [body["uris"] for body in got if "upstream_id" in body] == [["/api", "/api/*"]]


def test_manifests_are_made_of_one_route_per_branch() -> None:
    got = routes(translated(ingress("web", ("/api", "Prefix")), options=OPTIONS))
    assert len(got) == 6
    assert not any("_meta" in body["plugins"].get("client-control", {}) for body in got)
