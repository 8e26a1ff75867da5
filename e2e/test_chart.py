"""The chart: what helm makes of it, what the API server says to that, and what is generated from it is up to date."""

import base64
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

import crds
from apisix_ingress import __version__
from apisix_ingress.settings import Settings, load_settings
from e2e import chart
from e2e.chart import CHART, KUSTOMIZE, ROOT, WITH_KEY, HelmError, find, helm, merged, nested, render
from e2e.cluster.binaries import locate
from e2e.cluster.client import KubeApiError, KubeClient, Manifest, load_manifests

KEY = "gatewayProxy.provider.controlPlane.auth.adminKey"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
FOREIGN_GROUPS = ("cert-manager.io", "monitoring.coreos.com")
PUBLISHED_KEY = "edd1c9f034335f136f87ad84b625c8f1"
ENDPOINTS = "gatewayProxy.provider.controlPlane.endpoints"
EDGE: Mapping[str, Any] = {
    "name": "edge",
    "adminUrl": "https://edge.example.org/apisix/admin",
    "adminKey": {"value": "a-key-of-its-own"},
}

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "defaults": {},
    "multi-tenant": {"preset": "multi-tenant"},
    "one replica, no election, no status": {
        "deployment": {"replicas": 1},
        "config": {"leaderElection": {"disable": True}, "status": {"enabled": False}},
    },
    "endpoints and published addresses": {
        "config": {
            "kubernetes": {"endpointSource": "endpoints", "namespaceSelector": "team in (a,b),!legacy"},
            "status": {"publishService": "gateways/apisix"},
        }
    },
    "default class of another name": {"config": {"kubernetes": {"ingressClass": "edge", "defaultIngressClass": True}}},
    "several clusters with TLS": {
        "gatewayProxy": {"provider": {"controlPlane": {"tls": {"verify": False}}}},
        "clusters": [
            {
                "name": "edge",
                "adminUrl": "https://edge.example.org/apisix/admin",
                "adminKey": {"value": "a-key-of-its-own"},
                "tls": {"caSecretName": "edge-ca", "clientSecretName": "edge-client"},
                "provider": {"concurrency": 4},
            }
        ],
    },
    "rights in some namespaces": {
        "rbac": {"scope": "namespaced"},
        "config": {"kubernetes": {"watchNamespaces": ["default", "kube-system"]}},
    },
    "plugin metadata": {"gatewayProxy": {"provider": {"pluginMetadata": {"http-logger": {"log_format": {"a": "$b"}}}}}},
    "webhook with a certificate made here": {"webhook": {"enabled": True}},
    "webhook with a certificate of cert-manager": {
        "webhook": {"enabled": True, "certificate": {"certManager": {"enabled": True}}}
    },
    "webhook with a certificate that exists": {
        "webhook": {
            "enabled": True,
            "failurePolicy": "Fail",
            "namespaceSelector": {"matchLabels": {"team": "a"}},
            "certificate": {"provided": True, "secretName": "tls", "caBundle": "Y2E="},
        }
    },
    "everything else": {
        "labelsOverride": {"app": "{{ .Release.Name }}"},
        "serviceMonitor": {"enabled": True, "namespace": "default", "labels": {"release": "prometheus"}},
        "podDisruptionBudget": {"minAvailable": "50%"},
        "metrics": {"service": {"port": 9090, "annotations": {"a": "b"}}},
        "networkPolicy": {
            "metrics": {"from": [{"namespaceSelector": {"matchLabels": {"team": "monitoring"}}}]},
            "apiServer": {"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [16443]},
            "admin": {"to": [{"podSelector": {"matchLabels": {"app": "apisix"}}}], "ports": [9180, 9181]},
            "extraEgress": [{"ports": [{"port": 4317}]}],
        },
        "deployment": {
            "replicas": 3,
            "annotations": {"a": "b"},
            "podAnnotations": {"a": "b"},
            "podLabels": {"a": "b"},
            "image": {"digest": "sha256:" + "0" * 64},
            "imagePullSecrets": [{"name": "pull"}],
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "affinity": {"podAntiAffinity": {}},
            "priorityClassName": "system-cluster-critical",
            "extraEnv": [{"name": "APISIX_INGRESS_LOG__LEVEL", "value": "debug"}],
        },
    },
}


def values_of(variant: str) -> dict[str, Any]:
    return merged(WITH_KEY, VARIANTS[variant])


