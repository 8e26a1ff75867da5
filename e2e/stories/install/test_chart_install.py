"""The API server accepts the manifests of the chart, the kustomize bases and the live demo."""

import json
import subprocess
from pathlib import Path

import pytest

import crds
from e2e.charts.chart import WITH_IMAGE, find, helm, render
from e2e.charts.kinds import CHART, KUSTOMIZE, ROOT
from e2e.charts.renders import KEY, PUBLISHED_KEY, VARIANTS, values_of
from e2e.cluster.binaries import locate
from e2e.cluster.client import KubeApiError, KubeClient, Manifest, load_manifests

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
FOREIGN_GROUPS = ("cert-manager.io", "monitoring.coreos.com")


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_api_server_accepts_every_field_and_the_restricted_pod(variant: str, api: KubeClient) -> None:
    with api.namespace(labels=RESTRICTED) as namespace:
        manifests = render(values_of(variant), release="test", namespace=namespace)
        ours = [each for each in manifests if each["apiVersion"].partition("/")[0] not in FOREIGN_GROUPS]
        api.apply(ours, strict=True, rehearse=True)
        api.apply(find(manifests, "ServiceAccount"))
        template = find(manifests, "Deployment")["spec"]["template"]
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] = {**template["metadata"], "name": "pod", "namespace": namespace}
        api.apply(pod, strict=True)
        api.delete("Pod", "pod", namespace=namespace, grace=0)


def test_the_restricted_pod_security_standard_is_enforced(api: KubeClient) -> None:
    with api.namespace(labels=RESTRICTED) as namespace:
        pod: Manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}}
        pod["spec"] = {"containers": [{"name": "a", "image": "a"}]}
        with pytest.raises(KubeApiError, match="violates PodSecurity"):
            api.create(pod, namespace=namespace)


def test_a_release_is_installed_upgraded_and_removed(api: KubeClient, namespace: str, kubeconfig: Path) -> None:
    def run(*command: str) -> str:
        access = ("--kubeconfig", str(kubeconfig), "--namespace", namespace)
        return helm(*command, *access)

    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    values = {"ingressClass": {"create": False}, "webhook": {"enabled": True, "namespaceSelector": selector}}
    sets: tuple[str, ...] = ("--set-json", f"{KEY}={json.dumps({'value': PUBLISHED_KEY})}")
    sets += ("--set", f"image.repository={WITH_IMAGE['image']['repository']}")
    sets += tuple(part for name, value in values.items() for part in ("--set-json", f"{name}={json.dumps(value)}"))
    notes = run("install", namespace, str(CHART), *sets, "--set", "config.probeAddr=:8081")
    name = f"{namespace}-apisix-ingress"
    assert f"deployment/{name}" in notes
    assert "no effect here: config.probeAddr." in notes
    assert "published with APISIX" in notes
    assert "cannot be drained" not in notes
    hook = api.get("ValidatingWebhookConfiguration", name)["webhooks"][0]
    deployment = api.get("Deployment", name, namespace=namespace)

    tight = ("--set", "podDisruptionBudget.minAvailable=90%")
    notes = run("upgrade", namespace, str(CHART), *sets, "--set", "config.logLevel=debug", *tight)
    assert "podDisruptionBudget allows no disruption of the 2 Pods: their nodes cannot be drained." in notes
    # The certificate stays, and the Pods are replaced because they read the settings only at startup.
    after = api.get("ValidatingWebhookConfiguration", name)["webhooks"][0]
    assert after["clientConfig"]["caBundle"] == hook["clientConfig"]["caBundle"]
    assert api.get("Deployment", name, namespace=namespace)["spec"]["template"] != deployment["spec"]["template"]

    run("uninstall", namespace)
    for kind in ("ClusterRole", "ClusterRoleBinding", "ValidatingWebhookConfiguration"):
        assert api.find(kind, name) is None
    assert api.objects("Deployment", namespace=namespace) == []


@pytest.mark.parametrize("base", ["base", "multi-tenant"])
def test_kustomize_builds_the_bases(base: str, api: KubeClient) -> None:
    kubectl = locate().kubectl
    assert kubectl is not None
    built = subprocess.run(
        [kubectl, "kustomize", KUSTOMIZE / base], capture_output=True, text=True, timeout=60, check=True
    )
    got = load_manifests(built.stdout)
    want = [*crds.manifests(), *load_manifests(KUSTOMIZE / base / "controller.yaml")]

    def identity(each: Manifest) -> tuple[str, str]:
        return each["kind"], each["metadata"]["name"]

    assert sorted(map(identity, got)) == sorted(map(identity, want))
    outside = [each for each in got if "namespace" not in each["metadata"]]
    api.apply([each for each in outside if each["kind"] != "CustomResourceDefinition"], strict=True, rehearse=True)


def test_the_api_server_accepts_the_gateway_of_the_live_demo(api: KubeClient) -> None:
    manifests = load_manifests(ROOT / "e2e" / "kind" / "apisix.yaml")
    with api.namespace("live") as namespace:
        for each in manifests:
            if each["kind"] != "Namespace":
                each["metadata"]["namespace"] = namespace
        # The script fills in the image names; the placeholders are not valid names.
        text = json.dumps(manifests).replace("_IMAGE", "").replace("ETCD", "e").replace("CONTROLLER", "c")
        api.apply(json.loads(text.replace('"APISIX"', '"a"')), strict=True, rehearse=True)
