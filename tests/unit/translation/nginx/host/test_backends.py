"""Backends of ingress-nginx: canaries, affinity, mirrors, retries, and what is changed in their responses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.offline import settle
from apisix_ingress.model.json import FrozenJson
from apisix_ingress.model.kinds.table import RESOURCES
from tests.unit.translation.nginx.host.bodies import TRUSTING, asking, early, routes
from tests.unit.translation.nginx.objects import CLASS, OPTIONS, SERVICE, ingress, translated
from translation.nginx.effects.balancing.canary import share_pattern


def test_a_canary_shares_the_service_on_every_path_of_the_main_ingress() -> None:
    canary = ingress("canary", ("/a", "Prefix"), service="next", canary="true", canary_weight="30")
    service = {**SERVICE, "metadata": {"name": "next", "namespace": "shop"}}

    got = routes(translated(ingress("web", ("/a", "Prefix"), ("/b", "Prefix")), canary, service))

    split = {uri for body in got if "traffic-split" in body.get("plugins", {}) for uri in body["uris"]}
    assert split == {"/a/*", "/a", "/b/*", "/b"}


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
        "base": "http://mirror.test:81",
        "host": "shadow.test",
        "with_query": False,
        "with_body": True,
    }


NEXT = {**SERVICE, "metadata": {"name": "next", "namespace": "shop"}}


def split(body: FrozenJson) -> list[FrozenJson]:
    """Return the rules by which a route sends requests to a canary."""
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


def test_a_canary_header_with_an_underscore_is_the_header_with_a_dash() -> None:
    got = routes(translated(*TRUSTING[2]))

    rules = [body["plugins"]["traffic-split"]["rules"] for body in got if "traffic-split" in body.get("plugins", {})]
    assert rules[0][0]["match"] == [{"vars": [["http_x_canary", "==", "always"]]}]


def test_a_grpc_backend_gets_the_address_of_the_client() -> None:
    got = routes(translated(ingress("web", ("/", "Exact"), backend_protocol="GRPC")))

    early = [body["plugins"]["serverless-pre-function"]["functions"] for body in got if body.get("upstream_id")]
    assert early
    assert all("X-Forwarded-For" in each[1] and "X-Real-IP" in each[1] for each in early)


NO_SERVICE = "Service shop/web does not exist; create it or correct the name"
CLOSED = "Until then, its paths respond with 503, as with ingress-nginx"


def problems(*objects: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return owner, code, path and message of each problem that is not a warning."""
    found = settle((RESOURCES[item["kind"]].decode(item) for item in (CLASS, *objects)), OPTIONS).problems
    return [(owner.name, each.code, each.path, each.message) for owner, each in found if each.severity == "degraded"]


def test_an_ingress_reports_a_service_that_does_not_exist_once_for_all_its_paths() -> None:
    got = problems(ingress("web", ("/a", "Prefix"), ("/b", "Prefix")))

    at = "spec.rules[0].http.paths[0].backend.service.name"
    assert got == [("web", "ServiceNotFound", at, f"{NO_SERVICE}. {CLOSED}")]


def test_an_ingress_reports_a_port_that_its_service_does_not_have() -> None:
    other = {**SERVICE, "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 81, "name": "web"}]}}

    got = problems(other, ingress("web", ("/", "Prefix")))

    message = f"Service shop/web has no port 80; it has 81 (web); correct the port. {CLOSED}"
    assert got == [("web", "PortNotFound", "spec.rules[0].http.paths[0].backend.service.port", message)]


WITHOUT_MAIN = (
    "the canary gets no requests for shop.test, as with ingress-nginx: no Ingress without the annotation has this"
    " host and a path of the canary; create it, or remove the annotation"
)
CANARY = "metadata.annotations[nginx.ingress.kubernetes.io/canary]"


@pytest.mark.parametrize(
    ("others", "want"),
    [
        ((), [("canary", "NginxNotServed", CANARY, WITHOUT_MAIN)]),
        ((ingress("web", ("/other", "Prefix")),), [("canary", "NginxNotServed", CANARY, WITHOUT_MAIN)]),
        ((ingress("web", ("/", "Prefix")),), []),
    ],
)
def test_a_canary_reports_that_no_other_ingress_has_its_host_and_path(
    others: tuple[dict[str, Any], ...], want: list[tuple[str, str, str, str]]
) -> None:
    canary = ingress("canary", ("/", "Prefix"), canary="true", canary_weight="50")

    assert problems(SERVICE, *others, canary) == want


def test_an_ingress_reports_the_secret_of_a_certificate_that_does_not_exist() -> None:
    secured = ingress("web", ("/", "Prefix"))
    secured["spec"]["tls"] = [{"hosts": ["shop.test"], "secretName": "gone"}]

    effect = "Until then, clients get the default certificate, as with ingress-nginx"
    message = f"Secret shop/gone does not exist; create it or correct the name. {effect}"
    assert problems(SERVICE, secured) == [("web", "SecretNotFound", "spec.tls[0].secretName", message)]


def test_a_canary_reports_that_it_gets_no_requests_without_its_service() -> None:
    canary = ingress("canary", ("/", "Prefix"), service="next", canary="true", canary_weight="50")

    got = problems(SERVICE, ingress("web", ("/", "Prefix")), canary)

    at = "spec.rules[0].http.paths[0].backend.service.name"
    message = "Service shop/next does not exist; create it or correct the name. Until then, the canary gets no requests"
    assert got == [("canary", "ServiceNotFound", at, message)]


@pytest.mark.parametrize("service", ["web", "absent"])
def test_requests_for_the_default_backend_name_the_service_without_endpoints(service: str) -> None:
    other = {**SERVICE, "metadata": {"name": "pages", "namespace": "shop"}}
    got = routes(translated(other, ingress("web", ("/", "Prefix"), service=service, default_backend="pages")))

    served = [(body["upstream_id"], early(body)["default"]) for body in got if body.get("upstream_id")]
    headers = {"X-Namespace": "shop", "X-Ingress-Name": "web", "X-Service-Name": service, "X-Service-Port": "80"}
    assert [given["headers"] for _, given in served] == [headers] * len(served)
    assert {given["upstream"] == upstream for upstream, given in served} == {service == "absent"}
