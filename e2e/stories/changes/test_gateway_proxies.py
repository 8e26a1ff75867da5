"""Stories of GatewayProxies: objects go to the gateways of their class or Gateway, which come and go at run time."""

import pytest

from e2e.cluster.client import Manifest
from e2e.definitions.extension_kinds import make
from e2e.definitions.gateway_kinds import CONTROLLER, gateway, http_route
from e2e.definitions.gateway_kinds import make as make_gateway_object
from e2e.devgateway.process import DevGateway
from e2e.story import Stage, route, says, through

pytestmark = pytest.mark.usefixtures("gateway_kinds", "extension_kinds")

CLASS = make_gateway_object("GatewayClass", "apisix", controllerName=CONTROLLER)
REFERENCE = {"group": "apisix.apache.org", "kind": "GatewayProxy", "name": "proxy"}


def proxy(target: DevGateway, **plane: object) -> Manifest:
    """Return a GatewayProxy for a gateway."""
    auth = {"type": "AdminKey", "adminKey": {"value": target.admin_key}}
    fields = {"endpoints": [f"http://{target.admin_address}"], "auth": auth, **plane}
    return make("GatewayProxy", "proxy", provider={"type": "ControlPlane", "controlPlane": fields})


def own_class(stage: Stage, name: str) -> Manifest:
    """Return an IngressClass with the GatewayProxy."""
    parameters = {"apiGroup": "apisix.apache.org", "kind": "GatewayProxy", "name": "proxy", "scope": "Namespace"}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": name},
        "spec": {
            "controller": "apisix.apache.org/apisix-ingress-controller",
            "parameters": {**parameters, "namespace": stage.namespace},
        },
    }


def of_class(manifest: Manifest, name: str) -> Manifest:
    return {**manifest, "spec": {**manifest["spec"], "ingressClassName": name}}


def gateway_of_proxy() -> Manifest:
    """Return a Gateway with the gateways of the GatewayProxy."""
    found = gateway()
    found["spec"]["infrastructure"] = {"parametersRef": REFERENCE}
    return found


def test_routes_go_to_the_gateways_of_their_gateway(stage: Stage) -> None:
    other = stage.another_gateway()
    stage.start()
    stage.serve()
    stage.apply([CLASS, proxy(other), gateway_of_proxy(), http_route(stage.host)])

    through(other).until_status(200, stage.host)
    assert stage.traffic.send(stage.host).status == 404

    stage.apply(gateway())
    stage.traffic.until_status(200, stage.host)
    through(other).until_status(404, stage.host)


def test_another_endpoint_of_a_proxy_is_used_when_the_first_one_is_gone(stage: Stage) -> None:
    other = stage.another_gateway()
    stage.start()
    stage.serve()
    endpoints = ["http://127.0.0.1:1", f"http://{other.admin_address}"]
    stage.apply([CLASS, proxy(other, endpoints=endpoints), gateway_of_proxy(), http_route(stage.host)])
    through(other).until_status(200, stage.host)


def test_a_proxy_names_the_addresses_in_the_statuses_of_its_class(stage: Stage) -> None:
    other = stage.another_gateway()
    name = f"class-{stage.namespace}"
    stage.start()
    stage.serve()
    named = proxy(other)
    named["spec"]["statusAddress"] = ["192.0.2.9"]
    stage.apply([named, own_class(stage, name)])
    stage.apply(of_class(route(stage.host), name))
    try:
        through(other).until_status(200, stage.host)
        stage.wait_route(lambda found: "192.0.2.9" in str((found or {}).get("status")), "to show the address")
    finally:
        stage.api.delete("IngressClass", name)


def test_a_class_has_standalone_gateways_and_others_have_not_its_routes(stage: Stage) -> None:
    other = stage.another_gateway(standalone=True)
    name = f"class-{stage.namespace}"
    stage.start()
    stage.serve()
    stage.apply([proxy(other, mode="apisix-standalone"), own_class(stage, name)])
    stage.apply([of_class(route(stage.host), name), route(f"default.{stage.host}", name="default")])
    try:
        through(other).until_status(200, stage.host)
        stage.traffic.until_status(200, f"default.{stage.host}")
        stage.wait_route(says("True"), "to be synced")
        assert stage.traffic.send(stage.host).status == 404
        assert through(other).send(f"default.{stage.host}").status == 404

        other.restart()
        through(other).until_status(200, stage.host)
    finally:
        stage.api.delete("IngressClass", name)


def test_a_route_names_the_secret_that_its_proxy_lacks(stage: Stage) -> None:
    other = stage.another_gateway()
    name = f"class-{stage.namespace}"
    stage.start()
    stage.serve()
    secret = {"secretKeyRef": {"name": "admin", "key": "key"}}
    auth = {"type": "AdminKey", "adminKey": {"valueFrom": secret}}
    stage.apply([proxy(other, auth=auth), own_class(stage, name), of_class(route(stage.host), name)])
    try:
        stage.wait_route(says("False", "Secret admin does not exist"), "to name the Secret")
        secret_object: Manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "admin"}}
        stage.apply({**secret_object, "stringData": {"key": other.admin_key}})
        through(other).until_status(200, stage.host)
        stage.wait_route(says("True"), "to be synced")

        stage.api.delete("GatewayProxy", "proxy", namespace=stage.namespace)
        stage.wait_route(says("False", "GatewayProxy", "does not exist"), "to name the GatewayProxy")
        assert through(other).send(stage.host).status == 200  # disconnected gateways keep their records
    finally:
        stage.api.delete("IngressClass", name)


def test_a_proxy_for_the_gateways_of_the_settings_changes_nothing(stage: Stage) -> None:
    own = stage.gateway
    stage.start()
    stage.serve()
    to_own = gateway()
    to_own["spec"]["infrastructure"] = {"parametersRef": REFERENCE}
    stage.apply([CLASS, gateway(), http_route(stage.host)])
    stage.traffic.until_status(200, stage.host)
    before = len(own.write_log())
    stage.apply([proxy(own), to_own])
    stage.apply(route(f"next.{stage.host}", name="next"))
    stage.traffic.until_status(200, f"next.{stage.host}")

    paths = [line["path"] for line in own.write_log(before) if line["method"] == "DELETE"]
    assert paths == []
    assert stage.traffic.send(stage.host).status == 200