@cache
def rendered(variant: str) -> tuple[Manifest, ...]:
    return tuple(render(values_of(variant), release="test", namespace="here"))


def settings_of(manifests: Sequence[Manifest], folder: Path) -> Settings:
    """Return the settings that the program would run with; its own check must let them pass."""
    file = folder / "config.yaml"
    file.write_text(find(manifests, "ConfigMap", "test-apisix-ingress")["data"]["config.yaml"])
    return load_settings(file)


def test_the_chart_has_nothing_that_helm_lint_minds() -> None:
    said = helm("lint", "--strict", CHART, "--set-json", f"{KEY}={json.dumps(chart.ADMIN_SECRET)}")
    assert [line for line in said.splitlines() if line.startswith(("[WARNING]", "[ERROR]"))] == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_program_takes_the_settings_of_a_render(variant: str, tmp_path: Path) -> None:
    got = settings_of(rendered(variant), tmp_path)
    assert [cluster.admin_key_file for cluster in got.clusters] == [
        f"/etc/apisix-ingress/keys/{cluster.name}/admin-key" for cluster in got.clusters
    ]


def test_without_values_the_settings_are_the_defaults_of_the_program(tmp_path: Path) -> None:
    got = settings_of(render(release="test", namespace="here"), tmp_path)
    assert got.kubernetes == Settings().kubernetes
    (cluster,) = got.clusters
    assert (cluster.admin_url, cluster.sync) == (
        "http://apisix-admin.here.svc:9180/apisix/admin",
        Settings().clusters[0].sync,
    )


def test_every_setting_has_a_value_or_is_that_of_the_pod() -> None:
    def keys(node: Any, prefix: str = "") -> set[str]:
        if isinstance(node, dict) and node:
            return {key for name, each in node.items() for key in keys(each, f"{prefix}.{name}".lstrip("."))}
        listed = isinstance(node, list | tuple) and node and isinstance(node[0], dict)
        return {key for each in node for key in keys(each, f"{prefix}[]")} if listed else {prefix}

    texts = [find(rendered(variant), "ConfigMap", "test-apisix-ingress")["data"]["config.yaml"] for variant in VARIANTS]
    given = {key for text in texts for key in keys(yaml.safe_load(text))}
    # Where the Pod is, and what it has as files; all of it can be given as environment (deployment.extraEnv).
    of_the_pod = {"kubernetes.kubeconfig", "kubernetes.election.namespace", "clusters[].admin_key"}
    assert keys(Settings().model_dump()) - of_the_pod == given


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_file_that_the_settings_name_is_mounted(variant: str, tmp_path: Path) -> None:
    manifests = rendered(variant)
    settings = settings_of(manifests, tmp_path)
    named = {settings.webhook.cert_file, settings.webhook.key_file} if settings.webhook.enabled else set()
    for cluster in settings.clusters:
        named |= {cluster.admin_key_file, cluster.tls.ca_file, cluster.tls.cert_file, cluster.tls.key_file}
    spec = find(manifests, "Deployment")["spec"]["template"]["spec"]
    files = {volume["name"]: volume.get("secret", {}).get("items", []) for volume in spec["volumes"]}
    mounts = spec["containers"][0]["volumeMounts"]
    got = {f"{mount['mountPath']}/{item['path']}" for mount in mounts for item in files[mount["name"]]}
    assert got == named - {""}


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_api_server_takes_every_field_and_the_pod_under_the_restricted_standard(
    variant: str, api: KubeClient
) -> None:
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


def test_the_restricted_pod_security_standard_is_enforced_at_all(api: KubeClient) -> None:
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
    sets += tuple(part for name, value in values.items() for part in ("--set-json", f"{name}={json.dumps(value)}"))
    notes = run("install", namespace, str(CHART), *sets, "--set", "config.probeAddr=:8081")
    name = f"{namespace}-apisix-ingress"
    assert f"deployment/{name}" in notes
    assert "no effect here: config.probeAddr." in notes
    assert "published with APISIX" in notes
    assert "can't be drained" not in notes
    hook = api.get("ValidatingWebhookConfiguration", name)["webhooks"][0]
    deployment = api.get("Deployment", name, namespace=namespace)

    tight = ("--set", "podDisruptionBudget.minAvailable=90%")
    notes = run("upgrade", namespace, str(CHART), *sets, "--set", "config.logLevel=debug", *tight)
    assert "podDisruptionBudget lets none of the 2 Pods go: nodes that they run on can't be drained." in notes
    # The certificate stays, and the Pods are replaced, since they read the settings when they start.
    after = api.get("ValidatingWebhookConfiguration", name)["webhooks"][0]
    assert after["clientConfig"]["caBundle"] == hook["clientConfig"]["caBundle"]
    assert api.get("Deployment", name, namespace=namespace)["spec"]["template"] != deployment["spec"]["template"]

    run("uninstall", namespace)
    for kind in ("ClusterRole", "ClusterRoleBinding", "ValidatingWebhookConfiguration"):
        assert api.find(kind, name) is None
    assert api.objects("Deployment", namespace=namespace) == []


