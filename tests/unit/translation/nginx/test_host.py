"""Hosts of ingress-nginx: from Ingresses to routes, as a gateway tries them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.offline import Outcome
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.secrets.fields import place_of
from apisix_ingress.model.secrets.redaction import masked
from tests.unit.translation.nginx.objects import OPTIONS, SERVICE, ingress, translated
from tests.unit.translation.objects import pem
from translation.core.options import Options
from translation.nginx.effects.balancing.canary import share_pattern
from translation.nginx.functions.headers import INVALID, UNDERSCORES


def routes(outcome: Outcome) -> list[FrozenJson]:
    """Return the routes in the order in which they are tried."""
    found = [record.body for record in outcome.records if record.key.kind == "routes"]
    return sorted(found, key=lambda body: -body["priority"])


def status(body: FrozenJson) -> int | None:
    """Return the response of a route without a backend."""
    found = body.get("plugins", {}).get("fault-injection")
    return found["abort"]["http_status"] if found else None


def test_without_the_setting_an_nginx_ingress_yields_no_record() -> None:
    assert not translated(ingress("web", ("/", "Prefix")), options=Options()).records


def test_a_prefix_path_matches_whole_segments_and_the_host_answers_404_elsewhere() -> None:
    got = routes(translated(ingress("web", ("/foo", "Prefix"))))

    served = {tuple(body["uris"]) for body in got if body.get("upstream_id")}
    assert served == {("/foo/*",), ("/foo",)}
    assert {tuple(body["uris"]) for body in got if status(body) == 404} == {("/*",)}


def test_a_regular_expression_makes_patterns_of_every_path_of_the_host() -> None:
    regex = ingress("regex", ("/v[0-9]+", "ImplementationSpecific"), age=1, use_regex="true")

    got = routes(translated(ingress("web", ("/plain", "Exact")), regex))

    patterns = list(dict.fromkeys(body["vars"][0][2] for body in got))
    assert patterns == ["^/v[0-9]+", "^/plain", "^/"]
    assert all(body["uris"] == ["/*"] and body["vars"][0][1] == "~*" for body in got)


def test_of_one_host_and_path_the_oldest_ingress_wins() -> None:
    newer = ingress("newer", ("/", "Prefix"), age=2, upstream_vhost="newer.test")
    older = ingress("older", ("/", "Prefix"), age=1, upstream_vhost="older.test")

    got = routes(translated(newer, older))

    assert {body["plugins"]["proxy-rewrite"]["host"] for body in got} == {"older.test"}


def test_an_ingress_with_an_invalid_value_leaves_the_rest_of_the_host_alone() -> None:
    bad = ingress("bad", ("/bad", "Prefix"), age=1, permanent_redirect="two words")

    outcome = translated(ingress("web", ("/good", "Prefix")), bad)

    assert not any("/bad" in uri for body in routes(outcome) for uri in body["uris"])
    assert any("/good" in uri for body in routes(outcome) for uri in body["uris"])
    assert [problem.code for owner, problem in outcome.problems if owner.name == "bad"] == ["NginxNotServed"]


def test_annotations_without_effect_are_warnings_that_say_why() -> None:
    outcome = translated(
        ingress("web", ("/", "Prefix"), foo="1", proxy_max_temp_file_size="1m", ssl_redirect="maybe", canary_weight="9")
    )

    assert {problem.path.rpartition("/")[2][:-1]: problem.message for _, problem in outcome.problems} == {
        "foo": "unknown annotation: it has no effect; correct its name or remove it",
        "proxy-max-temp-file-size": "has no effect: Sizes of buffers are settings of the whole gateway (nginx_config"
        " in config.yaml).",
        "ssl-redirect": "the value is not valid, so the default applies, as with ingress-nginx; correct or remove it",
        "canary-weight": "has no effect: It is only used together with canary, as in ingress-nginx.",
    }
    assert {(problem.code, problem.severity) for _, problem in outcome.problems} == {("NginxNoEffect", "warning")}


def test_a_path_whose_protection_cannot_be_made_answers_503() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix"), enable_modsecurity="true")))

    assert {status(body) for body in got} == {503}


SECRET = {
    "kind": "Secret",
    "metadata": {"name": "ca", "namespace": "shop"},
    "stringData": {"ca.crt": pem().certificate},
}


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

    got = routes(translated(ingress("web", ("/", "Prefix"), auth_type="basic", auth_secret="users"), secret))

    guards = [body["plugins"]["serverless-pre-function"] for body in got]
    assert {guard["ingress_nginx"]["basic"]["users"]["joe"] for guard in guards} == {
        "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="
    }
    assert not any("{SHA}5en6" in function for guard in guards for function in guard["functions"])


def test_satisfy_any_lets_listed_addresses_in_and_asks_the_others() -> None:
    guarded = ingress(
        "web", ("/", "Prefix"), satisfy="any", whitelist_source_range="192.0.2.0/24", auth_url="http://auth.test/check"
    )

    got = routes(translated(guarded))

    first = [body for body in got if ["remote_addr", "ipmatch", ["192.0.2.0/24"]] in body.get("vars", [])]
    assert first
    assert not any("serverless-pre-function" in body["plugins"] for body in first)
    assert any("serverless-pre-function" in body["plugins"] for body in got if body not in first)
    assert all(body["priority"] > rest["priority"] for body in first[:1] for rest in got if rest not in first)


def test_a_canary_shares_the_service_on_every_path_of_the_main_ingress() -> None:
    canary = ingress("canary", ("/a", "Prefix"), service="next", canary="true", canary_weight="30")
    service = {**SERVICE, "metadata": {"name": "next", "namespace": "shop"}}

    got = routes(translated(ingress("web", ("/a", "Prefix"), ("/b", "Prefix")), canary, service))

    split = {uri for body in got if "traffic-split" in body.get("plugins", {}) for uri in body["uris"]}
    assert split == {"/a/*", "/a", "/b/*", "/b"}


def test_a_host_with_a_certificate_of_any_ingress_redirects_to_https() -> None:
    tls = ingress("tls", ("/b", "Prefix"), age=1)
    tls["spec"]["tls"] = [{"hosts": ["shop.test"], "secretName": "absent"}]

    got = routes(translated(ingress("web", ("/a", "Prefix")), tls))

    redirected = {uri for body in got if "redirect" in body.get("plugins", {}) for uri in body["uris"]}
    assert {"/a", "/b"} <= redirected


def test_a_host_is_translated_from_its_own_ingresses_only() -> None:
    one, two = (ingress(name, ("/", "Prefix"), host=f"{name}.test") for name in ("one", "two"))
    outcome = translated(one, two)

    reads = outcome.world.dependents.reads_of(ObjectKey("NginxHost", "", "two.test"))
    hosts = {read.value for read in reads if isinstance(read, IndexKey) and read.by == "nginx-host"}
    assert hosts == {"two.test", "*.test"}


def test_endpoints_are_read_by_the_service_and_not_by_the_host() -> None:
    outcome = translated(ingress("web", ("/", "Prefix")))

    reads = outcome.world.dependents.reads_of(ObjectKey("NginxHost", "", "shop.test"))
    assert not any(read.kind == "EndpointSlice" for read in reads)


def test_password_hashes_are_hidden_where_records_are_shown() -> None:
    secret = {
        "kind": "Secret",
        "metadata": {"name": "users", "namespace": "shop"},
        "stringData": {"auth": "joe:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n"},
    }

    got = routes(translated(ingress("web", ("/", "Prefix"), auth_type="basic", auth_secret="users"), secret))

    assert "5en6G6" not in str(masked(got[0], place_of("routes", "1")))


def test_an_auth_url_that_the_settings_refuse_closes_the_path() -> None:
    strict = replace(OPTIONS, external_addresses="refuse-internal")
    guarded = ingress("web", ("/", "Prefix"), auth_url="http://169.254.169.254/latest")

    assert {status(body) for body in routes(translated(guarded, options=strict))} == {503}


def test_a_client_certificate_of_another_namespace_closes_the_path() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "cert", "namespace": "other"}, "stringData": {"tls.crt": "x"}}

    got = routes(translated(ingress("web", ("/", "Prefix"), proxy_ssl_secret="other/cert"), secret))

    assert {status(body) for body in got} == {503}


def config(**data: str) -> dict[str, object]:
    """Return the ConfigMap of ingress-nginx; underscores in keys are dashes."""
    given = {key.replace("_", "-"): text for key, text in data.items()}
    return {"kind": "ConfigMap", "metadata": {"name": "config", "namespace": "ingress-nginx"}, "data": given}


def set_headers(body: FrozenJson) -> set[str]:
    """Return the names of the headers that a route sets in answers."""
    return set(body.get("plugins", {}).get("response-rewrite", {}).get("headers", {}).get("set", {}))


def test_answers_without_a_backend_have_the_headers_of_the_location() -> None:
    listed = ingress("web", ("/", "Prefix"), enable_cors="true", whitelist_source_range="192.0.2.0/24")

    got = [body for body in routes(translated(listed)) if status(body) == 403]

    schemes = {next(when[2] for when in body["vars"] if when[0] == "scheme"): set_headers(body) for body in got}
    assert "Access-Control-Allow-Origin" in schemes["http"] & schemes["https"]
    assert schemes["https"] - schemes["http"] == {"Strict-Transport-Security"}


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
    told = [plugins["serverless-pre-function"]["ingress_nginx"]["forwarded"] for plugins in served]
    assert told == [{"port": "80", "keeps_host": False}, {"port": "443", "keeps_host": False}]
    redirects = {plugins["redirect"]["uri"].partition("$http_x")[0] for plugins in map(dict, _redirecting(got))}
    assert redirects == {"https://$original_x_forwarded_host", "https://$host"}


def _redirecting(got: list[FrozenJson]) -> list[FrozenJson]:
    return [body["plugins"] for body in got if "redirect" in body.get("plugins", {})]


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


def test_answers_are_compressed_as_the_config_map_says() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix")), config(use_gzip="true", gzip_types="image/png")))

    gzip = next(body["plugins"]["gzip"] for body in got if body.get("upstream_id"))
    assert gzip == {"types": ["text/html", "image/png"], "comp_level": 1, "min_length": 256, "vary": True}


def asking(body: FrozenJson) -> FrozenJson:
    """Return what the function of a route reads that asks backends in place of the gateway; empty without one."""
    plugin = body.get("plugins", {}).get("serverless-post-function", {})
    return plugin["ingress_nginx"] if plugin.get("phase") == "before_proxy" else {}


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
    """Return what the function of a route reads that limits requests; empty without one."""
    found: FrozenJson = early(body).get("limits", {})
    return found


def early(body: FrozenJson) -> FrozenJson:
    """Return what the functions of a route read that run before the backend is asked."""
    found: FrozenJson = body.get("plugins", {}).get("serverless-pre-function", {}).get("ingress_nginx", {})
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


def test_responses_with_a_listed_status_are_retried() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix"), proxy_next_upstream="error http_503 non_idempotent")))

    wanted = next(asking(body) for body in got if body.get("upstream_id"))
    assert (wanted["again"], wanted["tries"], wanted["any_method"]) == ({"error": True, "503": True}, 3, True)


def test_redirects_and_cookies_of_a_backend_are_changed() -> None:
    changed = ingress(
        "web", ("/", "Prefix"), proxy_redirect_from="http://inner.test/", proxy_redirect_to="https://shop.test/",
        proxy_cookie_domain=".Inner.test shop.test", proxy_cookie_path="/in /out",
    )  # fmt: skip

    got = routes(translated(changed))

    function = next(body["plugins"]["serverless-post-function"] for body in got if body.get("upstream_id"))
    assert function["phase"] == "header_filter"
    assert function["ingress_nginx"] == {
        "redirect": {"from": "http://inner.test/", "to": "https://shop.test/"},
        "cookie_path": {"from": "/in", "to": "/out"},
        "cookie_domain": {"from": "inner.test", "to": "shop.test"},
    }


def test_a_mirror_gets_a_copy_of_what_the_client_sent() -> None:
    mirrored = ingress(
        "web", ("/", "Prefix"), mirror_target="http://mirror.test:81$request_uri", mirror_host="shadow.test"
    )

    got = next(body for body in routes(translated(mirrored)) if body.get("upstream_id"))

    assert got["plugins"]["serverless-pre-function"]["ingress_nginx"]["mirror"] == {
        "uri": "http://mirror.test:81$real_request_uri",
        "host": "shadow.test",
        "with_query": False,
        "with_body": True,
    }


NEXT = {**SERVICE, "metadata": {"name": "next", "namespace": "shop"}}


def split(body: FrozenJson) -> list[FrozenJson]:
    """Return the rules by which a route gives requests to a canary."""
    found: list[FrozenJson] = body["plugins"]["traffic-split"]["rules"]
    return found


def test_the_affinity_cookie_decides_whether_a_client_gets_the_canary() -> None:
    sticky = ingress("web", ("/", "Prefix"), affinity="cookie")
    canary = ingress("canary", ("/", "Prefix"), service="next", canary="true", canary_weight="50")

    got = [split(body) for body in routes(translated(sticky, canary, NEXT)) if "traffic-split" in body["plugins"]]

    decided = [rule["match"][0]["vars"][0] for rules in got for rule in rules]
    assert decided == 2 * [["request_id", "~~", "^(?:[01234567])"], ["cookie_INGRESSCOOKIE", "~~", "^(?:[01234567])"]]


def test_a_share_of_ids_matches_the_pattern_of_a_share() -> None:
    for share, total in ((1, 100), (33, 100), (99, 100), (7, 1000)):
        pattern = re.compile(share_pattern(share, total))
        found = sum(bool(pattern.match(f"{number:03x}")) for number in range(4096))
        assert found == round(4096 * share / total)


def test_a_canary_gets_no_requests_while_its_main_service_has_no_endpoints() -> None:
    canary = ingress("canary", ("/", "Prefix"), service="next", canary="true", canary_weight="100")
    ready = {
        "kind": "EndpointSlice",
        "metadata": {"name": "next", "namespace": "shop", "labels": {"kubernetes.io/service-name": "next"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"ready": True}}],
    }

    outcome = translated(ingress("web", ("/", "Prefix")), canary, NEXT, ready)

    upstreams = [record.body for record in outcome.records if record.key.kind == "upstreams"]
    assert upstreams
    assert all(body["nodes"] == [] for body in upstreams)


def test_an_alias_without_a_certificate_is_not_redirected_to_https() -> None:
    aliased = ingress("web", ("/", "Prefix"), server_alias="alias.test")
    aliased["spec"]["tls"] = [{"hosts": ["shop.test"], "secretName": "tls"}]

    got = routes(translated(aliased))

    redirects = [body["vars"] for body in got if "redirect" in body.get("plugins", {})]
    assert all(["host", "!", "in", ["alias.test"]] in found for found in redirects)
    served = [body for body in got if body.get("upstream_id") and ["scheme", "==", "http"] in body["vars"]]
    assert served
    assert all("alias.test" in body["hosts"] for body in served)


def test_a_rewrite_to_a_url_keeps_groups_and_the_query() -> None:
    moved = ingress(
        "web", ("/old/(.*)", "ImplementationSpecific"), use_regex="true", rewrite_target="https://new.test/$1"
    )

    got = _redirecting(routes(translated(moved)))

    assert got[0]["redirect"] == {
        "regex_uri": ["(?i)^[\\s\\S]*?(?:/old/(.*))[\\s\\S]*$", "https://new.test/$1"],
        "encode_uri": True,
        "append_query_string": True,
        "ret_code": 302,
    }


def test_the_last_ingress_with_affinity_configures_the_cookie_which_only_its_paths_set() -> None:
    plain = ingress("plain", ("/plain", "Exact"))
    first = ingress("first", ("/first", "Exact"), age=1, affinity="cookie", session_cookie_name="first")
    last = ingress("last", ("/last", "Exact"), age=2, affinity="cookie", session_cookie_name="last")

    got = routes(translated(plain, first, last))

    added = {
        body["uris"][0]: body["plugins"].get("response-rewrite", {}).get("headers", {}).get("add")
        for body in got
        if ["cookie_last", "!", "~~", ".+"] in body.get("vars", [])
    }
    assert set(added) == {"/plain", "/first", "/last"}
    assert {path for path, cookie in added.items() if cookie} == {"/first", "/last"}


@pytest.mark.parametrize("regex", ["false", "true"])
def test_a_further_path_changes_no_route_of_another_path(regex: str) -> None:
    old = [("/one", "ImplementationSpecific"), ("/longer", "ImplementationSpecific")]
    before = translated(ingress("web", *old, use_regex=regex))

    after = translated(ingress("web", *old, use_regex=regex), ingress("new", ("/new", "ImplementationSpecific"), age=1))

    bodies = {record.key: record.body for record in after.records}
    assert [record.key for record in before.records if bodies.get(record.key) != record.body] == []


def functions(body: FrozenJson) -> list[str]:
    """Return the functions of a route that run before the backend is asked."""
    found: list[str] = body.get("plugins", {}).get("serverless-pre-function", {}).get("functions", [])
    return found


TRUSTING: tuple[tuple[dict[str, Any], ...], ...] = (
    (ingress("web", ("/", "Prefix"), auth_url="http://auth.example/", auth_response_headers="X-Auth-User"),),
    (SECRET, ingress("web", ("/", "Prefix"), auth_tls_secret="shop/ca", auth_tls_verify_client="optional")),
    (
        ingress("web", ("/", "Prefix")),
        ingress("other", ("/", "Prefix"), age=1, service="other", canary="true", canary_by_header="X_Canary"),
        {**SERVICE, "metadata": {"name": "other", "namespace": "shop"}},
    ),
)


@pytest.mark.parametrize("objects", TRUSTING)
def test_headers_with_an_underscore_are_dropped_where_a_header_is_trusted(objects: tuple[dict[str, Any], ...]) -> None:
    allowed = config(enable_underscores_in_headers="true")

    got = [body for body in routes(translated(*objects)) if body.get("upstream_id")]
    got_allowed = [body for body in routes(translated(*objects, allowed)) if body.get("upstream_id")]

    assert got
    assert all(functions(body)[0] == UNDERSCORES for body in got)
    assert not any(UNDERSCORES in functions(body) for body in got_allowed)


def test_a_plain_path_has_no_function() -> None:
    assert not any(map(functions, routes(translated(ingress("web", ("/", "Prefix"))))))


def test_a_canary_header_with_an_underscore_is_the_header_with_a_dash() -> None:
    got = routes(translated(*TRUSTING[2]))

    rules = [body["plugins"]["traffic-split"]["rules"] for body in got if "traffic-split" in body.get("plugins", {})]
    assert rules[0][0]["match"] == [{"vars": [["http_x_canary", "==", "always"]]}]


def test_invalid_header_names_are_passed_on_request() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix")), config(ignore_invalid_headers="false")))

    assert [functions(body) for body in got if body.get("upstream_id")] == [[INVALID]] * 2


def test_a_redirect_to_the_trailing_slash_has_hsts_for_https_and_no_cors_headers() -> None:
    got = routes(translated(ingress("web", ("/only/", "Prefix"), enable_cors="true")))

    redirects = [body for body in got if body["uris"] == ["/only"]]
    headers = {
        body["vars"][0][2]: list(body["plugins"].get("response-rewrite", {}).get("headers", {}).get("set", {}))
        for body in redirects
    }
    assert headers == {"https": ["Strict-Transport-Security"], "http": []}
    assert {body["plugins"]["redirect"]["ret_code"] for body in redirects} == {301}


def test_priorities_follow_the_order_of_patterns() -> None:
    paths = [("/b", "Exact"), ("/long", "Prefix"), ("/a", "ImplementationSpecific"), ("/c", "ImplementationSpecific")]

    got = routes(translated(ingress("web", *paths, use_regex="true")))

    assert list(dict.fromkeys(body["vars"][0][2] for body in got)) == ["^/long", "^/c", "^/b", "^/a", "^/"]


def test_a_grpc_backend_gets_the_address_of_the_client() -> None:
    got = routes(translated(ingress("web", ("/", "Exact"), backend_protocol="GRPC")))

    early = [body["plugins"]["serverless-pre-function"]["functions"] for body in got if body.get("upstream_id")]
    assert early
    assert all("X-Forwarded-For" in each[0] and "X-Real-IP" in each[0] for each in early)


@pytest.mark.parametrize(("codes", "asks"), [("503", True), ("500,502", False)])
def test_the_page_of_503_is_shown_for_a_service_without_endpoints(codes: str, asks: bool) -> None:
    got = routes(translated(ingress("web", ("/", "Exact"), custom_http_errors=codes, default_backend="web")))

    early = [body["plugins"].get("serverless-pre-function", {}) for body in got if "timeout" in body]
    assert early
    assert all(("#(found.nodes" in str(each.get("functions"))) == asks for each in early)
