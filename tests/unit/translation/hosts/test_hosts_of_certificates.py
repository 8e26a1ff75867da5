"""Two objects with certificates for one host: which one is published, what the others report, and what queues them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.tls_hosts import MOST_HOSTS
from apisix_ingress.state.world import World
from tests.unit.translation.objects import OPTIONS, fill, get, make, pem, reported, secret, world
from tests.unit.translation.settling import prepare, settle
from translation.tls import translate_tls

HOST = "a.example.com"
CONFLICT = "degraded HostConflict spec.hosts"


def pair(name: str, serial: int, *, namespace: str, names: tuple[str, ...] = (HOST,)) -> JsonObject:
    found = pem(serial, names=names)
    return secret(name, namespace=namespace, tls__crt=found.certificate, tls__key=found.key)


SECRETS = [
    *(pair(f"cert-{serial}", serial, namespace=namespace) for serial in (1, 2) for namespace in ("red", "blue")),
    *(secret("clients", namespace=namespace, ca__crt=pem(9).certificate) for namespace in ("red", "blue")),
]


def born(raw: JsonObject, day: int) -> JsonObject:
    return {**raw, "metadata": {**raw["metadata"], "creationTimestamp": f"2026-01-{day:02}T00:00:00Z"}}


def tls(
    day: int,
    cert: str = "cert-1",
    *,
    namespace: str = "red",
    name: str = "tls",
    hosts: Sequence[str] = (HOST,),
    **spec: Any,
) -> JsonObject:
    spec = {"hosts": list(hosts), "secret": {"name": cert, "namespace": namespace}, **spec}
    return born(make("ApisixTls", name, namespace=namespace, spec=spec), day)


def ingress(
    day: int,
    *entries: Mapping[str, Any],
    namespace: str = "red",
    name: str = "web",
    rules: Sequence[str] = (),
    ingress_class: str = "apisix",
) -> JsonObject:
    spec = {"ingressClassName": ingress_class, "tls": list(entries), "rules": [{"host": host} for host in rules]}
    return born(make("Ingress", name, namespace=namespace, spec=spec), day)


def entry(cert: str = "cert-1", *hosts: str) -> JsonObject:
    return {"secretName": cert, "hosts": list(hosts)}


def key(raw: JsonObject) -> ObjectKey:
    return ObjectKey(raw["kind"], raw["metadata"]["namespace"], raw["metadata"]["name"])


def settled(*objects: JsonObject) -> World:
    return settle(*SECRETS, *objects)


def hosts(found: World, raw: JsonObject) -> list[str]:
    """Return the hosts that an object's certificates are published for."""
    return sorted(host for record in found.desired.of_owner(key(raw)).values() for host in record.body["snis"])


def codes(found: World, raw: JsonObject) -> list[str]:
    """Return the problems in short; expired certificates of the tests are ignored."""
    problems = (item for item in found.reports[key(raw)].problems if not item.code.startswith("Certificate"))
    return [f"{item.severity} {item.code} {item.path}" for item in problems if item.code != "HostNotCovered"]


def test_older_object_of_another_namespace_has_the_host() -> None:
    old, new = tls(1), tls(2, "cert-2", namespace="blue")
    found = settled(new, old)
    assert (hosts(found, old), codes(found, old)) == ([HOST], [])
    assert (hosts(found, new), codes(found, new)) == ([], [CONFLICT])
    problem = found.reports[key(new)].problems[-1]
    assert problem.message == (
        "host a.example.com is skipped: an ApisixTls in namespace red, which is older, serves it with a different "
        "certificate or client-auth settings; use another host, or ask that team to remove it"
    )


def test_only_the_host_that_is_in_use_is_skipped() -> None:
    old, new = tls(1), tls(2, "cert-2", namespace="blue", hosts=["b.example.com", HOST.upper() + "."])
    found = settled(new, old)
    assert hosts(found, new) == ["b.example.com"]
    assert CONFLICT in codes(found, new)


@pytest.mark.parametrize(
    ("old", "path"),
    [
        (ingress(1, entry("cert-1", HOST)), "spec.hosts"),
        (ingress(1, entry("cert-1"), rules=[HOST]), "spec.hosts"),
        (ingress(1, entry("cert-1")), "spec.hosts"),
    ],
    ids=["named", "of a rule", "of the certificate"],
)
def test_an_ingress_has_the_hosts_that_it_names_or_leaves_to_name(old: JsonObject, path: str) -> None:
    new = tls(2, "cert-2", namespace="blue")
    found = settled(new, old)
    assert (hosts(found, old), hosts(found, new)) == ([HOST], [])
    assert codes(found, new) == [f"degraded HostConflict {path}"]


def test_an_ingress_loses_its_host_to_an_older_object_and_keeps_the_rest() -> None:
    new = ingress(2, entry("cert-2", HOST), entry("cert-2", "b.example.com"), namespace="blue")
    found = settled(tls(1), new)
    assert (hosts(found, new), codes(found, new)) == (["b.example.com"], ["degraded HostConflict spec.tls[0]"])


