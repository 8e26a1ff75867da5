"""`migrate --preflight`: whether a cluster is ready to move from ingress-nginx."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.kube.apiserver import Fault
from tests.flow.commands.test_migrate import CLASS, nginx_ingress
from tests.flow.surveying import SurveyHarness, plain, route

HELM = {"labels": {"app.kubernetes.io/managed-by": "Helm"}}
BALANCER = {"type": "LoadBalancer", "ports": [{"port": 80}, {"port": 443}]}


def controller(*flags: str, replicas: int = 1) -> dict[str, Any]:
    """Return the Deployment of ingress-nginx."""
    container = {
        "image": "registry.k8s.io/ingress-nginx/controller:v1.15.1",
        "args": ["/nginx-ingress-controller", *flags],
    }
    spec = {"replicas": replicas, "template": {"spec": {"containers": [container]}}}
    return plain("Deployment", "ingress-nginx-controller", meta={"namespace": "ingress-nginx"}, spec=spec)


def settings(harness: SurveyHarness, **ingress_nginx: Any) -> None:
    """Change the configuration file."""
    path = harness.cli.folder / harness.config
    document = json.loads(path.read_text())
    publish = {"publish_service": "default/gateway"}
    document["kubernetes"]["status"] = publish
    path.write_text(json.dumps({**document, "ingress_nginx": ingress_nginx}))


async def checks(harness: SurveyHarness, *arguments: str) -> dict[str, tuple[str, str]]:
    """Return name → level and message of each check."""
    _, got = await harness.ask("migrate", "--preflight", "-o", "json", *arguments)
    return {each["name"]: (each["level"], each["message"]) for each in got["checks"]}


async def test_a_cluster_that_is_ready_has_no_finding(harness: SurveyHarness) -> None:
    settings(harness, config_map="ingress-nginx/config")
    harness.server.put(CLASS)
    harness.server.put(nginx_ingress())
    harness.server.put(controller("--configmap=$(POD_NAMESPACE)/config"))
    harness.server.put(plain("Service", "gateway", spec=BALANCER))
    harness.server.put(plain("Service", "ingress-nginx", meta={"namespace": "ingress-nginx"}, spec=BALANCER))

    got = await checks(harness)

    assert {name: level for name, (level, _) in got.items()} == dict.fromkeys(
        ("status", "ingress-class", "flags", "owners", "load-balancer"), "OK"
    )


async def test_a_missing_service_of_the_new_gateways_is_a_warning_and_no_reason_to_skip_the_flags(
    harness: SurveyHarness,
) -> None:
    settings(harness)
    got = await checks(harness)

    assert got["load-balancer"] == ("WARN", "Service default/gateway of the new gateways does not exist")
    assert got["flags"] == (
        "SKIP",
        "no Deployment or DaemonSet of ingress-nginx found; --config-map names its namespace",
    )


async def test_a_class_that_helm_would_delete_is_named(harness: SurveyHarness) -> None:
    harness.server.put({**CLASS, "metadata": {"name": "nginx", **HELM}})

    assert (await checks(harness))["ingress-class"] == (
        "WARN",
        "IngressClass nginx belongs to a Helm release: uninstalling ingress-nginx deletes it",
    )


async def test_without_a_class_of_ingress_nginx_the_check_fails(harness: SurveyHarness) -> None:
    assert (await checks(harness))["ingress-class"][0] == "FAIL"


async def test_status_writes_beside_a_running_ingress_nginx_fail(harness: SurveyHarness) -> None:
    settings(harness, update_status=True)
    harness.server.put(CLASS)
    harness.server.put(controller())

    assert (await checks(harness))["status"][0] == "FAIL"


async def test_flags_that_the_settings_lack_are_named(harness: SurveyHarness) -> None:
    harness.server.put(CLASS)
    harness.server.put(controller("--watch-ingress-without-class", "--default-ssl-certificate=a/b"))

    _, got = await harness.ask("migrate", "--preflight", "-o", "json")

    (fix,) = (each["fix"] for each in got["checks"] if each["name"] == "flags")
    assert fix == "set in ingress_nginx: default_ssl_certificate: a/b, watch_ingress_without_class: true"


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--enable-annotation-validation=false", "this controller always validates annotations"),
        ("--enable-ssl-passthrough", "the annotation ssl-passthrough is not served by APISIX 3.18"),
    ],
)
async def test_flags_without_a_setting_are_named_with_what_differs(
    harness: SurveyHarness, flag: str, message: str
) -> None:
    settings(harness, config_map="ingress-nginx/config")
    harness.server.put(CLASS)
    harness.server.put(controller("--configmap=ingress-nginx/config", flag))

    level, got = (await checks(harness))["flags"]
    assert (level, message in got) == ("WARN", True)


async def test_a_host_with_two_owners_is_reported(harness: SurveyHarness) -> None:
    harness.server.put(CLASS)
    item = nginx_ingress()
    item["spec"]["rules"][0]["host"] = "web.example.org"
    harness.server.put(item)
    harness.server.put(route())

    level, message = (await checks(harness))["owners"]
    assert (level, "web.example.org (ApisixRoute default/web)" in message) == ("WARN", True)


@pytest.mark.parametrize(
    ("ours", "message"),
    [
        (BALANCER, "preserves client addresses"),
        ({**BALANCER, "externalTrafficPolicy": "Local", "ports": [{"port": 80}]}, "lacks ports"),
    ],
)
async def test_load_balancers_that_differ_are_named(harness: SurveyHarness, ours: dict[str, Any], message: str) -> None:
    settings(harness)
    theirs = {**BALANCER, "externalTrafficPolicy": "Local"}
    harness.server.put(plain("Service", "gateway", spec=ours))
    harness.server.put(plain("Service", "ingress-nginx", meta={"namespace": "ingress-nginx"}, spec=theirs))

    level, got = (await checks(harness))["load-balancer"]
    assert (level, message in got) == ("WARN", True)


async def test_the_proxy_protocol_is_named(harness: SurveyHarness) -> None:
    settings(harness, config_map="default/nginx")
    harness.server.put(
        plain("ConfigMap", "nginx", data={"use-proxy-protocol": "true", "use-forwarded-headers": "true"})
    )

    got = await checks(harness)
    assert (got["proxy-protocol"][0], got["forwarded-headers"][0]) == ("WARN", "OK")


async def test_a_webhook_that_is_left_over_fails(harness: SurveyHarness) -> None:
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "ingress-nginx-admission"},
        "webhooks": [],
    }
    harness.server.put(hook)

    assert (await checks(harness))["webhook"][0] == "FAIL"


async def test_what_may_not_be_read_is_skipped(harness: SurveyHarness) -> None:
    harness.server.put(CLASS)
    harness.server.faults.append(Fault("list", "deployments", status=403))

    level, message = (await checks(harness))["flags"]
    assert (level, "deployments cannot be listed" in message) == ("SKIP", True)


def test_the_check_accepts_no_manifests(harness: SurveyHarness) -> None:
    got = harness.cli("migrate", "x.yaml", "--preflight")

    assert (got.returncode, "accepts no PATH" in got.stderr) == (2, True)
