"""Ingress: paths, default backend, certificates."""

from datetime import UTC, datetime
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.names import short_id
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.claims import UpstreamClaim, UpstreamOverrides
from apisix_ingress.state.holds import Hold
from tests.unit.translation.objects import (
    OPTIONS,
    bodies,
    get,
    ingress,
    ingress_rule,
    make,
    pem,
    protected_by,
    reported,
    secret,
    service,
    world,
)
from translation.core.options import Options
from translation.core.outcome import Outcome, Published, Withdrawn, records_of
from translation.ingress import translate_ingress
from translation.ingress_spec import Tls
from translation.ingress_tls import pseudo_name

ANNOTATION = "k8s.apisix.apache.org/"


def translate(raw: JsonObject, *objects: JsonObject, options: Options = OPTIONS) -> Outcome:
    found = world(raw, *objects)
    return translate_ingress(get(found, "Ingress", "ing"), found.view(), options)


def routes(*rules: JsonObject, **fields: Any) -> list[JsonObject]:
    got = translate(ingress(*rules, **fields), service())
    assert isinstance(got, Published), got.problems
    return [{key: value for key, value in body.items() if key != "upstream_id"} for body in bodies(got)]


@pytest.mark.parametrize(
    ("path", "kind", "want"),
    [
        ("/", "Prefix", ["/", "/*"]),
        ("/a", "Prefix", ["/a", "/a/*"]),
        ("/a/", "Prefix", ["/a", "/a/*"]),
        ("/a/", "Exact", ["/a/"]),
        ("/a/*", "ImplementationSpecific", ["/a/*"]),
        ("", "ImplementationSpecific", ["/*"]),
    ],
)
def test_path_becomes_uris(path: str, kind: str, want: list[str]) -> None:
    assert routes(ingress_rule(path, kind)) == [{"host": "a.example.com", "uris": want}]


def test_regular_expression_is_matched_as_a_variable() -> None:
    annotations = {f"{ANNOTATION}use-regex": "true"}
    rules = (ingress_rule("/a.*b", "ImplementationSpecific"), ingress_rule("/c", "Prefix"))
    assert routes(*rules, annotations=annotations) == [
        {"host": "a.example.com", "priority": 100, "uris": ["/*"], "vars": [["uri", "~~", "/a.*b"]]},
        {"host": "a.example.com", "uris": ["/c", "/c/*"]},
    ]


GUARDED = {f"{ANNOTATION}auth-type": "keyAuth"}


@pytest.mark.parametrize(
    ("path", "guard", "want"),
    [
        ("/a/((b|c)/?)*$", GUARDED, True),
        ("/a/((b|c)/?)*$", {f"{ANNOTATION}plugin-config-name": "guards"}, True),
        ("/a/((b|c)/?)*$", {}, False),
        ("/a/.*", GUARDED, False),
    ],
)
def test_a_guarded_regular_expression_that_may_fail_has_a_route_for_errors(
    path: str, guard: dict[str, str], want: bool
) -> None:
    annotations = {f"{ANNOTATION}use-regex": "true"} | guard
    configs = make("ApisixPluginConfig", "guards", spec={"plugins": [{"name": "key-auth", "enable": True}]})

    got = translate(ingress(ingress_rule(path, "ImplementationSpecific"), annotations=annotations), service(), configs)

    error = {"fault-injection": {"abort": {"http_status": 500}}}
    found = [body for body in bodies(got) if body.get("plugins") == error]
    matches = [{name: body[name] for name in ("host", "priority", "uris", "vars")} for body in found]
    match = {"host": "a.example.com", "priority": 100, "uris": ["/*"]}
    assert matches == ([match | {"vars": [["uri", "!", "~~", f"^(?:[\\s\\S]*?(?:{path})|)"]]}] if want else [])


@pytest.mark.parametrize("kinds", [("Exact", "Prefix"), ("Prefix", "Exact"), ("ImplementationSpecific", "Prefix")])
def test_exact_path_wins_over_a_prefix_of_the_same_text(kinds: tuple[str, str]) -> None:
    got = translate(ingress(*(ingress_rule("/a", kind) for kind in kinds)), service())
    priorities = {tuple(record.body["uris"]): record.body.get("priority", 0) for record in records_of(got)}
    assert priorities == {("/a",): 1, ("/a", "/a/*"): 0}
    assert len({record.key for record in records_of(got)}) == 2


