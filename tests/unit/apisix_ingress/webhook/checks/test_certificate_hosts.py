"""Hosts of certificates: one host has one certificate across all objects."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.formats.selector import parse_selector
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.webhook.review import Verdict
from tests.factories import make_custom, make_namespace, make_secret, make_service
from tests.unit.apisix_ingress.webhook.worlds import ask, leaf, make_checks, manifest, tls_secret
from translation.core.options import Options

HOST = "a.example.org"
SECRETS = (tls_secret("one"), tls_secret("two"), tls_secret("copy", leaf("one")))
SECRETS_ELSEWHERE = (tls_secret("two", namespace="other"),)


def tls(secret: str, *hosts: str, namespace: str = "default") -> JsonObject:
    return {"hosts": list(hosts or (HOST,)), "secret": {"name": secret, "namespace": namespace}}


def ingress(*entries: tuple[str, Iterable[str]], rules: Iterable[str] = (), service: str = "web") -> JsonObject:
    backend = {"service": {"name": service, "port": {"number": 80}}}
    http = {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}
    return {
        "ingressClassName": "apisix",
        "rules": [{"host": host, "http": http} for host in rules],
        "tls": [{"secretName": secret, "hosts": list(hosts)} for secret, hosts in entries],
    }


def stored(spec: JsonObject, *, kind: str = "ApisixTls", name: str = "old", **fields: Any) -> CustomObject:
    return make_custom(name, kind=kind, spec=spec, **fields)


def verdict(kind: str, spec: JsonObject, *others: CustomObject, old: JsonObject | None = None) -> Verdict:
    checks = make_checks(make_service(), *SECRETS, *SECRETS_ELSEWHERE, *others)
    return ask(checks, manifest(spec, kind=kind), manifest(old, kind=kind) if old else None)


def taken(rival: str, host: str = HOST) -> tuple[str, ...]:
    remedy = "use the same certificate or another host"
    return (f"host {host} already has a different certificate, in {rival}; {remedy}",)


@pytest.mark.parametrize(
    ("kind", "spec", "rival_kind", "rival"),
    [
        ("ApisixTls", tls("one"), "ApisixTls", tls("two")),
        ("ApisixTls", tls("one"), "Ingress", ingress(("two", [HOST]))),
        ("Ingress", ingress(("one", [HOST])), "ApisixTls", tls("two")),
        ("Ingress", ingress(("one", [HOST])), "Ingress", ingress(("two", [HOST]))),
        ("ApisixTls", tls("one", "A.Example.ORG"), "ApisixTls", tls("two")),
        ("ApisixTls", tls("one", "b.example.org", HOST), "ApisixTls", tls("two", "c.example.org", HOST)),
        ("Ingress", ingress(("one", []), rules=[HOST]), "ApisixTls", tls("two")),
        ("Ingress", ingress(("one", [])), "ApisixTls", tls("two")),
        ("Ingress", ingress(("one", [HOST]), rules=[HOST], service="absent"), "ApisixTls", tls("two")),
        ("Ingress", ingress(("absent", [HOST]), ("one", [HOST])), "ApisixTls", tls("two")),
    ],
    ids=[
        "two ApisixTls",
        "ApisixTls after Ingress",
        "Ingress after ApisixTls",
        "two Ingress",
        "in another case",
        "one host of several",
        "the host of a rule",
        "the hosts of the certificate",
        "beside a missing Service",
        "beside a missing Secret",
    ],
)
def test_host_with_another_certificate_is_denied(
    kind: str, spec: JsonObject, rival_kind: str, rival: JsonObject
) -> None:
    got = verdict(kind, spec, stored(rival, kind=rival_kind))
    assert got.denials == taken(f"{rival_kind} default/old")


@pytest.mark.parametrize(
    ("spec", "rival"),
    [
        (tls("one"), tls("one")),
        (tls("one"), tls("copy")),
        (tls("one"), tls("two", "b.example.org")),
        (tls("one"), tls("two", "*.example.org")),
        (tls("one"), tls("absent")),
    ],
    ids=["same Secret", "copy of the certificate", "other host", "wildcard", "certificate not known"],
)
def test_host_with_the_same_certificate_or_none_is_allowed(spec: JsonObject, rival: JsonObject) -> None:
    assert verdict("ApisixTls", spec, stored(rival)).denials == ()


def test_of_another_namespace_only_the_namespace_is_reported() -> None:
    got = verdict("ApisixTls", tls("one"), stored(tls("two", namespace="other"), name="hidden", namespace="other"))
    assert got.denials == taken("an ApisixTls in namespace other")


def test_two_certificates_in_one_object_are_denied() -> None:
    got = verdict("Ingress", ingress(("one", [HOST]), ("two", [HOST])))
    assert got.denials == (f"host {HOST} has two different certificates in this object; keep one of them",)
    assert verdict("Ingress", ingress(("one", [HOST]), ("copy", [HOST]))).denials == ()


def test_every_host_in_conflict_is_reported() -> None:
    hosts = ("b.example.org", HOST)
    rivals = stored(tls("two", HOST), name="x"), stored(tls("two", "b.example.org"), name="y")
    got = verdict("ApisixTls", tls("one", *hosts), *rivals)
    assert got.denials == (*taken("ApisixTls default/x"), *taken("ApisixTls default/y", "b.example.org"))


def test_an_object_does_not_conflict_with_itself() -> None:
    assert verdict("ApisixTls", tls("one"), stored(tls("two"), name="web"), old=tls("two")).denials == ()


def test_update_is_denied_for_what_it_brings_in_and_not_for_what_was_there() -> None:
    rival = stored(tls("two"))
    added = tls("one", HOST, "b.example.org")
    assert verdict("ApisixTls", added, rival, old=tls("one")).denials == ()
    assert verdict("ApisixTls", tls("one"), rival, old=tls("one", "b.example.org")).denials == taken(
        "ApisixTls default/old"
    )
    assert verdict("ApisixTls", tls("one"), rival, old=tls("two")).denials == taken("ApisixTls default/old")


def test_the_certificate_of_a_foreign_object_is_ignored() -> None:
    options = Options(ingress_class="apisix", namespace_selector=parse_selector("team=a"))
    spaces = (make_namespace(labels={"team": "a"}), make_namespace("other"))
    foreign = stored({**tls("two"), "ingressClassName": "theirs"}, name="foreign")
    outside = stored(tls("two", namespace="other"), name="outside", namespace="other")
    checks = make_checks(*spaces, *SECRETS, *SECRETS_ELSEWHERE, foreign, outside, options=options)
    assert ask(checks, manifest(tls("one"), kind="ApisixTls")).denials == ()


def test_a_denial_is_reported_once_and_missing_objects_are_warnings() -> None:
    elsewhere = stored(tls("two", namespace="other"), name="hidden", namespace="other", created="2020-01-01T00:00:00Z")
    got = verdict("ApisixTls", tls("one"), elsewhere)
    assert (got.denials, [text for text in got.warnings if HOST in text]) == (
        taken("an ApisixTls in namespace other"),
        [],
    )
    unknown = stored(tls("absent", namespace="other"), name="hidden", namespace="other", created="2020-01-01T00:00:00Z")
    got = verdict("ApisixTls", tls("one"), unknown)
    assert got.denials == ()
    assert any("an ApisixTls in namespace other, which is older, serves it" in text for text in got.warnings)


def test_other_client_auth_settings_are_denied() -> None:
    clients = {**tls("one"), "client": {"caSecret": {"name": "clients", "namespace": "default"}}}
    trusted = make_secret("clients", data={"ca.crt": leaf("two").cert_chain_pems[0].bytes()})
    checks = make_checks(*SECRETS, trusted, stored(clients))
    want = "other client-auth settings, in ApisixTls default/old; use the same settings or another host"
    assert ask(checks, manifest(tls("one"), kind="ApisixTls")).denials == (f"host {HOST} already has {want}",)


def asking(*hosts: str) -> JsonObject:
    backend = {"serviceName": "web", "servicePort": 80}
    return {"http": [{"name": "r", "match": {"hosts": [*hosts], "paths": ["/*"]}, "backends": [backend]}]}


OLD_OBJECT = {"creationTimestamp": "2020-01-01T00:00:00Z"}


def owned(*hosts: str, before: Iterable[str] | None = None, shows_others: bool = True) -> Verdict:
    """Return the response for an object that is older than the owner of `HOST`, in another namespace."""
    options = Options(host_ownership="namespace")
    victim = stored(asking(HOST), kind="ApisixRoute", namespace="victim", created="2026-01-01T00:00:00Z")
    mine = stored(asking(*(before or ())), kind="ApisixRoute", name="web", created="2020-01-01T00:00:00Z")
    checks = make_checks(make_service(), victim, *([mine] if before is not None else []), options=options)
    old = manifest(asking(*before), **OLD_OBJECT) if before is not None else None
    return ask(replace(checks, shows_others=shows_others), manifest(asking(*hosts), **OLD_OBJECT), old)


BELONGS = (
    f"host {HOST} belongs to namespace victim; use another host, or ask its owner to annotate the object that names it "
    "with apisix.apache.org/share-hosts-with: default"
)


def test_an_old_object_cannot_begin_to_name_the_host_of_another_namespace() -> None:
    assert owned(HOST, "mine.example.org", before=["mine.example.org"]).denials == (BELONGS,)
    assert owned(HOST).denials == (BELONGS,)
    assert owned("mine.example.org", "free.example.org", before=["mine.example.org"]).denials == ()


def test_a_host_that_was_named_before_does_not_keep_an_object_from_being_edited() -> None:
    assert owned(HOST, "mine.example.org", before=[HOST]).denials == ()


def test_clients_without_access_do_not_learn_the_owner_of_a_host() -> None:
    assert owned(HOST, before=["mine.example.org"], shows_others=False) == Verdict()