@pytest.mark.parametrize(
    "new",
    [
        tls(2, "cert-1", namespace="blue"),
        tls(2, "cert-2", namespace="blue", hosts=["*.example.com"]),
        ingress(2, entry("cert-1", HOST), namespace="blue"),
    ],
    ids=["the same certificate", "a wildcard", "the same certificate in an Ingress"],
)
def test_the_same_certificate_and_another_host_make_no_conflict(new: JsonObject) -> None:
    found = settled(tls(1), new)
    assert "HostConflict" not in "".join(codes(found, new))
    assert len(hosts(found, new)) == 1


CLIENT = {"caSecret": {"name": "clients", "namespace": "red"}}


@pytest.mark.parametrize(("ours", "theirs"), [(CLIENT, None), (None, CLIENT), (CLIENT, {**CLIENT, "depth": 3})])
def test_other_client_auth_settings_are_a_conflict(ours: JsonObject | None, theirs: JsonObject | None) -> None:
    def asking(client: JsonObject | None) -> JsonObject:
        return {"client": client} if client else {}

    old, new = tls(1, **asking(ours)), tls(2, namespace="blue", **asking(theirs))
    found = settled(new, old)
    assert (hosts(found, old), hosts(found, new)) == ([HOST], [])


def test_equal_client_auth_settings_do_not_conflict() -> None:
    elsewhere = {"caSecret": {"name": "clients", "namespace": "blue"}}
    old, new = tls(1, client=CLIENT), tls(2, namespace="blue", client=elsewhere)
    assert hosts(settled(new, old), new) == [HOST]


def test_within_a_namespace_both_are_published_and_the_newer_one_is_warned() -> None:
    old, new = tls(1), tls(2, "cert-2", name="new")
    found = settled(new, old)
    assert (hosts(found, old), hosts(found, new)) == ([HOST], [HOST])
    assert (codes(found, old), codes(found, new)) == ([], ["warning HostConflict spec.hosts"])
    assert "in ApisixTls red/tls, which is older, and" in found.reports[key(new)].problems[-1].message


@pytest.mark.parametrize(
    ("plain", "severity"),
    [
        (tls(1, name="plain"), "warning"),
        (tls(3, name="plain"), "warning"),
        (tls(1, "cert-2", name="plain"), "degraded"),
        (tls(3, "cert-2", name="plain"), "degraded"),
        (tls(1, name="plain", client={**CLIENT, "depth": 3}), "winner"),
        (tls(3, name="plain", client={**CLIENT, "depth": 3}), "degraded"),
    ],
    ids=["older", "newer", "older, cert", "newer, cert", "older, settings", "newer, settings"],
)
def test_within_a_namespace_the_object_that_requires_client_certificates_has_the_host(
    plain: JsonObject, severity: str
) -> None:
    strict = tls(2, client=CLIENT)
    found = settled(plain, strict)
    if severity == "winner":
        assert (hosts(found, plain), hosts(found, strict), codes(found, strict)) == ([HOST], [], [CONFLICT])
    else:
        assert (hosts(found, strict), codes(found, strict)) == ([HOST], [])
        assert (hosts(found, plain), codes(found, plain)) == ([], [f"{severity} HostConflict spec.hosts"])


def test_an_ingress_leaves_a_host_to_an_object_that_requires_client_certificates() -> None:
    plain, strict = ingress(1, entry("cert-1", HOST, "b.example.com")), tls(2, client=CLIENT)
    found = settled(plain, strict)
    assert (hosts(found, plain), hosts(found, strict)) == (["b.example.com"], [HOST])
    assert found.reports[key(plain)].problems[-1].message == (
        "host a.example.com is served with the same certificate by ApisixTls red/tls, which requires client "
        "certificates; remove the host from one of them"
    )


@pytest.mark.parametrize("client", [{"caSecret": {"name": "absent", "namespace": "red"}}, 5], ids=["no CA", "invalid"])
def test_a_host_is_not_served_without_the_client_certificates_that_an_invalid_object_requires(client: Any) -> None:
    plain, strict = tls(1, name="plain"), tls(2, client=client)
    found = settled(plain, strict)
    assert (hosts(found, plain), codes(found, plain)) == ([], [CONFLICT])


def test_other_namespaces_follow_the_object_that_requires_client_certificates() -> None:
    oldest, strict = tls(1, name="oldest"), tls(4, client=CLIENT)
    between, same = tls(2, namespace="blue"), tls(3, namespace="blue", name="same", client=CLIENT)
    same["spec"]["client"] = {"caSecret": {"name": "clients", "namespace": "blue"}}
    found = settled(oldest, strict, between, same)
    assert [hosts(found, each) for each in (oldest, strict, between, same)] == [[], [HOST], [], [HOST]]
    assert codes(found, between) == [CONFLICT]


def test_client_certificates_that_the_namespace_of_a_host_does_not_require_are_not_required() -> None:
    old, strict = tls(1), tls(2, namespace="blue", client=CLIENT)
    found = settled(old, strict)
    assert (hosts(found, old), codes(found, old), hosts(found, strict)) == ([HOST], [], [])


