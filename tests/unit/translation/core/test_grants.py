"""Grants: references to other namespaces, and objects whose grant is removed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from apisix_ingress.model import names
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import IndexKey, ObjectKey, RecordKey
from apisix_ingress.model.kinds.gateway_api import GATEWAY_KINDS
from apisix_ingress.model.kinds.indexes import GRANTS_BY_NAMESPACES
from providers.core.registry import resources
from tests.unit.translation.objects import (
    OPTIONS,
    fill,
    ingress,
    ingress_rule,
    make,
    pem,
    route,
    rule,
    secret,
    service,
    upstream,
    world,
)
from tests.unit.translation.settling import bodies, prepare
from translation.core.grants import Reference, is_granted

NO_GATEWAY_API = replace(OPTIONS, gateway_api=False)
GRANT = replace(OPTIONS, cross_namespace="grant")
OURS = "apisix.apache.org"
SOURCE = {"group": OURS, "kind": "ApisixRoute", "namespace": "a"}
TARGET = {"group": "", "kind": "Secret"}


def grant(
    *targets: JsonObject, source: JsonObject | None = None, namespace: str = "b", name: str = "grant"
) -> JsonObject:
    spec = {"from": [source or SOURCE], "to": list(targets)}
    return make("ReferenceGrant", name, namespace=namespace, spec=spec)


def to(kind: str, name: str = "", *, group: str = "") -> JsonObject:
    return {"group": group, "kind": kind, **({"name": name} if name else {})}


def pair(namespace: str = "b", name: str = "secret") -> JsonObject:
    return secret(name, namespace=namespace, tls__crt=pem().certificate, tls__key=pem().key)


REFERENCE = Reference("ApisixRoute", "a", ObjectKey("Secret", "b", "key"))


@pytest.mark.parametrize(
    ("grants", "want"),
    [
        ([], False),
        ([grant(TARGET)], True),
        ([grant(to("Secret", "key"))], True),
        ([grant(to("Secret", "other"))], False),
        ([grant(to("Secret", "other"), to("Secret", "key"))], True),
        ([grant(to("Service"))], False),
        ([grant(to("Secret", group=OURS))], False),
        ([grant(TARGET, namespace="a")], False),
        ([grant(TARGET, source=SOURCE | {"namespace": "c"})], False),
        ([grant(TARGET, source=SOURCE | {"kind": "ApisixTls"})], False),
        ([grant(TARGET, source=SOURCE | {"group": "networking.k8s.io"})], False),
        ([grant(to("Service"), name="one"), grant(TARGET, name="two")], True),
        ([grant()], False),
    ],
)
def test_a_grant_names_group_kind_and_namespace_of_both_sides(grants: list[JsonObject], want: bool) -> None:
    assert is_granted(REFERENCE, world(*grants).view()) is want


def test_grants_between_the_two_namespaces_are_read_found_or_missing() -> None:
    view = world().view()
    assert is_granted(REFERENCE, view) is False
    assert list(view.reads) == [IndexKey("ReferenceGrant", GRANTS_BY_NAMESPACES, "b/a")]


class GrantHarness:
    """Providers for objects of namespace default that refer to namespace b."""

    def __init__(self, *objects: JsonObject) -> None:
        self.world, self._loop = prepare(*objects, options=GRANT)
        self._loop.settle()

    def put(self, *objects: JsonObject) -> None:
        fill(self.world, objects)
        self._loop.settle()

    def delete(self, kind: str, name: str, namespace: str = "b") -> None:
        self.world.stores[kind].delete(ObjectKey(kind, namespace, name))
        self._loop.settle()

    @property
    def kinds(self) -> list[str]:
        """The kinds of records that a gateway should have."""
        return sorted({path.partition("/")[0] for path in bodies(self.world)})

    @property
    def reported(self) -> dict[str, list[str]]:
        """The problems by owner; the certificate of these tests has expired, which is only a warning."""
        errors = {
            str(owner): [problem.message for problem in report.problems if problem.severity == "error"]
            for owner, report in self.world.reports.items()
        }
        return {owner: messages for owner, messages in errors.items() if messages}


def from_(kind: str, group: str = OURS) -> JsonObject:
    return {"group": group, "kind": kind, "namespace": "default"}


TLS = make("ApisixTls", "tls", spec={"hosts": ["a.example.com"], "secret": {"name": "secret", "namespace": "b"}})
INGRESS = ingress(ingress_rule(), annotations={"k8s.apisix.apache.org/svc-namespace": "b"})
CONFIGURED = route(rule(plugin_config_name="pc", plugin_config_namespace="b"))
PLUGIN_CONFIG = make("ApisixPluginConfig", "pc", namespace="b", spec={"plugins": [{"name": "cors"}]})
CLIENT: dict[str, Any] = {"tlsSecret": {"name": "secret", "namespace": "b"}}
ELSEWHERE_WEB: dict[str, Any] = {"serviceName": "web", "serviceNamespace": "b", "servicePort": 80}
STREAM = {"name": "tcp", "protocol": "TCP", "match": {"ingressPort": 9100}, "backend": ELSEWHERE_WEB}
NODES: dict[str, Any] = {"externalNodes": [{"name": "a.example.com", "type": "Domain"}]}

CASES = {
    "certificate": ([TLS, pair()], grant(to("Secret"), source=from_("ApisixTls")), ["ssls"], {"ApisixTls default/tls"}),
    "service": (
        [INGRESS, service(namespace="b")],
        grant(to("Service", "web"), source=from_("Ingress", "networking.k8s.io")),
        ["routes", "upstreams"],
        {"Ingress default/ing"},
    ),
    "service of an HTTP rule": (
        [route(rule(backends=[ELSEWHERE_WEB])), service(namespace="b")],
        grant(to("Service", "web"), source=from_("ApisixRoute")),
        ["routes", "upstreams"],
        {"ApisixRoute default/route"},
    ),
    "service of a stream rule": (
        [route(stream=[STREAM]), service(namespace="b")],
        grant(to("Service"), source=from_("ApisixRoute")),
        ["stream_routes", "upstreams"],
        {"ApisixRoute default/route"},
    ),
    "plugin config": (
        [CONFIGURED, service(), PLUGIN_CONFIG],
        grant(to("ApisixPluginConfig", group=OURS), source=from_("ApisixRoute")),
        ["plugin_configs", "routes", "upstreams"],
        {"ApisixRoute default/route"},
    ),
    "client certificate of a Service": (
        [route(rule()), service(), upstream(**CLIENT), pair()],
        grant(to("Secret"), source=from_("ApisixUpstream")),
        ["routes", "upstreams"],
        {"ApisixRoute default/route", "ApisixUpstream default/web"},
    ),
    "client certificate of external nodes": (
        [route(rule(backends=[], upstreams=[{"name": "web"}])), upstream(**NODES, **CLIENT), pair()],
        grant(to("Secret"), source=from_("ApisixUpstream")),
        ["routes", "upstreams"],
        {"ApisixRoute default/route", "ApisixUpstream default/web"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_adding_a_grant_publishes_and_removing_it_withdraws(case: str) -> None:
    objects, allowing, kinds, owners = CASES[case]
    unaffected = ["plugin_configs"] if case == "plugin config" else []
    harness = GrantHarness(*objects)
    refused = harness.reported
    assert (harness.kinds, set(refused)) == (unaffected, owners)
    harness.put(allowing)
    assert (harness.kinds, harness.reported) == (kinds, {})
    harness.delete("ReferenceGrant", "grant")
    assert (harness.kinds, harness.reported) == (unaffected, refused)
    harness.put(allowing)
    assert (harness.kinds, harness.reported) == (kinds, {})


@pytest.mark.parametrize("case", CASES)
def test_absent_and_refused_references_are_reported_identically(case: str) -> None:
    objects, allowing, _, owners = CASES[case]
    local = [item for item in objects if item["metadata"]["namespace"] != "b"]
    reports = [GrantHarness(*objects).world.reports, GrantHarness(*local, allowing).world.reports]
    refused, absent = ({str(owner): report.problems for owner, report in found.items()} for found in reports)
    assert {owner: refused[owner] for owner in owners} == {owner: absent[owner] for owner in owners}


CLIENT_CA = make(
    "ApisixTls",
    "tls",
    spec={
        "hosts": ["a.example.com"],
        "secret": {"name": "own", "namespace": "default"},
        "client": {"caSecret": {"name": "secret", "namespace": "b"}},
    },
)
WITH_CA = secret("secret", namespace="b", ca__crt=pem().certificate)
FOREIGN = {
    "ssls": ([CLIENT_CA, pair("default", "own"), WITH_CA], grant(to("Secret"), source=from_("ApisixTls"))),
    "upstreams": CASES["client certificate of a Service"][:2],
    "upstreams of external nodes": CASES["client certificate of external nodes"][:2],
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_record_names_a_client_certificate_of_another_namespace(case: str) -> None:
    objects, allowing = FOREIGN[case]
    kind = case.partition(" ")[0]
    (got,) = (body for path, body in bodies(GrantHarness(*objects, allowing).world).items() if path.startswith(kind))
    want = {"meta_client_secret_namespace": "b", "meta_client_secret_name": "secret"}
    assert {name: text for name, text in got["labels"].items() if "client" in name} == want


def test_a_secret_that_is_deleted_keeps_the_record_until_the_grant_goes() -> None:
    objects, allowing, kinds, _ = CASES["certificate"]
    harness = GrantHarness(*objects, allowing)
    harness.delete("Secret", "secret")
    assert (harness.kinds, list(harness.reported)) == (kinds, ["ApisixTls default/tls"])
    harness.delete("ReferenceGrant", "grant")
    assert harness.kinds == []


def test_a_broken_edit_that_names_something_else_does_not_outlive_the_grant() -> None:
    objects, allowing, kinds, _ = CASES["service"]
    harness = GrantHarness(*objects, allowing)
    harness.put(ingress(ingress_rule(port="absent")))
    assert (harness.kinds, list(harness.reported)) == (kinds, ["Ingress default/ing"])
    harness.put(grant(to("Service"), source=from_("ApisixRoute")))
    assert (harness.kinds, list(harness.reported)) == ([], ["Ingress default/ing"])
    harness.put(service())
    harness.put(ingress(ingress_rule()))
    assert (harness.kinds, harness.reported) == (kinds, {})


def test_a_spec_that_does_not_fit_does_not_outlive_the_grant() -> None:
    objects, allowing, kinds, _ = CASES["service of an HTTP rule"]
    harness = GrantHarness(*objects, allowing)
    harness.put(route(rule(backends=[ELSEWHERE_WEB], priority="high")))
    assert (harness.kinds, list(harness.reported)) == (kinds, ["ApisixRoute default/route"])
    harness.delete("ReferenceGrant", "grant")
    assert (harness.kinds, list(harness.reported)) == ([], ["ApisixRoute default/route"])


def test_an_edit_away_from_the_other_namespace_needs_no_grant_any_more() -> None:
    objects, allowing, kinds, _ = CASES["service"]
    harness = GrantHarness(*objects, allowing, service())
    harness.put(ingress(ingress_rule()))
    harness.delete("ReferenceGrant", "grant")
    assert (harness.kinds, harness.reported) == (kinds, {})


def test_one_refused_reference_withdraws_the_whole_object() -> None:
    guard = rule("guard", match={"paths": ["/admin"]}, plugin_config_name="pc", plugin_config_namespace="b")
    _, allowing, _, _ = CASES["plugin config"]
    harness = GrantHarness(route(rule("open"), guard), service(), PLUGIN_CONFIG, allowing)
    assert harness.kinds == ["plugin_configs", "routes", "upstreams"]
    harness.delete("ReferenceGrant", "grant")
    assert harness.kinds == ["plugin_configs"]


def test_what_a_gateway_has_from_before_is_protected_only_with_the_grant() -> None:
    objects, allowing, _, _ = CASES["certificate"]
    key = RecordKey("ssls", names.short_id("default_tls"))
    without, absent = GrantHarness(*objects), GrantHarness(TLS, allowing)
    assert [harness.world.desired.is_held(key, "") for harness in (without, absent)] == [False, True]


BROKEN: dict[str, Any] = {"backends": [{"serviceName": "none", "servicePort": 80}]}
ELSEWHERE: dict[str, Any] = {"plugin_config_name": "pc", "plugin_config_namespace": "b"}


@pytest.mark.parametrize(
    ("obj", "grants", "want"),
    [
        (route(rule(**BROKEN, **ELSEWHERE)), [], set()),
        (route(rule(**BROKEN)), [grant(to("ApisixPluginConfig", group=OURS))], {("default/web",)}),
        (
            route(rule(**BROKEN, **ELSEWHERE)),
            [grant(to("ApisixPluginConfig", "pc", group=OURS), source=from_("ApisixRoute"))],
            {("default/web",), ("default/web", "b/pc")},
        ),
        (
            route(rule(**BROKEN, **ELSEWHERE)),
            [grant(to("ApisixPluginConfig", group=OURS), source=from_("ApisixRoute"))],
            {("default/web",), ("default/web", "b/pc"), ("b/other",)},
        ),
    ],
)
def test_records_of_a_previous_process_stay_only_if_their_references_are_permitted(
    obj: JsonObject, grants: list[JsonObject], want: set[tuple[str, ...]]
) -> None:
    harness = GrantHarness(obj, service(), PLUGIN_CONFIG, *grants)
    key, name = RecordKey("routes", "any"), "default_route_rule"

    held = {
        sources
        for sources in (("default/web",), ("default/web", "b/pc"), ("b/other",))
        if harness.world.desired.is_held(key, name, ("a.example.com",), sources)
    }

    assert held == want
    assert harness.world.desired.is_held(key, name) is bool(want)


def test_a_grant_that_is_removed_later_releases_records_of_a_previous_process() -> None:
    allowing = grant(to("ApisixPluginConfig", group=OURS), source=from_("ApisixRoute"))
    harness = GrantHarness(route(rule(**BROKEN, **ELSEWHERE)), service(), PLUGIN_CONFIG, allowing)
    held = [harness.world.desired.is_held(RecordKey("routes", "any"), "default_route_rule", None, ("b/pc",))]

    harness.delete("ReferenceGrant", "grant")

    held += [harness.world.desired.is_held(RecordKey("routes", "any"), "default_route_rule", None, ("b/pc",))]
    assert held == [True, False]


def test_grants_are_not_read_unless_the_settings_ask_for_them() -> None:
    found, loop = prepare(TLS, pair())
    loop.settle()
    assert [path.partition("/")[0] for path in bodies(found)] == ["ssls"]
    assert not [read for owner in found.reports for read in found.dependents.reads_of(owner) if "Grant" in read.kind]
    kinds = [{kind.kind for kind in resources(options)} for options in (NO_GATEWAY_API, GRANT)]
    assert kinds[1] - kinds[0] == {"ReferenceGrant"} | GATEWAY_KINDS
