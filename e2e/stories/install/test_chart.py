"""The chart: its renders are consistent, and the files generated from it are up to date."""

import base64
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

import crds
from apisix_ingress import __version__
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.settings import Settings
from apisix_ingress.webhook.checks import gateway_objects
from e2e.charts import chart
from e2e.charts.chart import WITH_KEY, find, helm, merged, nested, render
from e2e.charts.kinds import CHART
from e2e.charts.renders import VARIANTS, rendered, settings_of


def test_helm_lint_accepts_the_chart() -> None:
    short = "image.repository=registry.example.org/a,adminKey.existingSecret=a"
    said = helm("lint", "--strict", CHART, "--set", short)
    assert [line for line in said.splitlines() if line.startswith(("[WARNING]", "[ERROR]"))] == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_program_accepts_the_rendered_settings(variant: str, tmp_path: Path) -> None:
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
    given = {"gateway_api.listener_ports" if key.startswith("gateway_api.listener_ports.") else key for key in given}
    # The Pod's location and its files; all of these can be set as environment variables (deployment.extraEnv).
    of_the_pod = {
        "kubernetes.kubeconfig",
        "kubernetes.context",
        "kubernetes.election.namespace",
        "clusters[].admin_key",
    }
    assert keys(Settings().model_dump()) - of_the_pod == given


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_file_that_the_settings_name_is_mounted(variant: str, tmp_path: Path) -> None:
    manifests = rendered(variant)
    settings = settings_of(manifests, tmp_path)
    webhook = settings.webhook
    named = {webhook.cert_file, webhook.key_file, webhook.client_ca_file} if webhook.enabled else set()
    for cluster in settings.clusters:
        named |= {cluster.admin_key_file, cluster.tls.ca_file, cluster.tls.cert_file, cluster.tls.key_file}
    spec = find(manifests, "Deployment")["spec"]["template"]["spec"]
    files = {volume["name"]: volume.get("secret", {}).get("items", []) for volume in spec["volumes"]}
    mounts = spec["containers"][0]["volumeMounts"]
    got = {f"{mount['mountPath']}/{item['path']}" for mount in mounts for item in files[mount["name"]]}
    assert got == named - {""}


def test_values_of_the_peers_chart_are_accepted() -> None:
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


def test_the_page_maps_values_of_the_older_chart_to_existing_values() -> None:
    _, _, part = chart.PAGE.read_text().partition("## From the 1.8 chart")
    rows = re.findall(r"^\| `.*\| (`.*) \|$", part.partition("## Values")[0], re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([A-Za-z.]+\.[A-Za-z.]+)`", row)}
    assert len(named) == 14
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
def test_a_disruption_budget_requires_the_configured_number(budget: dict[str, Any], want: dict[str, Any]) -> None:
    spec = find(render(merged(WITH_KEY, nested("podDisruptionBudget", budget))), "PodDisruptionBudget")["spec"]
    assert {name: value for name, value in spec.items() if name != "selector"} == want


def test_one_replica_has_no_disruption_budget() -> None:
    kinds = {each["kind"] for each in render(merged(WITH_KEY, nested("deployment.replicas", 1)))}
    assert "PodDisruptionBudget" not in kinds


def test_the_webhook_covers_the_kinds_that_the_controller_reads() -> None:
    manifests = rendered("webhook with a certificate of cert-manager")
    hook, of_gateways = find(manifests, "ValidatingWebhookConfiguration")["webhooks"]
    service = find(manifests, "Service", "test-apisix-ingress-webhook")["metadata"]
    assert hook["clientConfig"]["service"] == {
        "name": service["name"],
        "namespace": service["namespace"],
        "path": "/validate",
        "port": 443,
    }
    custom, ingress = hook["rules"]
    assert sorted(custom["resources"]) == sorted(each["spec"]["names"]["plural"] for each in crds.manifests())
    assert ingress["resources"] == ["ingresses"]
    asked = {plural for each in of_gateways["rules"] for plural in each["resources"]}
    assert asked == {RESOURCES[kind].plural for kind in gateway_objects.CHECKED}
    assert of_gateways["failurePolicy"] == "Ignore"
    certificate = find(manifests, "Certificate")
    assert certificate["spec"]["secretName"] == service["name"]
    assert certificate["spec"]["issuerRef"]["name"] == find(manifests, "Issuer")["metadata"]["name"]
    assert find(manifests, "ValidatingWebhookConfiguration")["metadata"]["annotations"] == {
        "cert-manager.io/inject-ca-from": f"here/{certificate['metadata']['name']}"
    }


def test_the_webhook_uses_the_certificate_generated_at_install() -> None:
    manifests = rendered("webhook with a certificate made here")
    data = find(manifests, "Secret", "test-apisix-ingress-webhook")["data"]
    leaf, authority = (x509.load_pem_x509_certificate(base64.b64decode(data[name])) for name in ("tls.crt", "ca.crt"))
    leaf.verify_directly_issued_by(authority)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    service = find(manifests, "ValidatingWebhookConfiguration")["webhooks"][0]["clientConfig"]["service"]
    assert names.get_values_for_type(x509.DNSName) == [f"{service['name']}.{service['namespace']}.svc"]
    hook = find(manifests, "ValidatingWebhookConfiguration")["webhooks"][0]
    assert hook["clientConfig"]["caBundle"] == data["ca.crt"]


def test_generated_files_are_up_to_date() -> None:
    assert chart.stale() == []


def test_the_chart_has_the_version_of_the_program() -> None:
    meta = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (meta["version"], meta["appVersion"]) == (__version__, __version__)
