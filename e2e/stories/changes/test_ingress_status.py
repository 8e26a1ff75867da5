"""The addresses in the status of Ingresses and routes: those of the gateways' Service, never another controller's."""

from typing import Any

from e2e.cluster.client import Manifest
from e2e.story import Stage, condition, route
from e2e.traffic import Traffic

ONE: Manifest = {"ip": "192.0.2.1"}
NAMED: Manifest = {"hostname": "lb.example.com"}
THEIRS: Manifest = {"ip": "198.51.100.7"}


def ingress(host: str, name: str = "web", service: str = "web") -> Manifest:
    backend = {"service": {"name": service, "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    spec = {"ingressClassName": "apisix", "rules": [{"host": host, "http": {"paths": paths}}]}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name}, "spec": spec}


def shown(item: Manifest | None) -> list[Manifest]:
    found: list[Manifest] = ((item or {}).get("status") or {}).get("loadBalancer", {}).get("ingress") or []
    return found


def show(stage: Stage, kind: str, name: str, *addresses: Manifest) -> None:
    """Write addresses into a status, as a cloud provider or another controller does."""
    status = {"loadBalancer": {"ingress": list(addresses)}}
    stage.api.patch(kind, name, {"status": status}, namespace=stage.namespace, subresource="status")


def wait_shown(stage: Stage, *want: Manifest, name: str = "web", kind: str = "Ingress") -> Manifest:
    def holds(item: Manifest | None) -> bool:
        return shown(item) == list(want)

    return stage.api.wait(kind, name, holds, f"to show {want}", namespace=stage.namespace)


def wait_event(stage: Stage, name: str, reason: str) -> None:
    """Wait for an Event with a reason or of a type about an Ingress: by then its status has been checked."""

    def reported(_: Any) -> bool:
        return any(
            reason in (event["reason"], event["type"]) for event in stage.api.events(name, namespace=stage.namespace)
        )

    stage.api.wait("Ingress", name, reported, reason, namespace=stage.namespace)


def start_with_service(stage: Stage, name: str = "own") -> None:
    stage.start(name=name, kubernetes={"status": {"publish_service": f"{stage.namespace}/gw"}})


def serve(stage: Stage) -> Traffic:
    """Create the backends of the Ingress, and the gateways' Service, which does not have an address yet."""
    stage.serve()
    stage.pods.service("gw", {"app": "gw"}, type="LoadBalancer")
    stage.apply(ingress(stage.host))
    return stage.traffic


def test_an_ingress_shows_the_addresses_of_the_service_and_follows_them(stage: Stage) -> None:
    start_with_service(stage)
    traffic = serve(stage)
    traffic.until_status(200, stage.host)
    wait_event(stage, "web", "ResourcesSynced")
    assert shown(stage.api.get("Ingress", "web", namespace=stage.namespace)) == []
    show(stage, "Service", "gw", ONE)
    wait_shown(stage, ONE)
    show(stage, "Service", "gw", ONE, NAMED)
    before = wait_shown(stage, ONE, NAMED)

    # A restart does not write a status that is already correct.
    stage.controllers[-1].stop()
    start_with_service(stage, "second")
    stage.apply(ingress(f"late.{stage.host}", "late"))
    wait_shown(stage, ONE, NAMED, name="late")
    after = stage.api.get("Ingress", "web", namespace=stage.namespace)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]

    stage.api.delete("Service", "gw", namespace=stage.namespace)
    wait_shown(stage)
    wait_shown(stage, name="late")
    assert traffic.send(stage.host).status == 200


def test_addresses_wait_for_the_records_and_are_removed_when_the_ingress_leaves_the_class(stage: Stage) -> None:
    stage.start(kubernetes={"status": {"addresses": ["192.0.2.1", "lb.example.com"]}})
    stage.apply(ingress(stage.host))
    wait_event(stage, "web", "ServiceNotFound")
    assert shown(stage.api.get("Ingress", "web", namespace=stage.namespace)) == []
    stage.serve()
    stage.traffic.until_status(200, stage.host)
    wait_shown(stage, ONE, NAMED)
    stage.api.patch("Ingress", "web", {"spec": {"ingressClassName": "nginx"}}, namespace=stage.namespace)
    wait_shown(stage)
    show(stage, "Ingress", "web", THEIRS)
    stage.traffic.until_status(404, stage.host)
    stage.apply(ingress(f"other.{stage.host}", "other"))
    wait_shown(stage, ONE, NAMED, name="other")
    wait_shown(stage, THEIRS)


def test_addresses_are_removed_from_an_ingress_that_left_while_no_controller_ran(stage: Stage) -> None:
    addresses = {"status": {"addresses": ["192.0.2.1", "lb.example.com"]}}
    stage.start(kubernetes=addresses)
    stage.serve()
    for name in ("web", "taken"):
        stage.apply(ingress(f"{name}.{stage.host}", name))
        stage.traffic.until_status(200, f"{name}.{stage.host}")
        wait_shown(stage, ONE, NAMED, name=name)
    stage.controllers[-1].stop()
    for name in ("web", "taken"):
        stage.api.patch("Ingress", name, {"spec": {"ingressClassName": "nginx"}}, namespace=stage.namespace)
    # Another controller publishes the same addresses itself.
    show(stage, "Ingress", "taken", THEIRS)
    show(stage, "Ingress", "taken", ONE, NAMED)

    stage.start(name="second", kubernetes=addresses)
    wait_shown(stage)
    stage.apply(ingress(f"other.{stage.host}", "other"))
    wait_shown(stage, ONE, NAMED, name="other")
    wait_shown(stage, ONE, NAMED, name="taken")
    assert stage.traffic.send(f"web.{stage.host}").status == 404


def test_a_route_shows_the_addresses_of_the_service_beside_its_condition(stage: Stage) -> None:
    start_with_service(stage)
    stage.pods.service("gw", {"app": "gw"}, type="LoadBalancer")
    show(stage, "Service", "gw", ONE, NAMED)
    stage.apply(route(stage.host))
    stage.wait_route(lambda item: condition(item).get("status") == "False", "to miss its Service")
    assert shown(stage.api.get("ApisixRoute", "web", namespace=stage.namespace)) == []
    stage.serve()
    found = wait_shown(stage, ONE, NAMED, kind="ApisixRoute")
    assert condition(found)["status"] == "True"
    assert stage.traffic.until_status(200, stage.host).pod == "web"
    # Another client replaces them.
    show(stage, "ApisixRoute", "web", THEIRS)
    wait_shown(stage, ONE, NAMED, kind="ApisixRoute")
    stage.api.delete("Service", "gw", namespace=stage.namespace)
    wait_shown(stage, kind="ApisixRoute")


def test_without_own_addresses_those_of_other_controllers_stay(stage: Stage) -> None:
    start_with_service(stage)
    traffic = serve(stage)
    show(stage, "Ingress", "web", THEIRS)
    traffic.until_status(200, stage.host)
    wait_event(stage, "web", "ResourcesSynced")
    show(stage, "Service", "gw", NAMED)
    wait_shown(stage, NAMED)
    show(stage, "Ingress", "web", THEIRS)
    stage.api.delete("Service", "gw", namespace=stage.namespace)
    stage.pods.service("gw", {"app": "gw"}, type="LoadBalancer")
    stage.apply(ingress(f"other.{stage.host}", "other"))
    wait_event(stage, "other", "ResourcesSynced")
    assert shown(stage.api.get("Ingress", "web", namespace=stage.namespace)) == [THEIRS]