@pytest.mark.parametrize(
    ("values", "want"),
    [
        ({}, rf"{KEY}: the admin key of the gateways is missing and has no default: name the Secret .*secretKeyRef"),
        (nested(KEY, {"value": "a", **chart.ADMIN_SECRET}), f"{KEY}: give value or valueFrom, not both"),
        (
            {"preset": "multi-tenant", **nested(KEY, {"value": PUBLISHED_KEY})},
            "this key is published with APISIX, everybody knows it",
        ),
        (
            merged(WITH_KEY, nested("config.leaderElection.disable", True)),
            r"config\.leaderElection\.disable needs deployment\.replicas: 1",
        ),
        (
            merged(
                WITH_KEY, nested("webhook", {"enabled": True, "certificate": {"provided": True, "secretName": "tls"}})
            ),
            r"webhook\.certificate\.caBundle: give the CA",
        ),
        (
            merged(WITH_KEY, nested("config.leaderElection.leaseDuration", "10s")),
            r"leaderElection\.leaseDuration \(10s\) must be longer than renewDeadline \(10s\): raise the one or lower",
        ),
        (
            merged(WITH_KEY, nested("config.leaderElection.leaseDuration", 9.5)),
            r"leaderElection\.leaseDuration \(9\.5\) must be longer than renewDeadline \(10s\): raise the one or lower",
        ),
        (
            merged(WITH_KEY, nested("config.leaderElection.retryPeriod", "1m")),
            r"leaderElection\.renewDeadline \(10s\) must be longer than 1\.2 times retryPeriod \(1m\): raise the one",
        ),
        (
            merged(WITH_KEY, nested("config.provider.timeout", "1h")),
            r"config\.provider\.timeout \(1h\) must be at most .*leaseDuration - renewDeadline \(5s\).*: lower it",
        ),
        (
            merged(WITH_KEY, nested("clusters", [{**EDGE, "provider": {"timeout": "5001ms"}}])),
            r"clusters\[0\]\.provider\.timeout \(5001ms\) must be at most .*leaseDuration - renewDeadline \(5s\)",
        ),
        (
            merged(WITH_KEY, nested("clusters", [{**EDGE, "name": "default"}])),
            r'clusters\[0\]\.name: "default" is taken already, by the gateways of gatewayProxy: give each',
        ),
        (
            merged(WITH_KEY, nested("clusters", [EDGE, EDGE])),
            r'clusters\[1\]\.name: "edge" is taken already: give each cluster a name of its own',
        ),
        (
            merged(WITH_KEY, nested("webhook", {"enabled": True, "port": 8080})),
            r"webhook\.port: 8080 is the port of health and metrics: use another one, such as 8443",
        ),
        (
            merged(
                WITH_KEY,
                nested("config.kubernetes.watchNamespaces", ["shop"]),
                nested("config.status.publishService", "gateways/apisix"),
            ),
            r"is in namespace gateways, which is not read: add it to config\.kubernetes\.watchNamespaces",
        ),
        (
            merged(WITH_KEY, nested("rbac.scope", "namespaced")),
            r"rbac\.scope namespaced needs config\.kubernetes\.watchNamespaces",
        ),
        (
            merged(WITH_KEY, nested("serviceAccount.create", False)),
            r"serviceAccount\.name: name the account",
        ),
        (
            merged(WITH_KEY, nested("podDisruptionBudget", {"minAvailable": 1, "maxUnavailable": "50%"})),
            r"podDisruptionBudget: minAvailable \(1\) and maxUnavailable \(50%\) exclude each other: give one of them",
        ),
        (
            merged(WITH_KEY, nested("podDisruptionBudget", {"minAvailable": 0, "maxUnavailable": 0})),
            r"podDisruptionBudget: minAvailable \(0\) and maxUnavailable \(0\) exclude each other",
        ),
        (
            merged(WITH_KEY, {"deployment": {"podLabels": {"app.kubernetes.io/name": "other"}}}),
            r"deployment\.podLabels: app\.kubernetes\.io/name is one of the labels by which the Pods are found: use",
        ),
        (
            merged(WITH_KEY, nested("webhook", {"enabled": True, "certificate": {"secretName": "tls"}})),
            r"webhook\.certificate\.secretName has no effect: set webhook\.certificate\.provided to true, or",
        ),
    ],
)
def test_values_that_do_not_go_together_are_refused_with_the_remedy(values: dict[str, Any], want: str) -> None:
    with pytest.raises(HelmError, match=want):
        render(values)


