"""The chart with `apisix.enabled`: controller, APISIX and etcd from one command."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.charts.chart import WITH_IMAGE, WITH_KEY, HelmError, find, helm, merged, nested, render
from e2e.charts.kinds import CHART
from e2e.cluster.client import KubeClient, Manifest

ENABLED = merged(nested("apisix.enabled", value=True), WITH_IMAGE)
NAME = "apisix-ingress-apisix"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


def settings_of(manifests: list[Manifest]) -> Any:
    return yaml.safe_load(find(manifests, "ConfigMap", "apisix-ingress")["data"]["config.yaml"])


def test_the_controller_is_connected_to_the_gateway_and_the_gateway_to_etcd() -> None:
    manifests = render(ENABLED)
    (cluster,) = settings_of(manifests)["clusters"]
    assert cluster["admin_url"] == f"http://{NAME}-admin.apisix-ingress.svc:9180/apisix/admin"
    gateway = yaml.safe_load(find(manifests, "ConfigMap", NAME)["data"]["config.yaml"])
    assert gateway["deployment"]["etcd"]["host"] == [f"http://{NAME}-etcd:2379"]
    assert gateway["deployment"]["admin"]["admin_key"][0]["key"] == "${{ADMIN_KEY}}"
    (variable,) = find(manifests, "Deployment", NAME)["spec"]["template"]["spec"]["containers"][0]["env"]
    assert variable["valueFrom"]["secretKeyRef"] == {"name": NAME, "key": "admin-key"}
    assert f'"secretName": "{NAME}"' in json.dumps(find(manifests, "Deployment", "apisix-ingress"))
    assert find(manifests, "Secret", NAME)["data"]["admin-key"]


def test_services_select_their_pods() -> None:
    manifests = render(ENABLED)
    labels = {
        kind: find(manifests, kind, name)["spec"]["template"]["metadata"]["labels"]
        for kind, name in (("Deployment", NAME), ("StatefulSet", f"{NAME}-etcd"))
    }
    controller = find(manifests, "Deployment", "apisix-ingress")["spec"]["selector"]["matchLabels"]
    for suffix, kind in (("gateway", "Deployment"), ("admin", "Deployment"), ("etcd", "StatefulSet")):
        service = find(manifests, "Service", f"{NAME}-{suffix}")
        assert service["spec"]["selector"].items() <= labels[kind].items()
    assert not any(controller.items() <= each.items() for each in labels.values())
    policy = find(manifests, "NetworkPolicy", NAME)["spec"]["ingress"][1]
    assert policy["from"] == [{"podSelector": {"matchLabels": controller}}]


def test_a_user_defined_key_is_used_by_gateway_and_controller() -> None:
    manifests = render(merged(WITH_KEY, ENABLED))
    assert [each["metadata"]["name"] for each in manifests if each["kind"] == "Secret"] == []
    (variable,) = find(manifests, "Deployment", NAME)["spec"]["template"]["spec"]["containers"][0]["env"]
    assert variable["valueFrom"]["secretKeyRef"] == {"name": "apisix-admin-key", "key": "admin-key"}


def test_without_storage_etcd_has_a_temporary_volume() -> None:
    spec = find(render(merged(ENABLED, nested("apisix.etcd.storage", ""))), "StatefulSet")["spec"]
    assert ("volumeClaimTemplates" in spec, spec["template"]["spec"]["volumes"]) == (
        False,
        [{"name": "data", "emptyDir": {}}],
    )


def test_a_second_gateway_is_rejected() -> None:
    other = nested("gatewayProxy.provider.controlPlane.endpoints", ["http://gw:9180"])
    with pytest.raises(HelmError, match="names another one: set one of them"):
        render(merged(ENABLED, other))


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("replicaCount=2", "set deployment.replicas"),
        ("config.logLevle=debug", "logLevle"),
    ],
)
def test_values_of_1_8_are_rejected_with_their_new_name(value: str, hint: str) -> None:
    with pytest.raises(HelmError, match=hint):
        helm("template", "x", CHART, "--set", "apisix.enabled=true", "--set", value)


def test_a_release_keeps_its_key_and_its_notes_have_the_next_commands(
    api: KubeClient, namespace: str, kubeconfig: Path
) -> None:
    def run(*command: str) -> str:
        access = ("--kubeconfig", str(kubeconfig), "--namespace", namespace)
        image = ("--set", f"image.repository={WITH_IMAGE['image']['repository']}")
        return helm(*command, *image, "--set", "apisix.enabled=true", "--set", "ingressClass.create=false", *access)

    notes = run("install", namespace, str(CHART))
    for command in ("rollout status", "-- apisix-ingress doctor", "port-forward", "kubectl get ingress web"):
        assert command in notes
    name = f"{namespace}-apisix-ingress-apisix"
    before = api.get("Secret", name, namespace=namespace)["data"]
    run("upgrade", namespace, str(CHART), "--set", "config.logLevel=debug")
    assert api.get("Secret", name, namespace=namespace)["data"] == before
    helm("uninstall", namespace, "--kubeconfig", str(kubeconfig), "--namespace", namespace)


def test_the_api_server_accepts_every_field_and_restricted_pods(api: KubeClient) -> None:
    with api.namespace(labels=RESTRICTED) as namespace:
        manifests = render(ENABLED, release="test", namespace=namespace)
        api.apply(manifests, strict=True, rehearse=True)
        api.apply(find(manifests, "ServiceAccount"))
        release = "test-apisix-ingress-apisix"
        for workload in (find(manifests, "Deployment", release), find(manifests, "StatefulSet")):
            template = workload["spec"]["template"]
            pod = {"apiVersion": "v1", "kind": "Pod", **template}
            pod["metadata"] = {**template["metadata"], "name": "pod", "namespace": namespace}
            volumes = [*template["spec"].get("volumes", []), *_claims(workload)]
            pod["spec"] = {**template["spec"], "serviceAccountName": "test-apisix-ingress", "volumes": volumes}
            api.apply(pod, strict=True, rehearse=True)


def _claims(workload: Manifest) -> list[Manifest]:
    """Return the volume claims of a StatefulSet."""
    claims = workload["spec"].get("volumeClaimTemplates", ())
    return [{"name": each["metadata"]["name"], "emptyDir": {}} for each in claims]
