"""BackendTLSPolicies: their status, and that requests never reach the backend without verification."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.gateway_api import CA_BUNDLE
from tests.unit.translation.gateway.objects import CLASS, assessed, gateway, listener, of_parents, reported, route, rule
from tests.unit.translation.objects import make, pem, service
from tests.unit.translation.settling import bodies, problems, settle
from translation.gateway.policies.backend_tls import MOST_ROUTES

BACKEND = service(ports=[{"port": 80, "name": "https"}])
BUNDLE = {
    "kind": CA_BUNDLE,
    "metadata": {"name": "ca", "namespace": "default"},
    "data": {"ca.crt": pem(1).certificate},
}


def policy(name: str = "tls", section: str = "", created: str = "2026-01-01", **validation: Any) -> JsonObject:
    target = {"group": "", "kind": "Service", "name": "web", **({"sectionName": section} if section else {})}
    refs = [{"group": "", "kind": "ConfigMap", "name": "ca"}]
    spec = {"targetRefs": [target], "validation": {"hostname": "a.test", "caCertificateRefs": refs, **validation}}
    found = make("BackendTLSPolicy", name, spec=spec)
    found["metadata"]["creationTimestamp"] = f"{created}T00:00:00Z"
    return found


def served(*objects: JsonObject) -> Any:
    return settle(CLASS, gateway(listener(), listener("other", 81)), BACKEND, BUNDLE, *objects)


def of_ancestors(found: Any, name: str = "tls") -> list[tuple[str, dict[str, str]]]:
    states = assessed(found, "BackendTLSPolicy", name).parents
    return [(str(each.reference["name"]), reported(each.verdicts)) for each in states]


@pytest.mark.parametrize(("section", "refused"), [("", True), ("https", True), ("other", False)])
def test_a_backend_with_a_policy_gets_no_plain_requests(section: str, refused: bool) -> None:
    found = served(policy(section=section), route(rule()))
    want = "!UnsupportedProtocol" if refused else "ResolvedRefs"
    assert of_parents(found) == [{"Accepted": "Accepted", "ResolvedRefs": want}]
    records = [body for path, body in bodies(found).items() if path.startswith("routes")]
    assert [("upstream_id" in body) != refused for body in records] == [True, True]


def test_routes_that_may_not_use_the_service_do_not_change_the_status_of_its_policy() -> None:
    """Nor do they crowd out others: the number of routes that are looked up is limited."""
    shared = gateway(listener(allowedRoutes={"namespaces": {"from": "All"}}), name="theirs")
    backend = {"backendRefs": [{"name": "web", "namespace": "default", "port": 80}]}
    parents = [{"name": "theirs", "namespace": "default"}]
    strangers = [route(backend, name=f"a{n}", namespace="evil", parentRefs=parents) for n in range(MOST_ROUTES)]
    assert of_ancestors(served(policy(), shared, *strangers)) == []
    assert [name for name, _ in of_ancestors(served(policy(), shared, *strangers, route(rule(), name="z")))] == ["gw"]


def test_a_policy_is_refused_at_each_gateway_with_a_route_to_its_service() -> None:
    second = gateway(name="second")
    routes = (
        route(rule()),
        route(rule(), name="again"),
        route(rule(), kind="GRPCRoute", parentRefs=[{"name": "second"}, {"name": "absent"}]),
        route(rule(service="api"), name="api"),
    )
    found = served(policy(), second, service("api"), *routes)
    want = {"Accepted": "!Invalid", "ResolvedRefs": "ResolvedRefs"}
    assert of_ancestors(found) == [("gw", want), ("second", want)]
    assert problems(found)["BackendTLSPolicy default/tls"] == ["UnsupportedPolicy"]


def test_a_policy_without_routes_reports_nothing() -> None:
    found = served(policy(), route(rule(service="api")), service("api"))
    assert of_ancestors(found) == []
    assert ObjectKey("BackendTLSPolicy", "default", "tls") in found.reports
    assert not problems(found).get("BackendTLSPolicy default/tls")


@pytest.mark.parametrize(
    ("reference", "accepted", "reason"),
    [
        ({"group": "", "kind": "ConfigMap", "name": "absent"}, "!NoValidCACertificate", "!InvalidCACertificateRef"),
        ({"group": "x.test", "kind": "Bundle", "name": "ca"}, "!NoValidCACertificate", "!InvalidKind"),
    ],
)
def test_references_to_certificates_are_checked(reference: JsonObject, accepted: str, reason: str) -> None:
    found = served(policy(caCertificateRefs=[reference]), route(rule()))
    assert of_ancestors(found) == [("gw", {"Accepted": accepted, "ResolvedRefs": reason})]
    both = [{"group": "", "kind": "ConfigMap", "name": "ca"}, reference]
    found = served(policy(caCertificateRefs=both), route(rule()))
    assert of_ancestors(found) == [("gw", {"Accepted": "!Invalid", "ResolvedRefs": reason})]


def test_the_older_of_two_policies_for_a_port_applies() -> None:
    found = served(
        policy(section="https", created="2026-01-02"),
        policy("old", "https"),
        policy("wide", created="2026-01-03"),
        route(rule()),
    )
    accepted = {name: of_ancestors(found, name)[0][1]["Accepted"] for name in ("tls", "old", "wide")}
    assert accepted == {"tls": "!Conflicted", "old": "!Invalid", "wide": "!Invalid"}
    (wrong,) = found.reports[ObjectKey("HTTPRoute", "default", "app")].problems
    assert "BackendTLSPolicy default/old" in wrong.message, "a policy for a port precedes one for the Service"


def test_a_policy_that_cannot_be_read_keeps_requests_from_its_service() -> None:
    broken = policy()
    del broken["spec"]["validation"]
    found = served(broken, route(rule()))
    assert problems(found)["BackendTLSPolicy default/tls"] == ["InvalidSpec"]
    assert of_parents(found)[0]["ResolvedRefs"] == "!UnsupportedProtocol"
