"""A host stays with its namespace even if older objects add it later, and across restarts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey, RecordKey, RecordKind
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.names import short_id, wide_id
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.store import TOP
from apisix_ingress.state.world import World
from providers.core.incumbents import adopt_hosts
from providers.core.registry import Registry
from tests.unit.translation.objects import OPTIONS, make, service
from tests.unit.translation.settling import prepare
from translation.core.unnamed_records import nameless_records

STRICT = replace(OPTIONS, host_ownership="namespace")
BANK = "bank.test"
SERVICES = (service(namespace="evil"), service(namespace="victim"), service(namespace="other"))


def route(
    namespace: str, day: int, *hosts: str, backend: str = "web", lends_to: str = "", name: str = "web"
) -> JsonObject:
    match = {"hosts": [*hosts], "paths": ["/*"]}
    spec = {"http": [{"name": "r", "match": match, "backends": [{"serviceName": backend, "servicePort": 80}]}]}
    notes = {"apisix.apache.org/share-hosts-with": lends_to} if lends_to else None
    raw = make("ApisixRoute", name, namespace=namespace, spec=spec, annotations=notes)
    return {**raw, "metadata": {**raw["metadata"], "creationTimestamp": f"2026-01-{day:02}T00:00:00Z"}}


def put(found: World, loop: Registry, *objects: JsonObject) -> None:
    for raw in objects:
        found.stores[raw["kind"]].set(RESOURCES[raw["kind"]].decode(raw))
    loop.settle()


def serving(found: World, host: str) -> set[str]:
    """Return the namespaces that have routes for a host."""
    records = found.desired.records("default").values()
    return {record.name.partition("_")[0] for record in records if host in record.hosts and record.key.kind == "routes"}


def running(*objects: JsonObject) -> tuple[World, Registry]:
    found, loop = prepare(*SERVICES, *objects, options=STRICT)
    loop.settle()
    found.host_holders.settle()
    return found, loop


OLD = route("evil", 1, "evil.test")


@pytest.mark.parametrize(
    ("owned", "wanted"), [(BANK, BANK), ("*.bank.test", "a.bank.test"), ("a.bank.test", "*.bank.test")]
)
def test_old_object_that_names_a_host_later_does_not_get_it(owned: str, wanted: str) -> None:
    found, loop = running(OLD, route("victim", 5, owned))
    put(found, loop, route("evil", 1, wanted))
    assert (serving(found, owned), serving(found, wanted) - {"victim"}) == ({"victim"}, set())
    problems = found.reports[ObjectKey("ApisixRoute", "evil", "web")].problems
    assert [problem.code for problem in problems] == ["HostNotOwned"]


def test_broken_object_holds_its_host() -> None:
    found, loop = running(OLD, route("victim", 5, BANK))
    put(found, loop, route("victim", 5, BANK, backend="none"), route("evil", 1, BANK))
    assert serving(found, BANK) == {"victim"}


def test_a_host_passes_on_when_its_last_object_is_deleted() -> None:
    found, loop = running(OLD, route("victim", 5, BANK))
    put(found, loop, route("evil", 1, BANK))
    found.stores["ApisixRoute"].delete(ObjectKey("ApisixRoute", "victim", "web"))
    loop.settle()
    assert serving(found, BANK) == {"evil"}


def test_host_is_held_from_the_first_object_on() -> None:
    found, loop = running(OLD)
    put(found, loop, route("victim", 5, BANK))
    put(found, loop, route("evil", 1, BANK))
    assert serving(found, BANK) == {"victim"}


@pytest.mark.parametrize("there", [{"victim"}, {"victim", "nobody"}])
def test_gateways_show_the_owner_of_a_host_before_a_restart(there: set[str]) -> None:
    found, loop = running(route("evil", 1, BANK), route("victim", 5, BANK))
    assert serving(found, BANK) == {"evil"}
    reported: set[str] = set()
    assert list(adopt_hosts(found, STRICT, {BANK: there}, reported)) == [True]
    loop.settle()
    assert (serving(found, BANK), reported) == ({"victim"}, {BANK})
    assert list(adopt_hosts(found, STRICT, {BANK: {"evil"}}, reported)) == []


def test_a_record_of_a_namespace_without_the_host_is_ignored() -> None:
    found, loop = running(route("evil", 1, BANK), route("victim", 5, "other.test"))
    assert list(adopt_hosts(found, STRICT, {BANK: {"victim"}}, set())) == [False]
    loop.settle()
    assert serving(found, BANK) == {"evil"}


def test_host_that_is_lent_stays_with_the_lender() -> None:
    lender, borrower = route("victim", 5, BANK, lends_to="other"), route("other", 6, BANK)
    found, loop = running(route("evil", 1, BANK), lender, borrower)
    assert list(adopt_hosts(found, STRICT, {BANK: {"other", "victim"}}, set())) == [True]
    loop.settle()
    assert serving(found, BANK) == {"victim", "other"}


def test_wildcard_stays_with_its_holder_over_a_restart_though_an_older_object_names_something_below() -> None:
    found, loop = running(route("evil", 1, "a.bank.test"), route("victim", 5, "*.bank.test"))
    assert (serving(found, "a.bank.test"), serving(found, "*.bank.test")) == ({"evil"}, set())
    assert sum(adopt_hosts(found, STRICT, {"*.bank.test": {"victim"}}, set())) == 2
    loop.settle()
    assert (serving(found, "a.bank.test"), serving(found, "*.bank.test")) == (set(), {"victim"})


def test_name_stays_with_its_holder_over_a_restart_though_an_older_object_names_a_wildcard_over_it() -> None:
    found, loop = running(route("evil", 1, "*.bank.test"), route("victim", 5, "a.bank.test"))
    assert serving(found, "*.bank.test") == {"evil"}
    assert list(adopt_hosts(found, STRICT, {"a.bank.test": {"victim"}}, set())) == [True]
    loop.settle()
    assert serving(found, "a.bank.test") == {"victim"}


def test_age_decides_if_both_have_records_from_shared_hosts() -> None:
    found, loop = running(route("victim", 1, "*.bank.test"), route("evil", 5, "a.bank.test"))
    both = {"*.bank.test": {"victim"}, "a.bank.test": {"evil"}}
    assert not any(adopt_hosts(found, STRICT, both, set()))
    loop.settle()
    assert (serving(found, "a.bank.test"), serving(found, "*.bank.test")) == (set(), {"victim"})


def certificate(namespace: str, day: int, *hosts: str) -> JsonObject:
    spec = {"hosts": [*hosts], "secret": {"name": "pair", "namespace": namespace}}
    return dated(make("ApisixTls", "web", namespace=namespace, spec=spec), day)


def ingress_tls(namespace: str, day: int, *hosts: str) -> JsonObject:
    spec = {"ingressClassName": "apisix", "tls": [{"hosts": [*hosts], "secretName": "pair"}]}
    return dated(make("Ingress", "web", namespace=namespace, spec=spec), day)


def stream(namespace: str, day: int, port: int = 9100) -> JsonObject:
    backend = {"serviceName": "web", "servicePort": 80}
    rule = {"name": "s", "protocol": "TCP", "match": {"ingressPort": port}, "backend": backend}
    return dated(make("ApisixRoute", "web", namespace=namespace, spec={"stream": [rule]}), day)


def dated(raw: JsonObject, day: int) -> JsonObject:
    return {**raw, "metadata": {**raw["metadata"], "creationTimestamp": f"2026-01-{day:02}T00:00:00Z"}}


def nameless(kind: RecordKind, raw: JsonObject, *, is_short: bool = False) -> RecordKey:
    item = RESOURCES[raw["kind"]].decode(raw)
    assert isinstance(item, CustomObject)
    ((_, name),) = nameless_records(item)
    return RecordKey(kind, short_id(name) if is_short else wide_id(name))


@pytest.mark.parametrize("is_short", [False, True])
@pytest.mark.parametrize(
    ("kind", "old", "young", "claim"),
    [
        ("ssls", certificate("evil", 1, BANK), certificate("victim", 5, BANK), BANK),
        ("ssls", certificate("evil", 1, "a.bank.test"), certificate("victim", 5, "*.bank.test"), "*.bank.test"),
        ("ssls", ingress_tls("evil", 1, BANK), ingress_tls("victim", 5, BANK), BANK),
        ("stream_routes", stream("evil", 1), stream("victim", 5), ":9100"),
    ],
)
def test_ids_of_records_without_a_name_show_who_held_a_host(
    kind: RecordKind, old: JsonObject, young: JsonObject, claim: str, is_short: bool
) -> None:
    found, _ = running(old, young)
    key = nameless(kind, young, is_short=is_short)
    assert any(adopt_hosts(found, STRICT, {}, set(), {key: (claim,)}))
    assert found.host_holders.holder(claim) == "victim"


def test_others_proceed_while_an_object_with_many_certificates_is_checked() -> None:
    spec = {"ingressClassName": "apisix", "tls": [{"secretName": f"pair-{number}"} for number in range(50)]}
    found, _ = running(make("Ingress", "web", namespace="evil", spec=spec))
    assert len(list(adopt_hosts(found, STRICT, {}, set(), {RecordKey("ssls", "1"): (BANK,)}))) > 50


def test_a_short_id_of_names_in_two_namespaces_is_ambiguous() -> None:
    found, _ = running(certificate("evil", 1, BANK), certificate("victim", 5, BANK))
    key = nameless("ssls", certificate("victim", 5, BANK), is_short=True)
    other = certificate("evil", 1, BANK)
    other["metadata"]["name"] = "omkojolmmkjhhh"  # evil_… has the CRC-32 of victim_web
    found.stores["ApisixTls"].set(RESOURCES["ApisixTls"].decode(other))
    assert not any(adopt_hosts(found, STRICT, {}, set(), {key: (BANK,)}))


def test_older_objects_of_others_that_name_a_host_do_not_hide_who_lends_it() -> None:
    lender, borrower = route("victim", 5, BANK, lends_to="other"), route("other", 6, BANK)
    many = [f"old-{number}" for number in range(TOP + 1)]
    found, loop = running(*(route("evil", 1, "evil.test", name=name) for name in many), lender, borrower)
    put(found, loop, *(route("evil", 1, BANK, name=name, lends_to="evil") for name in many), lender, borrower)
    assert serving(found, BANK) == {"victim", "other"}


@pytest.mark.parametrize("lent", [BANK, "*.bank.test"])
def test_older_borrower_does_not_own_a_host_after_a_restart(lent: str) -> None:
    host = lent.replace("*", "a")
    found, loop = running(route("evil", 1, host), route("victim", 5, lent, lends_to="evil"))
    there = {lent: {"victim"}, host: {"evil", "victim"} if host == lent else {"evil"}}
    assert sum(adopt_hosts(found, STRICT, there, set())) > 0
    loop.settle()
    assert "victim" in serving(found, lent)
    assert "evil" in serving(found, host)
    put(found, loop, route("victim", 5, lent))
    assert (serving(found, lent), serving(found, host) - {"victim"}) == ({"victim"}, set())