def test_a_host_is_served_again_once_client_certificates_are_no_longer_required() -> None:
    plain, strict = tls(1, name="plain"), tls(2, client=CLIENT)
    found, loop = prepare(*SECRETS, plain, strict)
    loop.settle()
    assert hosts(found, plain) == []
    fill(found, [tls(2)])
    loop.settle()
    assert (hosts(found, plain), codes(found, plain)) == ([HOST], [])
    fill(found, [strict])
    loop.settle()
    assert hosts(found, plain) == []
    found.stores["ApisixTls"].delete(key(strict))
    loop.settle()
    assert (hosts(found, plain), codes(found, plain)) == ([HOST], [])


def test_two_certificates_of_one_object_are_warned_of() -> None:
    raw = ingress(1, entry("cert-1", HOST), entry("cert-2", HOST))
    found = settled(raw)
    assert (hosts(found, raw), codes(found, raw)) == ([HOST, HOST], ["warning HostConflict spec.tls[1]"])


@pytest.mark.parametrize(
    "old",
    [
        tls(1, "absent"),
        tls(1, "clients"),
        tls(1, client={"caSecret": {"name": "absent", "namespace": "red"}}),
        tls(1, client=5),
        ingress(1, entry("absent", HOST)),
    ],
    ids=["no Secret", "no pair", "no CA", "no spec", "no Secret of an Ingress"],
)
def test_object_that_cannot_be_translated_keeps_its_host(old: JsonObject) -> None:
    new = tls(2, "cert-2", namespace="blue")
    found = settled(new, old)
    assert (hosts(found, old), hosts(found, new), codes(found, new)) == ([], [], [CONFLICT])


def test_an_ingress_whose_certificate_would_name_the_hosts_has_none_without_it() -> None:
    new = tls(2, "cert-2", namespace="blue")
    assert hosts(settled(new, ingress(1, entry("absent"))), new) == [HOST]


def test_an_object_of_another_class_has_no_status_entry() -> None:
    new = tls(2, "cert-2", namespace="blue")
    old = ingress(1, entry("cert-1", HOST), ingress_class="nginx")
    assert hosts(settled(new, old), new) == [HOST]


@pytest.mark.parametrize("spec", [None, {}, {"hosts": 5, "tls": 5}, {"hosts": [5], "tls": [5, {"secretName": 5}]}])
@pytest.mark.parametrize("kind", ["ApisixTls", "Ingress"])
def test_an_invalid_spec_has_no_claims(kind: str, spec: Any) -> None:
    new = tls(2, "cert-2", namespace="blue")
    assert hosts(settled(born(make(kind, "o", namespace="red", spec=spec), 1), new), new) == [HOST]


def test_the_next_object_takes_over_until_the_winner_returns() -> None:
    old, new = tls(1), ingress(2, entry("cert-2", HOST), namespace="blue")
    found, loop = prepare(*SECRETS, old, new)
    loop.settle()
    assert hosts(found, new) == []
    found.stores["ApisixTls"].delete(key(old))
    loop.settle()
    assert (hosts(found, new), codes(found, new)) == ([HOST], [])
    fill(found, [old])
    loop.settle()
    assert (hosts(found, new), codes(found, new)) == ([], ["degraded HostConflict spec.tls[0]"])


def test_the_successor_is_queued_before_the_winner_is_withdrawn() -> None:
    old, new = tls(1), tls(2, "cert-2", namespace="blue")
    found, loop = prepare(*SECRETS, old, new)
    loop.settle()
    found.stores["ApisixTls"].delete(key(old))
    queue = loop.providers["ApisixTls"].queue
    first, second = queue.take(), queue.take()
    assert (first, second) == (key(new), key(old))


def test_a_certificate_that_becomes_the_same_ends_the_conflict() -> None:
    old, new = tls(1), tls(2, "cert-2", namespace="blue")
    found, loop = prepare(*SECRETS, old, new)
    loop.settle()
    fill(found, [pair("cert-1", 2, namespace="red")])
    loop.settle()
    assert (hosts(found, new), codes(found, new)) == ([HOST], [])
    fill(found, [pair("cert-1", 3, namespace="red")])
    loop.settle()
    assert (hosts(found, new), codes(found, new)) == ([], [CONFLICT])


def test_a_certificate_without_a_grant_discloses_nothing() -> None:
    options = replace(OPTIONS, cross_namespace="grant")
    old, new = tls(1), tls(2, namespace="blue")
    old["spec"]["secret"]["namespace"] = "blue"
    found, loop = prepare(*SECRETS, old, new, options=options)
    loop.settle()
    assert (hosts(found, old), hosts(found, new)) == ([], [])


def test_more_hosts_than_can_be_kept_are_refused() -> None:
    raw = tls(1, hosts=[f"h{index}.example.com" for index in range(MOST_HOSTS + 1)])
    found = world(*SECRETS, raw)
    got = reported(translate_tls(get(found, "ApisixTls", "tls", "red"), found.view(), OPTIONS))
    assert "error TooManyHosts spec" in got
    assert found.stores["ApisixTls"].by_index("tls-host", "h0.example.com") == ()
