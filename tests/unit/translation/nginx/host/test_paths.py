"""Paths of a host of ingress-nginx: which Ingress has them, and in which order a gateway tries them."""

from __future__ import annotations

import pytest

from apisix_ingress.model.keys import IndexKey, ObjectKey
from tests.unit.translation.nginx.host.bodies import functions, redirecting, routes, status
from tests.unit.translation.nginx.objects import ingress, translated
from translation.core.options import Options
from translation.nginx.functions.headers import CONNECTION


def test_without_the_setting_an_nginx_ingress_yields_no_record() -> None:
    assert not translated(ingress("web", ("/", "Prefix")), options=Options()).records


def test_a_prefix_path_matches_whole_segments_and_other_paths_get_404() -> None:
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


def test_the_oldest_ingress_wins_a_host_and_path() -> None:
    newer = ingress("newer", ("/", "Prefix"), age=2, upstream_vhost="newer.test")
    older = ingress("older", ("/", "Prefix"), age=1, upstream_vhost="older.test")

    got = routes(translated(newer, older))

    assert {body["plugins"]["proxy-rewrite"]["host"] for body in got} == {"older.test"}


def test_an_ingress_with_an_invalid_value_does_not_affect_the_rest_of_the_host() -> None:
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

    got = redirecting(routes(translated(moved)))

    assert got[0]["redirect"] == {
        "regex_uri": ["(?i)^[\\s\\S]*?(?:/old/(.*))[\\s\\S]*$", "https://new.test/$1"],
        "encode_uri": True,
        "append_query_string": True,
        "ret_code": 302,
    }


@pytest.mark.parametrize("regex", ["false", "true"])
def test_a_further_path_changes_no_route_of_another_path(regex: str) -> None:
    old = [("/one", "ImplementationSpecific"), ("/longer", "ImplementationSpecific")]
    before = translated(ingress("web", *old, use_regex=regex))

    after = translated(ingress("web", *old, use_regex=regex), ingress("new", ("/new", "ImplementationSpecific"), age=1))

    bodies = {record.key: record.body for record in after.records}
    assert [record.key for record in before.records if bodies.get(record.key) != record.body] == []


def test_a_plain_path_only_replaces_the_header_connection() -> None:
    got = routes(translated(ingress("web", ("/", "Prefix"))))

    assert [functions(body) for body in got] == [[CONNECTION]] * 2
    assert all("HTTP2-Settings" in body["plugins"]["proxy-rewrite"]["headers"]["remove"] for body in got)


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


@pytest.mark.parametrize("path", [r"/a\h[bc]", r"/a\z", r"/a\R?(x|\N+)"])
def test_a_pattern_with_escapes_that_only_the_gateway_knows_is_used(path: str) -> None:
    got = routes(translated(ingress("web", (path, "ImplementationSpecific"), use_regex="true")))

    conditions = [condition for body in got for condition in body.get("vars", ()) if condition[0] == "uri"]
    assert ["uri", "~*", f"^{path}"] in conditions
