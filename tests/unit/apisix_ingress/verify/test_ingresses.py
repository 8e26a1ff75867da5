"""Requests that follow from Ingresses: hosts, edges of paths, samples of expressions, preflights, canaries."""

from __future__ import annotations

from typing import Any

from apisix_ingress.kube.manifests.loader import load
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.verify.ingresses import ANY_HOST, PREFIX, probes_of
from apisix_ingress.verify.model import Probe


def ingress(
    *paths: tuple[str, str], host: str = "shop.org", name: str = "web", tls: bool = False, **notes: str
) -> CustomObject:
    found = [{"path": path, "pathType": kind, "backend": {}} for path, kind in paths]
    spec: dict[str, Any] = {"rules": [{"host": host, "http": {"paths": found}} if host else {"http": {"paths": found}}]}
    if tls:
        spec["tls"] = [{"hosts": [host]}]
    annotations = {f"{PREFIX}{key.replace('_', '-')}": value for key, value in notes.items()}
    raw = {"metadata": {"name": name, "namespace": "default", "annotations": annotations}, "spec": spec}
    item = RESOURCES["Ingress"].decode(raw)
    assert isinstance(item, CustomObject)
    return item


def sent(*items: CustomObject) -> list[Probe]:
    return list(probes_of(items, samples=50))


def targets(*items: CustomObject) -> set[str]:
    return {probe.target for probe in sent(*items)}


def test_the_edges_of_a_prefix_are_requested() -> None:
    got = targets(ingress(("/cart", "Prefix")))
    assert got == {"/", "/cart", "/cart/", "/cart/verify/x", "/cartverify", "//cart", "/CART", "/cart?a=1&b=x%20y"}


def test_samples_of_an_expression_are_reproducible() -> None:
    item = ingress(("/api/v[0-9]/(users|orders)(/|$)(.*)", "ImplementationSpecific"), use_regex="true")
    first, again = sent(item), sent(item)
    assert first == again
    assert any(probe.target.startswith("/api/v") and "users" in probe.target + "orders" for probe in first)


def test_expression_with_many_repetitions_is_cut_to_its_beginning() -> None:
    assert "/x" in targets(ingress(("/x((a{9}){9}){9}", "ImplementationSpecific"), use_regex="true"))
    assert "/ya" in targets(ingress(("/ya{999999}", "ImplementationSpecific"), use_regex="true"))
    assert "/z" in targets(ingress(("/z((((a*)*)*)*)*", "ImplementationSpecific"), use_regex="true"))


def test_wildcard_aliases_and_rules_without_a_host_have_hosts() -> None:
    hosts = {probe.host for probe in sent(ingress(("/", "Prefix"), host="*.wild.org", server_alias="other.org, "))}
    assert hosts == {"verify.wild.org", "verify.verify.wild.org", "other.org"}
    assert {probe.host for probe in sent(ingress(("/", "Prefix"), host=""))} == {ANY_HOST}


def test_a_host_with_a_certificate_is_also_requested_over_https() -> None:
    assert {probe.scheme for probe in sent(ingress(("/", "Prefix"), tls=True))} == {"http", "https"}


def test_a_preflight_is_requested_for_an_allowed_and_a_foreign_origin() -> None:
    got = sent(ingress(("/", "Prefix"), enable_cors="true", cors_allow_origin="https://a.org"))
    origins = {dict(probe.headers)["Origin"] for probe in got if probe.method == "OPTIONS"}
    assert origins == {"https://a.org", "https://stranger.example"}


def test_a_canary_is_chosen_by_header_cookie_and_weight() -> None:
    main = ingress(("/", "Prefix"))
    canary = ingress(
        ("/", "Prefix"), name="canary", canary="true", canary_weight="10", canary_by_header="X-C", canary_by_cookie="c"
    )
    got = sent(main, canary)
    assert {dict(probe.headers)["X-C"] for probe in got if "X-C" in dict(probe.headers)} == {
        "always",
        "never",
        "verify",
    }
    assert ("Cookie", "c=always") in {header for probe in got for header in probe.headers}
    assert {probe.origin for probe in got if probe.samples == 50} == {"Ingress default/web", "Ingress default/canary"}


def test_any_manifest_can_be_turned_into_requests(tmp_path: Any) -> None:
    (tmp_path / "odd.yaml").write_text(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: odd, namespace: default}\n"
        "spec: {defaultBackend: {service: {name: a, port: {number: 1}}}, rules: [{host: a.org}, {http: {paths: []}}]}\n"
    )
    items = [item for item in load([str(tmp_path)]).objects if isinstance(item, CustomObject)]
    assert {probe.host for probe in sent(*items)} == {"a.org", ANY_HOST}


def test_the_host_that_is_redirected_to_its_twin_is_requested() -> None:
    got = {
        (probe.scheme, probe.host) for probe in sent(ingress(("/", "Prefix"), from_to_www_redirect="true", tls=True))
    }

    assert {("http", "www.shop.org"), ("https", "www.shop.org")} <= got
