"""The Gateway API: Gateways and routes from creation to deletion, and CRDs that are installed and removed."""

import pytest

from e2e.cluster.client import Manifest, wait_until
from e2e.conftest import StartController
from e2e.definitions import gateway_kinds
from e2e.definitions.gateway_kinds import CONTROLLER, GROUP, gateway, http_route, make
from e2e.story import Stage

pytestmark = pytest.mark.usefixtures("gateway_kinds")

CLASS = make("GatewayClass", "apisix", controllerName=CONTROLLER)


def verdicts(conditions: list[Manifest]) -> dict[str, str]:
    """Return type → status/reason of the conditions for the current generation."""
    return {each["type"]: f"{each['status']}/{each['reason']}" for each in conditions}


def parent(item: Manifest | None) -> dict[str, str]:
    parents = ((item or {}).get("status") or {}).get("parents") or []
    ours = list(filter(is_ours, parents))
    return verdicts(ours[0]["conditions"]) if ours else {}


def is_current(item: Manifest | None) -> bool:
    """Return whether the controller's entry is for the current generation."""
    parents = ((item or {}).get("status") or {}).get("parents") or []
    observed = [c["observedGeneration"] for each in parents for c in each["conditions"] if is_ours(each)]
    return item is not None and set(observed) == {item["metadata"]["generation"]}


def is_ours(entry: Manifest) -> bool:
    return bool(entry["controllerName"] == CONTROLLER)


def of_gateway(item: Manifest | None) -> dict[str, str]:
    return verdicts(((item or {}).get("status") or {}).get("conditions") or [])


def attached(item: Manifest | None) -> int:
    listeners = ((item or {}).get("status") or {}).get("listeners") or []
    return sum(each["attachedRoutes"] for each in listeners)


WELL = {"Accepted": "True/Accepted", "ResolvedRefs": "True/ResolvedRefs"}


def begin(stage: Stage) -> None:
    stage.start()
    stage.serve()
    stage.apply([CLASS, gateway(), http_route(stage.host)])


def test_a_route_serves_and_reports_it_until_it_is_deleted(stage: Stage) -> None:
    begin(stage)
    assert stage.traffic.until_status(200, stage.host).pod == "web"
    stage.api.wait("HTTPRoute", "web", lambda item: parent(item) == WELL, "to be well", namespace=stage.namespace)
    want = {"Accepted": "True/Accepted", "Programmed": "True/Programmed"}
    stage.api.wait("Gateway", "gw", lambda item: of_gateway(item) == want, "to be well", namespace=stage.namespace)
    stage.api.wait("Gateway", "gw", lambda item: attached(item) == 1, "to count it", namespace=stage.namespace)
    stage.api.wait("GatewayClass", "apisix", lambda item: of_gateway(item) == {"Accepted": "True/Accepted"}, "it")
    stage.api.delete("HTTPRoute", "web", namespace=stage.namespace)
    stage.traffic.until_status(404, stage.host)
    stage.api.wait("Gateway", "gw", lambda item: attached(item) == 0, "to count none", namespace=stage.namespace)


def test_a_backend_of_another_namespace_is_reached_while_a_grant_allows_it(stage: Stage, tenant: str) -> None:
    begin(stage)
    route = http_route(stage.host, {"name": "web", "namespace": stage.namespace, "port": 80}, name="far")
    route["spec"]["parentRefs"][0]["namespace"] = stage.namespace
    route["spec"]["hostnames"] = [f"far.{stage.host}"]
    stage.api.apply(route, namespace=tenant)
    stage.traffic.until_status(500, f"far.{stage.host}")
    source = {"group": GROUP, "kind": "HTTPRoute", "namespace": tenant}
    grant = make("ReferenceGrant", "grant", **{"from": [source], "to": [{"group": "", "kind": "Service"}]})
    stage.apply(grant)
    assert stage.traffic.until_status(200, f"far.{stage.host}").pod == "web"
    stage.api.delete("ReferenceGrant", "grant", namespace=stage.namespace)
    stage.traffic.until_status(500, f"far.{stage.host}")
    refused = "False/RefNotPermitted"
    stage.api.wait(
        "HTTPRoute", "far", lambda item: parent(item).get("ResolvedRefs") == refused, "to say so", namespace=tenant
    )


def test_entries_of_other_controllers_stay_when_a_parent_is_removed(stage: Stage) -> None:
    begin(stage)
    stage.traffic.until_status(200, stage.host)
    item = stage.api.wait("HTTPRoute", "web", lambda item: parent(item) == WELL, "it", namespace=stage.namespace)
    own = item["status"]["parents"]
    other = {**own[0], "controllerName": "example.org/other"}
    body = {"status": {"parents": [*own, other]}}
    stage.api.patch("HTTPRoute", "web", body, namespace=stage.namespace, subresource="status")
    change = {"spec": {"parentRefs": [{"name": "another"}]}}
    stage.api.patch("HTTPRoute", "web", change, namespace=stage.namespace)
    stage.traffic.until_status(404, stage.host)
    item = stage.api.wait(
        "HTTPRoute", "web", lambda item: not parent(item), "to be no longer ours", namespace=stage.namespace
    )
    assert [each["controllerName"] for each in item["status"]["parents"]] == ["example.org/other"]


def test_an_installation_for_other_namespaces_writes_no_status(stage: Stage, start_controller: StartController) -> None:
    begin(stage)
    another = start_controller({"default": stage.another_gateway()}, f"e2e-story=not-{stage.mark}", name="another")
    item = stage.api.wait("HTTPRoute", "web", lambda item: parent(item) == WELL, "it", namespace=stage.namespace)
    own = item["status"]["parents"]
    for number in range(5):
        other = {**own[0], "controllerName": f"example.org/{number}"}
        body = {"status": {"parents": [*own, other]}}
        stage.api.patch("HTTPRoute", "web", body, namespace=stage.namespace, subresource="status")
    stage.api.patch("HTTPRoute", "web", {"spec": {"hostnames": [f"x.{stage.host}"]}}, namespace=stage.namespace)
    stage.traffic.until_status(200, f"x.{stage.host}")
    item = stage.api.wait("HTTPRoute", "web", lambda item: is_current(item), "it", namespace=stage.namespace)
    assert [each["controllerName"] for each in item["status"]["parents"]] == ["example.org/4", CONTROLLER]
    another.stop()
    assert [each for each in another.events("status.written") if each["object"].startswith("HTTPRoute ")] == []


def test_records_are_deleted_with_crds_and_return_with_them(stage: Stage) -> None:
    begin(stage)
    stage.traffic.until_status(200, stage.host)
    gateway_kinds.remove(stage.api, ["HTTPRoute"])
    wait_until(lambda: stage.gateway.records("routes"), lambda got: got == {}, "no route", timeout=60.0)
    gateway_kinds.install(stage.api, ["HTTPRoute"])
    stage.apply(http_route(stage.host))
    stage.traffic.until_status(200, stage.host)
