"""The values of the chart: which are accepted, and which are rejected with which message."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.charts import chart
from e2e.charts.chart import WITH_IMAGE, WITH_KEY, HelmError, merged, nested, render
from e2e.charts.kinds import CHART
from e2e.charts.renders import EDGE, ENDPOINTS, KEY, PUBLISHED_KEY, settings_of


@pytest.mark.parametrize(
    ("values", "want"),
    [
        (
            {},
            rf"{KEY}: the admin key of the gateways is missing and has no default: set .*adminKey\.existingSecret",
        ),
        (nested(KEY, {"value": "a", **chart.ADMIN_SECRET}), f"{KEY}: set value or valueFrom, not both"),
        (
            {"preset": "multi-tenant", **nested(KEY, {"value": PUBLISHED_KEY})},
            "this key is published with APISIX",
        ),
        (
            {"preset": "multi-tenant", **nested("apisix.enabled", True)},
            "an etcd without authentication, which tenants could reach through the gateways",
        ),
        (
            merged(nested("apisix.enabled", True), nested("networkPolicy.enabled", False)),
            "every Pod without networkPolicy.enabled: install APISIX with its own chart",
        ),
        (
            merged(WITH_KEY, nested("config.leaderElection.disable", True)),
            r"config\.leaderElection\.disable requires deployment\.replicas: 1",
        ),
        (
            merged(
                WITH_KEY, nested("webhook", {"enabled": True, "certificate": {"provided": True, "secretName": "tls"}})
            ),
            r"webhook\.certificate\.caBundle: give the CA",
        ),
        (
            merged(WITH_KEY, nested("config.leaderElection.leaseDuration", "10s")),
            r"leaderElection\.leaseDuration \(10s\) must be longer than renewDeadline \(10s\): increase the",
        ),
        (
            merged(WITH_KEY, nested("config.leaderElection.leaseDuration", 9.5)),
            r"leaderElection\.leaseDuration \(9\.5\) must be longer than renewDeadline \(10s\): increase the",
        ),
        (
            merged(WITH_KEY, nested("config.leaderElection.retryPeriod", "1m")),
            r"leaderElection\.renewDeadline \(10s\) must be longer than 1\.2 times retryPeriod \(1m\): increase",
        ),
        (
            merged(WITH_KEY, nested("config.provider.timeout", "1h")),
            r"config\.provider\.timeout \(1h\) must be at most .*leaseDuration - renewDeadline \(5s\).*: decrease it",
        ),
        (
            merged(WITH_KEY, nested("clusters", [{**EDGE, "provider": {"timeout": "5001ms"}}])),
            r"clusters\[0\]\.provider\.timeout \(5001ms\) must be at most .*leaseDuration - renewDeadline \(5s\)",
        ),
        (
            merged(WITH_KEY, nested("clusters", [{**EDGE, "name": "default"}])),
            r'clusters\[0\]\.name: "default" is already in use, by the gateways of gatewayProxy: give each',
        ),
        (
            merged(WITH_KEY, nested("clusters", [EDGE, EDGE])),
            r'clusters\[1\]\.name: "edge" is already in use: give each cluster a unique name',
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
            r"is in namespace gateways, which is not watched: add it to config\.kubernetes\.watchNamespaces",
        ),
        (
            merged(WITH_KEY, nested("rbac.scope", "namespaced")),
            r"rbac\.scope namespaced requires config\.kubernetes\.watchNamespaces",
        ),
        (
            merged(WITH_KEY, nested("rbac.secrets", {"shop": ["keys"]})),
            r"rbac\.secrets requires config\.kubernetes\.secrets: referenced",
        ),
        (
            merged(WITH_KEY, nested("serviceAccount.create", False)),
            r"serviceAccount\.name: name the account",
        ),
        (
            merged(WITH_KEY, nested("podDisruptionBudget", {"minAvailable": 1, "maxUnavailable": "50%"})),
            r"podDisruptionBudget: minAvailable \(1\) and maxUnavailable \(50%\) are mutually exclusive: set one",
        ),
        (
            merged(WITH_KEY, nested("podDisruptionBudget", {"minAvailable": 0, "maxUnavailable": 0})),
            r"podDisruptionBudget: minAvailable \(0\) and maxUnavailable \(0\) are mutually exclusive",
        ),
        (
            merged(WITH_KEY, {"deployment": {"podLabels": {"app.kubernetes.io/name": "other"}}}),
            r"deployment\.podLabels: app\.kubernetes\.io/name is one of the selector labels of the Pods: use",
        ),
        (
            merged(WITH_KEY, nested("webhook", {"enabled": True, "certificate": {"secretName": "tls"}})),
            r"webhook\.certificate\.secretName has no effect: set webhook\.certificate\.provided to true, or",
        ),
    ],
)
def test_incompatible_values_are_rejected_with_the_remedy(values: dict[str, Any], want: str) -> None:
    with pytest.raises(HelmError, match=want):
        render(merged(WITH_IMAGE, values))


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
        ("image", {"repository": "registry.example.org:5000/team/apisix-ingress", "tag": "v1.0_a"}),
        ("deployment.livenessProbe", {"initialDelaySeconds": 0, "failureThreshold": 100}),
        ("config.controllerName", "example.org/a.b-c/d"),
        ("webhook.certificate.caBundle", "Y2E=\n"),
        ("podDisruptionBudget", {"enabled": False, "minAvailable": 1, "maxUnavailable": 1}),
    ],
)
def test_values_near_the_limits_are_accepted_by_chart_and_program(name: str, value: object, tmp_path: Path) -> None:
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


def test_only_objects_that_kubernetes_defines_are_open_in_the_schema() -> None:
    def check(node: object, path: str) -> list[str]:
        found = []
        if isinstance(node, dict):
            if "properties" in node and node.get("additionalProperties") is not False:
                found.append(path)
            found += [each for name, part in node.items() for each in check(part, f"{path}/{name}")]
        return found

    assert check(json.loads((CHART / "values.schema.json").read_text()), "") == []