@pytest.mark.parametrize(
    ("name", "value", "want"),
    [
        ("deployment.replica", 3, "at '/deployment': additional properties 'replica' not allowed"),
        ("deployment.replicas", "two", "at '/deployment/replicas': got string, want integer"),
        ("config.logLevel", "loud", "at '/config/logLevel': value must be one of 'debug'"),
        ("config.leaderElection.leaseDuration", "long", "at '/config/leaderElection/leaseDuration'"),
        ("config.kubernetes.crossNamespace", "deny", "value must be one of 'allow', 'grant'"),
        ("config.status.publishService", "apisix", "at '/config/status/publishService'"),
        (ENDPOINTS, ["apisix:9180"], "endpoints/0': 'apisix:9180' does not match"),
        ("clusters", [{"name": "edge"}], "at '/clusters/0': missing properties 'adminUrl', 'adminKey'"),
        ("config.leaderElection.id", "A B", "at '/config/leaderElection/id': 'A B' does not match"),
        ("config.provider.timeout", "0s", "at '/config/provider/timeout': '0s' does not match pattern '[1-9]'"),
        ("config.provider.syncPeriod", "0h0.0s", "at '/config/provider/syncPeriod': '0h0.0s' does not match"),
        ("config.kubernetes.ingressClass", "a b", "at '/config/kubernetes/ingressClass': 'a b' does not match"),
        ("config.kubernetes.namespaceSelector", "a=b=c", "namespaceSelector': 'a=b=c' does not match"),
        ("config.kubernetes.namespaceSelector", "!", "namespaceSelector': '!' does not match"),
        ("config.kubernetes.namespaceSelector", "a in (b", "namespaceSelector': 'a in (b' does not match"),
        ("config.status.addresses", ["a b"], "at '/config/status/addresses/0': 'a b' does not match"),
        ("config.status.addresses", ["1:2"], "at '/config/status/addresses/0': '1:2' is not valid ipv6"),
        (ENDPOINTS, ["http://apisix:9180?a=b"], "endpoints/0': 'http://apisix:9180?a=b' does not match"),
        (ENDPOINTS, ["http://apisix:9180/admin#a"], "endpoints/0': 'http://apisix:9180/admin#a' does not match"),
        (ENDPOINTS, ["http://apisix:99999"], "endpoints/0': 'http://apisix:99999' does not match"),
        (ENDPOINTS, ["http://apisix/ü"], "endpoints/0': 'http://apisix/ü' does not match"),
        ("clusters", [{**EDGE, "adminUrl": "http://edge:0/apisix/admin"}], "at '/clusters/0/adminUrl'"),
        ("apisix.adminService.name", "a b", "at '/apisix/adminService/name': 'a b' does not match"),
        ("nameOverride", "a b", "at '/nameOverride': 'a b' does not match"),
        ("fullnameOverride", "Ü_x", "at '/fullnameOverride': 'Ü_x' does not match"),
        ("podDisruptionBudget.minAvailable", "most", "at '/podDisruptionBudget/minAvailable': 'most' does not match"),
        ("networkPolicy.apiServer.ports", [70000], "at '/networkPolicy/apiServer/ports/0'"),
        ("preset", "strict", "at '/preset': value must be one of '', 'multi-tenant'"),
        ("webhook.timeoutSeconds", 60, "at '/webhook/timeoutSeconds': maximum: got 60, want 30"),
        ("webhook.certificate.caBundle", "-----BEGIN CERTIFICATE-----", "at '/webhook/certificate/caBundle'"),
        ("webhook.certificate.secretName", "A_b", "at '/webhook/certificate/secretName': 'A_b' does not match"),
        (f"{KEY}.valueFrom.secretKeyRef.name", "A b", "valueFrom/secretKeyRef/name': 'A b' does not match"),
        (f"{KEY}.valueFrom.secretKeyRef.key", "a/b", "valueFrom/secretKeyRef/key': 'a/b' does not match"),
        ("gatewayProxy.provider.controlPlane.tls.caSecretName", "A", "tls/caSecretName': 'A' does not match"),
        ("serviceAccount.name", "A b", "at '/serviceAccount/name': 'A b' does not match"),
        ("serviceMonitor.namespace", "A", "at '/serviceMonitor/namespace': 'A' does not match"),
        ("deployment.priorityClassName", "A", "at '/deployment/priorityClassName': 'A' does not match"),
        ("deployment.image.tag", "a:b", "at '/deployment/image/tag': 'a:b' does not match"),
        ("deployment.image.repository", "example.org/a:1", "at '/deployment/image/repository': 'example.org/a:1' does"),
        ("config.controllerName", "ours", "at '/config/controllerName': 'ours' does not match"),
        ("networkPolicy.metrics.from", [{}], "at '/networkPolicy/metrics/from/0': minProperties: got 0, want 1"),
        (
            "networkPolicy.admin.to",
            [{"ipBlock": {}}],
            "at '/networkPolicy/admin/to/0/ipBlock': missing property 'cidr'",
        ),
    ],
)
def test_the_schema_names_a_wrong_value(name: str, value: object, want: str) -> None:
    with pytest.raises(HelmError) as refused:
        render(merged(WITH_KEY, nested(name, value)))
    assert want in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (ENDPOINTS, ["https://[2001:db8::1]:65535/apisix/admin"]),
        (ENDPOINTS, ["http://192.0.2.1:9180/"]),
        ("config.status.addresses", ["192.0.2.1", "2001:db8::1", "lb.example.org"]),
        ("config.kubernetes.namespaceSelector", " example.org/team notin (a, b_1,) , !c,d == e,f!=,g "),
        ("config.kubernetes.ingressClass", "apisix.internal"),
        ("config.leaderElection", {"leaseDuration": 60, "renewDeadline": "0.5m", "retryPeriod": "500ms"}),
        ("config.provider", {"timeout": "0.05s", "syncPeriod": "1h30m"}),
        ("clusters", [{**EDGE, "provider": {"timeout": "5s"}}]),
        ("deployment.image", {"repository": "registry.example.org:5000/team/apisix-ingress", "tag": "v1.0_a"}),
        ("config.controllerName", "example.org/a.b-c/d"),
        ("webhook.certificate.caBundle", "Y2E=\n"),
        ("podDisruptionBudget", {"enabled": False, "minAvailable": 1, "maxUnavailable": 1}),
    ],
)
def test_values_near_the_refused_ones_are_taken_by_chart_and_program(name: str, value: object, tmp_path: Path) -> None:
    manifests = render(merged(WITH_KEY, nested(name, value)), release="test")
    assert settings_of(manifests, tmp_path).clusters[0].name == "default"