@pytest.mark.parametrize("kinds", [("Prefix", "Prefix"), ("Exact", "Exact"), ("Exact", "ImplementationSpecific")])
def test_the_last_of_two_equal_paths_is_used_and_the_other_is_reported(kinds: tuple[str, str]) -> None:
    rules = [ingress_rule("/a", kind, port=port) for kind, port in zip(kinds, (80, 81), strict=True)]
    got = translate(ingress(*rules), service(ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81}]))
    assert reported(got) == ["warning PathTwice spec.rules[0].http.paths[0]"]
    assert len(records_of(got)) == 1
    assert isinstance(got, Published)
    assert [claim.port for claim in got.claims] == [81]


@pytest.mark.parametrize("kinds", [("Exact", "Prefix"), ("Prefix", "Exact"), ("Prefix", "ImplementationSpecific")])
def test_the_last_of_two_path_types_keeps_the_record_name_of_1_8(kinds: tuple[str, str]) -> None:
    got = translate(ingress(*(ingress_rule("/a", kind) for kind in kinds)), service())
    alone = translate(ingress(ingress_rule("/a", kinds[1])), service())
    assert records_of(got)[1].key == records_of(alone)[0].key
    assert records_of(got)[1].body["uris"] == records_of(alone)[0].body["uris"]
    assert len({record.key for record in records_of(got)}) == 2


def test_the_default_backend_receives_unmatched_requests() -> None:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    assert routes(ingress_rule("/a"), defaultBackend=backend) == [
        {"host": "a.example.com", "uris": ["/a", "/a/*"]},
        {"priority": -1, "uris": ["/*"]},
    ]


def test_default_backend_alone_is_enough_and_its_mistakes_name_it() -> None:
    got = translate(ingress(defaultBackend={"service": {"name": "nope", "port": {"number": 80}}}))
    assert reported(got) == ["error ServiceNotFound spec.defaultBackend.service.name"]


def test_port_is_needed() -> None:
    got = translate(ingress(defaultBackend={"service": {"name": "web"}}), service())
    assert reported(got) == ["error InvalidSpec spec.defaultBackend.service.port"]


def test_claims_carry_what_annotations_set() -> None:
    annotations = {f"{ANNOTATION}upstream-retries": "0"}
    got = translate(
        ingress(ingress_rule(port="http"), annotations=annotations), service(ports=[{"name": "http", "port": 80}])
    )
    target = ObjectKey("Service", "default", "web")
    assert isinstance(got, Published)
    assert got.claims == (UpstreamClaim(target, 80, overrides=UpstreamOverrides(retries=0)),)


def test_services_of_another_namespace_may_be_named_unless_a_grant_is_needed() -> None:
    raw = ingress(ingress_rule(), annotations={f"{ANNOTATION}svc-namespace": "b"})
    target = ObjectKey("Service", "b", "web")
    got = translate(raw, service(namespace="b"))
    assert isinstance(got, Published)
    assert got.claims == (UpstreamClaim(target, 80, overrides=UpstreamOverrides()),)
    refused = translate(raw, service(namespace="b"), options=Options(cross_namespace="grant"))
    assert reported(refused) == ["error ServiceNotFound spec.rules[0].http.paths[0].backend.service.name"]
    assert isinstance(refused, Withdrawn)


def test_spec_that_does_not_fit_is_reported_with_its_path() -> None:
    got = translate(ingress({"http": {"paths": [{"path": "/", "pathType": "Regex", "backend": {}}]}}))
    assert reported(got) == ["error InvalidSpec spec.rules[0].http.paths[0].pathType"]
    (hold,) = protected_by(got)
    assert hold.prefix == "ing_default_ing_"


def test_null_counts_as_absent() -> None:
    got = translate(ingress({"host": None, "http": None}, tls=None, defaultBackend=None))
    assert (records_of(got), got.problems) == ((), ())


def test_host_and_path_that_cannot_be_are_refused() -> None:
    got = translate(ingress(ingress_rule("/a\x00", host="a b")), service())
    assert reported(got) == [
        "error ControlCharacter spec.rules[0].http.paths[0].path",
        "error InvalidHost spec.rules[0].host",
    ]


def test_the_longest_name_yields_a_valid_record_that_a_hold_finds() -> None:
    name = "w" * 253
    found = world(ingress(ingress_rule()) | {"metadata": {"name": name, "namespace": "default"}}, service())
    got = translate_ingress(get(found, "Ingress", name), found.view(), OPTIONS)
    (record,) = records_of(got)
    assert record.key.id == short_id(record.name)
    assert (len(record.name), len(record.body["name"])) == (274, 256)
    assert [record.body["name"].startswith(hold.prefix) for hold in protected_by(got) if hold.prefix] == [True]


