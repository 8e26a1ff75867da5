"""Addresses of other namespaces under the preset: a tenant cannot reach a victim's Pod or Service."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest
import yaml

from e2e.cluster.client import Manifest
from e2e.definitions.gateway_kinds import GROUP
from e2e.story import Stage, condition, route, says

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "several-teams.md"
BLOCK = re.compile(r"^ *```yaml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)

VERSION = {"apiVersion": "apisix.apache.org/v2"}
STRICT = {"external_addresses": "refuse-internal", "cross_namespace": "grant"}
pytestmark = pytest.mark.usefixtures("reference_grants")


def external(stage: Stage, name: str, address: str) -> list[Manifest]:
    """Return an external upstream and its route."""
    node = {"type": "Domain", "name": address, "port": 80}
    rule = {
        "name": "r",
        "match": {"hosts": [f"{name}.{stage.host}"], "paths": ["/*"]},
        "upstreams": [{"name": name}],
    }
    return [
        {**VERSION, "kind": "ApisixUpstream", "metadata": {"name": name}, "spec": {"externalNodes": [node]}},
        {**VERSION, "kind": "ApisixRoute", "metadata": {"name": name}, "spec": {"http": [rule]}},
    ]


def hand_made(address: str) -> list[Manifest]:
    """Return a Service without a selector, and a manual EndpointSlice for it."""
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "mine"}, "spec": {"ports": ports}},
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": "mine-1", "labels": {"kubernetes.io/service-name": "mine"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            "ports": ports,
        },
    ]


def grant(stage: Stage, tenant: str) -> Manifest:
    sources = [
        {"group": "apisix.apache.org", "kind": "ApisixUpstream", "namespace": tenant},
        {"group": "", "kind": "Service", "namespace": tenant},
    ]
    spec = {"from": sources, "to": [{"group": "", "kind": "Service"}]}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ReferenceGrant",
        "metadata": {"name": "grant", "namespace": stage.namespace},
        "spec": spec,
    }


def test_no_address_of_a_victim_reaches_its_pods_without_a_grant(stage: Stage, tenant: str) -> None:
    """Without the settings, each of them reaches the victim's Pod; names are not resolved here but reported."""
    stage.serve()
    (pod,) = stage.pods.pods
    service = stage.api.get("Service", "web", namespace=stage.namespace)
    assert service is not None
    cluster_ip = service["spec"]["clusterIP"]
    name = f"web.{stage.namespace}.svc.cluster.local"
    stage.api.apply(hand_made(pod.address), namespace=tenant)
    stage.api.apply(route(f"mine.{stage.host}", name="mine", service="mine"), namespace=tenant)
    for key, address in (("pod", pod.address), ("ip", cluster_ip), ("name", name)):
        stage.api.apply(external(stage, key, address), namespace=tenant)
    open_one = stage.start()
    for key in ("mine", "pod"):
        assert stage.traffic.until_status(200, f"{key}.{stage.host}").pod == "web"
    for key in ("ip", "name"):
        stage.api.wait("ApisixUpstream", key, says("True"), "published", namespace=tenant)
    assert open_one.stop() == 0

    stage.start(kubernetes=STRICT)
    for key in ("pod", "ip", "name"):
        reported = says("False", "in another namespace", "ReferenceGrant")
        found = stage.api.wait("ApisixUpstream", key, reported, "refused", namespace=tenant)
        assert key == "name" or stage.namespace not in condition(found)["message"]
        stage.api.wait("ApisixRoute", key, reported, "refused as well", namespace=tenant)
        stage.traffic.until_status(404, f"{key}.{stage.host}")
    stage.traffic.until_status(503, f"mine.{stage.host}")

    stage.api.apply(grant(stage, tenant))
    for key in ("mine", "pod"):
        assert stage.traffic.until_status(200, f"{key}.{stage.host}").pod == "web"
    stage.api.delete("ReferenceGrant", "grant", namespace=stage.namespace)
    stage.traffic.until_status(404, f"pod.{stage.host}")
    stage.traffic.until_status(503, f"mine.{stage.host}")


def test_network_policies_of_the_page_are_accepted_by_an_api_server(stage: Stage) -> None:
    found = [each for text in BLOCK.findall(PAGE.read_text()) for each in yaml.safe_load_all(dedent(text))]
    policies = [each for each in found if each.get("kind") == "NetworkPolicy"]
    mine = [{**each, "metadata": {"name": each["metadata"]["name"]}} for each in policies]
    got = stage.api.apply(mine, namespace=stage.namespace, strict=True, rehearse=True)
    assert [item["metadata"]["name"] for item in got] == ["gateway-egress", "gateway-ingress", "etcd-ingress"]