def test_every_value_has_a_type_and_every_property_a_default() -> None:
    def leaves(node: object, prefix: str, known: set[str]) -> set[str]:
        if isinstance(node, dict) and prefix not in known and node:
            return {leaf for name, each in node.items() for leaf in leaves(each, f"{prefix}.{name}".lstrip("."), known)}
        return {prefix}

    found = {each.name: each for each in chart.properties()}
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    given = leaves(defaults, "", set(found))
    without_default = {name for name, each in found.items() if each.default is None and each.has_effect}
    assert given - found.keys() <= {f"{KEY}.valueFrom", "webhook.certificate.certManager.issuerRef"}
    assert {name for name in without_default if "[]" not in name} == {
        "global",
        "enabled",
        f"{KEY}.valueFrom.secretKeyRef.name",
        f"{KEY}.valueFrom.secretKeyRef.key",
        *(f"webhook.certificate.certManager.issuerRef.{name}" for name in ("name", "kind", "group")),
    }


def test_nothing_in_the_schema_is_open_but_what_kubernetes_defines() -> None:
    def check(node: object, path: str) -> list[str]:
        found = []
        if isinstance(node, dict):
            if "properties" in node and node.get("additionalProperties") is not False:
                found.append(path)
            found += [each for name, part in node.items() for each in check(part, f"{path}/{name}")]
        return found

    assert check(json.loads((CHART / "values.schema.json").read_text()), "") == []