def test_plugin_config_is_found_in_the_namespace_of_the_ingress() -> None:
    raw = ingress(ingress_rule(), annotations={f"{ANNOTATION}plugin-config-name": "pc"})
    got = translate(raw, service(), make("ApisixPluginConfig", "pc", spec={"plugins": []}))
    (body,) = bodies(got)
    assert body["plugin_config_id"]


def test_the_name_of_the_tls_entry_is_that_of_1_8() -> None:
    got = pseudo_name("default", "ing1", Tls(hosts=("httpbin.org",), secretName="sec1"))
    assert got == "ing1-tls-rh5b4l" + 22 * "\0"


def tls_secret(serial: int = 1, names: tuple[str, ...] = ("a.example.com",)) -> JsonObject:
    pair = pem(serial, names=names)
    return secret("cert", tls__crt=pair.certificate, tls__key=pair.key)


@pytest.mark.parametrize(
    ("hosts", "rules", "want"),
    [
        (["b.example.com", "b.example.com"], [ingress_rule()], ["b.example.com"]),
        ([], [ingress_rule(), ingress_rule("/b"), ingress_rule(host="")], ["a.example.com"]),
        ([], [], ["san.example.com"]),
    ],
)
def test_hosts_of_a_certificate(hosts: list[str], rules: list[JsonObject], want: list[str]) -> None:
    raw = ingress(*rules, tls=[{"hosts": hosts, "secretName": "cert"}])
    got = translate(raw, service(), tls_secret(5, ("san.example.com",)))
    (ssl,) = [record for record in records_of(got) if record.key.kind == "ssls"]
    assert ssl.body["snis"] == want
    assert ssl.body["labels"] == {
        "managed-by": "apisix-ingress-controller",
        "meta_secret_name": "cert",
        "meta_secret_namespace": "default",
    }
    assert protected_by(got)[1].names == {ssl.name}


def test_a_host_that_the_certificate_does_not_cover_is_reported() -> None:
    entry = {"hosts": ["a.example.com", "b.example.com"], "secretName": "cert"}
    got = translate(ingress(ingress_rule(), tls=[entry]), service(), tls_secret())
    message = "b.example.com is not covered by the certificate in Secret default/cert: clients reject it; add the name"
    assert got.problems == (Problem("HostNotCovered", message, "spec.tls[0].hosts[1]", "warning"),)


def test_a_certificate_without_hosts_is_rejected() -> None:
    got = translate(ingress(tls=[{"secretName": "cert"}]), tls_secret(6, ()))
    assert reported(got) == ["error NoHosts spec.tls[0].secretName"]


def test_an_entry_without_a_secret_is_ignored_and_reported() -> None:
    got = translate(ingress(ingress_rule(), tls=[{"hosts": ["a.example.com"]}]), service())
    assert reported(got) == ["warning SecretNotNamed spec.tls[0].secretName"]
    assert len(records_of(got)) == 1


def test_routes_are_published_while_a_certificate_is_missing_and_its_last_version_stays() -> None:
    raw = ingress(ingress_rule(), tls=[{"hosts": ["a.example.com"], "secretName": "cert"}])
    before, got = translate(raw, service(), tls_secret()), translate(raw, service())
    (ssl,) = [record for record in records_of(before) if record.key.kind == "ssls"]
    message = "Secret default/cert does not exist; create it or correct the name"
    assert got.problems == (Problem("SecretNotFound", message, "spec.tls[0].secretName", "degraded"),)
    assert isinstance(got, Published)
    assert [record.key.kind for record in got.records] == ["routes"]
    assert got.carried_over == {ssl.key: {}}
    assert got.held == (Hold("ssls", names=frozenset({ssl.name})),)


def test_bad_certificate_fails_the_whole_ingress() -> None:
    bad = secret("cert", tls__crt=pem(1).certificate, tls__key=pem(2).key)
    got = translate(ingress(ingress_rule(), tls=[{"secretName": "cert"}]), service(), bad)
    assert reported(got) == ["error InvalidCertificate spec.tls[0].secretName"]
    assert records_of(got) == ()


def test_expired_certificate_of_an_ingress_is_published_with_a_warning() -> None:
    pair = pem()
    raw = ingress(ingress_rule(), tls=[{"hosts": ["a.example.com"], "secretName": "secret"}])
    found = world(raw, service(), secret(tls__crt=pair.certificate, tls__key=pair.key))
    translated = [
        translate_ingress(get(found, "Ingress", "ing"), found.view(), OPTIONS, now=datetime(2020, 1, day, tzinfo=UTC))
        for day in (1, 2)
    ]
    assert [reported(got) for got in translated] == [[], ["warning CertificateExpired spec.tls[0].secretName"]]
    assert records_of(translated[0]) == records_of(translated[1])
