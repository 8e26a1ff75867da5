"""Stories of the admission webhook as installed by the chart: registration, certificate, and settings.

The rendered manifests are only adapted to the missing parts of a cluster: files are on this machine instead of in a
Pod, and the Service points to this machine because there is no kube-proxy.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from e2e.charts import chart
from e2e.charts.chart import find
from e2e.cluster.client import KubeClient, Manifest, wait_until
from e2e.conftest import OWN
from e2e.controller import Controller
from e2e.devgateway.ports import free_port
from e2e.devgateway.process import DevGateway
from e2e.scene import plugin, rule
from e2e.stories.install.test_webhook import AGE, WEBHOOKS, Guarded, asked, is_denied

MARK = "webhook-chart"
FOLDER = "/etc/apisix-ingress"
REQUESTS = "apisix_ingress_controller_webhook_requests_total"
NODES = {"externalNodes": [{"type": "Domain", "name": "Not A Host"}]}


def rendered(gateway: DevGateway, namespace: str) -> list[Manifest]:
    values = {
        "webhook": {"enabled": True, "namespaceSelector": {"matchLabels": {"e2e-story": MARK}}},
        "config": {"kubernetes": {"namespaceSelector": f"e2e-story={MARK}"}, "leaderElection": {"id": MARK}},
        "gatewayProxy": {
            "provider": {"controlPlane": {"endpoints": [gateway.admin_url.removesuffix("/apisix/admin")]}}
        },
    }
    key = chart.nested("gatewayProxy.provider.controlPlane.auth.adminKey", {"value": gateway.admin_key})
    return chart.render(chart.merged(chart.WITH_IMAGE, values, key), release=MARK, namespace=namespace)


def configure(controller: Controller, manifests: Sequence[Manifest], folder: Path, listen: str) -> None:
    """Configure a controller with the settings of the chart, with its files in a folder and free addresses."""
    mine = yaml.safe_load(controller.config.read_text())
    text = find(manifests, "ConfigMap")["data"]["config.yaml"].replace(FOLDER, str(folder))
    settings = yaml.safe_load(text)
    settings["http"]["listen"], settings["webhook"]["listen"] = mine["http"]["listen"], listen
    settings["kubernetes"]["kubeconfig"] = mine["kubernetes"]["kubeconfig"]
    controller.config.write_text(json.dumps(settings))
    for file, content in files(manifests).items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(content)


def files(manifests: Sequence[Manifest]) -> dict[str, bytes]:
    """Return the files that a Pod would have: the pair of the webhook, and the admin key."""
    pair, key = (
        find([each for each in manifests if each["kind"] == "Secret" and each["type"] == kind], "Secret")
        for kind in ("kubernetes.io/tls", "Opaque")
    )
    found = {f"webhook/{name}": base64.b64decode(pair["data"][name]) for name in ("tls.crt", "tls.key")}
    (value,) = key["stringData"].values() if "stringData" in key else map(base64.b64decode, key["data"].values())
    return found | {"keys/default/admin-key": value.encode() if isinstance(value, str) else value}


def register(api: KubeClient, manifests: Sequence[Manifest], port: int) -> None:
    """Register the webhook as rendered, but with this machine and a free port as its Service."""
    hook = find(manifests, WEBHOOKS)
    service = hook["webhooks"][0]["clientConfig"]["service"]
    meta = find(manifests, "Service", service["name"])["metadata"]
    service["port"] = port
    spec = {"type": "ExternalName", "externalName": "localhost"}
    api.apply({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec})
    api.apply(hook)


@pytest.fixture(scope="module")
def guarded(cluster_api: KubeClient, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder, port = tmp_path_factory.mktemp("chart"), free_port()
    with ExitStack() as stack:
        namespace = stack.enter_context(cluster_api.namespace(labels=OWN | {"e2e-story": MARK}))
        gateway = stack.enter_context(DevGateway())
        manifests = rendered(gateway, namespace)
        controller = Controller(folder, name=MARK, kubeconfig=kubeconfig, gateways={"default": gateway})
        configure(controller, manifests, folder, f"127.0.0.1:{port}")
        stack.enter_context(controller)
        stack.callback(cluster_api.delete, WEBHOOKS, find(manifests, WEBHOOKS)["metadata"]["name"])
        register(cluster_api, manifests, port)
        guarded = Guarded(cluster_api, namespace, gateway, controller)
        wait_until(lambda: controller.metric(AGE, cluster="default") or asked(controller), bool, "schemas to be known")
        probe = {"http": [rule("rule", {"paths": ["/*"]}, plugins=[plugin("no-such-plugin")])]}
        wait_until(lambda: is_denied(guarded, probe), bool, "the webhook to be asked")
        yield guarded


def test_invalid_objects_are_denied(guarded: Guarded) -> None:
    assert "spec.externalNodes[0].name: 'Not A Host' is neither" in guarded.denied("ApisixUpstream", "nodes", NODES)
    assert not guarded.exists("ApisixUpstream", "nodes")
    route = {"http": [rule("rule", {"paths": ["/*"]}, plugins=[plugin("promtheus")])]}
    assert "did you mean prometheus?" in guarded.denied("ApisixRoute", "route", route)
    ingress = {"ingressClassName": "apisix", "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}
    annotations = {"k8s.apisix.apache.org/auth-type": "magic"}
    assert "'magic' is unknown" in guarded.denied("Ingress", "ingress", ingress, annotations=annotations)


def test_problems_of_other_objects_are_warnings_and_valid_objects_are_admitted(guarded: Guarded) -> None:
    route = {"http": [rule("rule", {"paths": ["/*"]})]}
    where = "does not exist; create it or correct the name"
    want = [f"spec.http[0].backends[0].serviceName: Service {guarded.namespace}/web {where}"]
    assert guarded.send("ApisixRoute", "route", route) == want
    guarded.wait_condition("ApisixRoute", "route", "False", "web does not exist")
    guarded.send("Service", "web", {"selector": {"app": "web"}, "ports": [{"port": 80}]})
    guarded.wait_condition("ApisixRoute", "route", "True")
    assert guarded.send("ApisixRoute", "route", {"http": [rule("rule", {"paths": ["/more/*"]})]}) == []
    assert guarded.send("ApisixUpstream", "nodes", {"externalNodes": [{"type": "Domain", "name": "example.org"}]}) == []


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("ApisixConsumer", {"authParameter": {"keyAuth": {"value": {"key": "a-key"}}}}),
        ("ApisixGlobalRule", {"plugins": [plugin("request-id", {})]}),
        ("ApisixPluginConfig", {"plugins": [plugin("request-id", {})]}),
        ("ApisixTls", {"hosts": ["a.example.org"], "secret": {"name": "absent", "namespace": "absent"}}),
    ],
)
def test_permissions_are_checked_once_per_kind_and_not_for_status(guarded: Guarded, kind: str, spec: Manifest) -> None:
    guarded.send(kind, "asked", spec)
    guarded.wait_condition(kind, "asked", "False" if kind == "ApisixTls" else "True")
    assert guarded.controller.metric(REQUESTS, kind=kind) == 1


def test_permissions_for_cluster_configs_are_checked_without_a_namespace(guarded: Guarded) -> None:
    meta = {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixClusterConfig", "metadata": {"name": MARK}}
    guarded.api.apply({**meta, "spec": {"monitoring": {"prometheus": {"enable": False}}}})
    guarded.api.delete("ApisixClusterConfig", MARK)
    assert guarded.controller.metric(REQUESTS, kind="ApisixClusterConfig") == 1


def test_without_a_controller_objects_are_admitted_and_reported_afterwards(guarded: Guarded) -> None:
    guarded.controller.stop()
    assert guarded.send("ApisixUpstream", "bad", NODES) == []
    guarded.controller.start()
    assert "is neither a lower-case host name" in guarded.wait_condition("ApisixUpstream", "bad", "False")