def test_values_of_the_peers_chart_are_taken() -> None:
    values = {
        "config": {
            "logLevel": "warn",
            "leaderElection": {"id": "leader", "disable": False},
            "metricsAddr": ":8080",
            "provider": {"type": "apisix-standalone", "syncPeriod": "1h", "initSyncDelay": "20m"},
            "kubernetes": {"ingressClass": "apisix", "defaultIngressClass": True},
        },
        "deployment": {"replicas": 1, "adcContainer": {"image": {"tag": "a"}}, "podSecurityContext": {"fsGroup": 2000}},
        "gatewayProxy": {
            "createDefault": True,
            "provider": {
                "type": "ControlPlane",
                "controlPlane": {"endpoints": ["http://apisix-admin.apisix.svc:9180"], "auth": {"type": "AdminKey"}},
            },
        },
        "podDisruptionBudget": {"enabled": True, "minAvailable": "90%", "maxUnavailable": 1},
        "autoscaling": {"enabled": False},
    }
    manifests = render(merged(WITH_KEY, values), release="test")
    config = yaml.safe_load(find(manifests, "ConfigMap")["data"]["config.yaml"])
    assert config["log"]["level"] == "warning"
    assert config["clusters"][0]["admin_url"] == "http://apisix-admin.apisix.svc:9180/apisix/admin"
    assert config["clusters"][0]["sync"]["audit_interval"] == "1h"
    class_ = find(manifests, "IngressClass", "apisix")
    assert class_["metadata"]["annotations"] == {"ingressclass.kubernetes.io/is-default-class": "true"}
    assert config["kubernetes"]["ingress_class_controller"] == class_["spec"]["controller"]


def test_the_page_leads_from_the_values_of_the_older_chart_to_those_that_exist() -> None:
    _, _, part = chart.PAGE.read_text().partition("## From the chart of the 1.8 line")
    rows = re.findall(r"^\| `.*\| (`.*) \|$", part.partition("## Values")[0], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([A-Za-z.]+\.[A-Za-z.]+)`", row)}
    assert len(named) == 16
    assert named <= {each.name for each in chart.properties()}


def test_the_network_policy_lets_in_the_named_ports_only() -> None:
    policy = find(rendered("webhook with a certificate that exists"), "NetworkPolicy")["spec"]
    assert [port["port"] for rule in policy["ingress"] for port in rule["ports"]] == [8080, 8443]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    several = find(rendered("several clusters with TLS"), "NetworkPolicy")["spec"]
    assert [port["port"] for port in several["egress"][2]["ports"]] == [9180, 443]


def test_the_container_can_write_nowhere_and_only_its_pods_have_the_token() -> None:
    manifests = rendered("webhook with a certificate that exists")
    pod = find(manifests, "Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert {key for volume in pod["volumes"] for key in volume} == {"name", "configMap", "secret"}
    assert find(manifests, "ServiceAccount")["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is True
    assert "limits" in container["resources"]


@pytest.mark.parametrize(
    ("budget", "want"),
    [
        ({}, {"maxUnavailable": 1}),
        ({"minAvailable": 1}, {"minAvailable": 1}),
        ({"minAvailable": 0}, {"minAvailable": 0}),
        ({"minAvailable": "50%"}, {"minAvailable": "50%"}),
        ({"maxUnavailable": "2"}, {"maxUnavailable": 2}),
        ({"maxUnavailable": 0}, {"maxUnavailable": 0}),
    ],
)
def test_a_disruption_budget_is_the_one_that_is_asked_for(budget: dict[str, Any], want: dict[str, Any]) -> None:
    spec = find(render(merged(WITH_KEY, nested("podDisruptionBudget", budget))), "PodDisruptionBudget")["spec"]
    assert {name: value for name, value in spec.items() if name != "selector"} == want


def test_one_replica_has_no_disruption_budget() -> None:
    kinds = {each["kind"] for each in render(merged(WITH_KEY, nested("deployment.replicas", 1)))}
    assert "PodDisruptionBudget" not in kinds


def test_the_webhook_asks_for_what_the_controller_reads() -> None:
    manifests = rendered("webhook with a certificate of cert-manager")
    (hook,) = find(manifests, "ValidatingWebhookConfiguration")["webhooks"]
    service = find(manifests, "Service", "test-apisix-ingress-webhook")["metadata"]
    assert hook["clientConfig"]["service"] == {
        "name": service["name"],
        "namespace": service["namespace"],
        "path": "/validate",
        "port": 443,
    }
    custom, ingress = hook["rules"]
    assert custom["resources"] == sorted(each["spec"]["names"]["plural"] for each in crds.manifests())
    assert ingress["resources"] == ["ingresses"]
    certificate = find(manifests, "Certificate")
    assert certificate["spec"]["secretName"] == service["name"]
    assert certificate["spec"]["issuerRef"]["name"] == find(manifests, "Issuer")["metadata"]["name"]
    assert find(manifests, "ValidatingWebhookConfiguration")["metadata"]["annotations"] == {
        "cert-manager.io/inject-ca-from": f"here/{certificate['metadata']['name']}"
    }


def test_the_certificate_made_at_install_is_the_webhooks() -> None:
    manifests = rendered("webhook with a certificate made here")
    data = find(manifests, "Secret", "test-apisix-ingress-webhook")["data"]
    leaf, authority = (x509.load_pem_x509_certificate(base64.b64decode(data[name])) for name in ("tls.crt", "ca.crt"))
    leaf.verify_directly_issued_by(authority)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    service = find(manifests, "ValidatingWebhookConfiguration")["webhooks"][0]["clientConfig"]["service"]
    assert names.get_values_for_type(x509.DNSName) == [f"{service['name']}.{service['namespace']}.svc"]
    hook = find(manifests, "ValidatingWebhookConfiguration")["webhooks"][0]
    assert hook["clientConfig"]["caBundle"] == data["ca.crt"]


def test_what_is_generated_is_up_to_date() -> None:
    assert chart.stale() == []


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


def test_the_image_is_pinned_unprivileged_and_fetches_nothing_unchecked() -> None:
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    final = lines[max(number for number, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert re.search(r"^ARG PYTHON_IMAGE=python:\d+\.\d+\.\d+-slim-[a-z]+$", text, re.MULTILINE)
    assert {line.split()[1] for line in lines if line.startswith("FROM ")} == {"${PYTHON_IMAGE}"}
    assert [line for line in lines if line.startswith("ADD ")] == []
    assert [line for line in final if line.startswith("USER ")] == ["USER 65532:65532"]
    assert any("PYTHONSAFEPATH=1" in line for line in final)
    installs = [line for line in lines if " install " in line and " -r " in line]
    assert len(installs) == 2
    assert all("--require-hashes" in line and "--only-binary :all:" in line for line in installs)
    assert any("pip wheel --no-deps --no-build-isolation" in line for line in lines)


def test_the_image_is_built_with_what_is_locked() -> None:
    def pins(file: Path) -> set[str]:
        return set(re.findall(r"^[a-z0-9_.-]+==\S+", file.read_text(), re.MULTILINE))

    builders = pins(ROOT / "deploy" / "build.txt")
    locked = pins(ROOT / "requirements" / "dev.txt")
    assert "hatchling" in {pin.partition("==")[0] for pin in builders}
    names = {pin.partition("==")[0] for pin in locked}
    assert {pin for pin in builders if pin.partition("==")[0] in names} <= locked


def test_the_gateway_of_the_live_demo_is_what_the_api_server_takes(api: KubeClient) -> None:
    manifests = load_manifests(ROOT / "e2e" / "kind" / "apisix.yaml")
    with api.namespace("live") as namespace:
        for each in manifests:
            if each["kind"] != "Namespace":
                each["metadata"]["namespace"] = namespace
        # Image names are filled in by the script; until then they are no names.
        text = json.dumps(manifests).replace("_IMAGE", "").replace("ETCD", "e").replace("CONTROLLER", "c")
        api.apply(json.loads(text.replace('"APISIX"', '"a"')), strict=True, rehearse=True)


@pytest.mark.parametrize("script", sorted((ROOT / "e2e" / "kind").glob("*.sh")), ids=lambda path: path.name)
def test_the_scripts_for_kind_are_bash(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True, timeout=10)


def test_the_chart_has_the_version_of_the_program() -> None:
    meta = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (meta["version"], meta["appVersion"]) == (__version__, __version__)
