"""Stories of the admission webhook: what `kubectl apply` reports at once, and what happens without the webhook."""

import base64
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from trustme import CA, LeafCert

from e2e.cluster.client import KubeApiError, KubeClient, Manifest, wait_until
from e2e.conftest import OWN
from e2e.controller import Controller
from e2e.devgateway.ports import free_port
from e2e.devgateway.process import DevGateway
from e2e.everything import NAMESPACED
from e2e.scene import plugin, rule
from e2e.story import condition, says

HOST = "127.0.0.1"
CLASS_CHANGED = "The ingressClassName field is not allowed to be modified."
WEBHOOKS = "ValidatingWebhookConfiguration"
RULES = [
    {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE"], "resources": [resources]}
    for group, version, resources in (("apisix.apache.org", "v2", "*"), ("networking.k8s.io", "v1", "ingresses"))
]
SPECS: Mapping[str, Manifest] = {
    "ApisixRoute": {"http": [rule("rule", {"paths": ["/class"]})]},
    "ApisixUpstream": {"retries": 1},
    "ApisixPluginConfig": {"plugins": [plugin("redirect", {"uri": "/there"})]},
    "ApisixTls": {"hosts": ["class.example.org"], "secret": {"name": "class", "namespace": "default"}},
    "ApisixConsumer": {"authParameter": {"keyAuth": {"value": {"key": "class-key"}}}},
    "ApisixConsumerGroup": {"plugins": [plugin("cors", {})]},
    "ApisixProto": {"content": 'syntax = "proto3";'},
    "ApisixGlobalRule": {"plugins": [plugin("request-id", {})]},
}
"""The spec of an object of each kind that lives in a namespace."""


@dataclass
class Guarded:
    """A namespace whose objects a webhook validates."""

    api: KubeClient
    namespace: str
    gateway: DevGateway
    controller: Controller

    @property
    def host(self) -> str:
        return f"{self.namespace}.example.org"

    def send(self, kind: str, name: str, spec: Manifest, *, namespace: str = "", **metadata: Any) -> list[str]:
        """Apply an object and return the warnings; raises KubeApiError when it is denied."""
        where = namespace or self.namespace
        resource = self.api.resource(kind)
        manifest = {
            "apiVersion": resource.api_version,
            "kind": kind,
            "metadata": {"name": name, "namespace": where, **metadata},
            "spec": spec,
        }
        warnings: list[str] = []
        self.api.request(
            "PATCH",
            resource.path(where, name),
            body=manifest,
            params={"fieldManager": "story", "force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            warnings=warnings,
        )
        return warnings

    def denied(self, kind: str, name: str, spec: Manifest, **metadata: Any) -> str:
        """Apply an object that must be denied; return the message."""
        with pytest.raises(KubeApiError) as caught:
            self.send(kind, name, spec, **metadata)
        assert caught.value.status == 422
        assert "denied the request" in str(caught.value)
        return str(caught.value)

    def exists(self, kind: str, name: str) -> bool:
        return self.api.find(kind, name, namespace=self.namespace) is not None

    def wait_condition(self, kind: str, name: str, status: str, *words: str) -> str:
        found = self.api.wait(kind, name, says(status, *words), f"{status} {words}", namespace=self.namespace)
        return str(condition(found)["message"])


@contextmanager
def guarding(api: KubeClient, kubeconfig: Path, folder: Path, mark: str) -> Iterator[Guarded]:
    """Start a gateway and a controller with a webhook, and register it for one namespace."""
    authority, port = CA(), free_port()
    leaf = authority.issue_cert(HOST)
    cert, key = folder / "tls.crt", folder / "tls.key"
    cert.write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
    key.write_bytes(leaf.private_key_pem.bytes())
    webhook = {"enabled": True, "listen": f"{HOST}:{port}", "cert_file": str(cert), "key_file": str(key)}
    with ExitStack() as stack:
        namespace = stack.enter_context(api.namespace(labels=OWN | {"e2e-story": mark}))
        gateway = stack.enter_context(DevGateway())
        selector = {"namespace_selector": f"e2e-story={mark}", "election": {"name": f"lease-{mark}"}}
        controller = Controller(
            folder,
            name=mark,
            kubeconfig=kubeconfig,
            gateways={"default": gateway},
            kubernetes=selector,
            webhook=webhook,
        )
        stack.enter_context(controller)
        stack.callback(api.delete, WEBHOOKS, mark)
        api.apply(registration(mark, f"https://{HOST}:{port}/validate", authority))
        guarded = Guarded(api, namespace, gateway, controller)
        wait_until(lambda: controller.metric(AGE, cluster="default") or asked(controller), bool, "schemas to be known")
        probe = {"http": [rule("rule", {"paths": ["/*"]}, plugins=[plugin("no-such-plugin")])]}
        wait_until(lambda: is_denied(guarded, probe), bool, "the webhook to be asked")
        yield guarded


AGE = "apisix_ingress_controller_webhook_schema_age_seconds"


def asked(controller: Controller) -> bool:
    """Return whether the controller has read the schemas; their age may be 0."""
    return bool(controller.events("schemas.read"))


def is_denied(guarded: Guarded, spec: Manifest) -> bool:
    """Return whether the webhook is active: the API server applies a registration with a delay."""
    try:
        guarded.send("ApisixRoute", "probe", spec)
    except KubeApiError:
        return True
    guarded.api.delete("ApisixRoute", "probe", namespace=guarded.namespace)
    return False


def registration(mark: str, url: str, authority: CA) -> Manifest:
    bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": WEBHOOKS,
        "metadata": {"name": mark},
        "webhooks": [
            {
                "name": "validate.apisix.apache.org",
                "clientConfig": {"url": url, "caBundle": bundle},
                "rules": RULES,
                "namespaceSelector": {"matchLabels": {"e2e-story": mark}},
                "failurePolicy": "Ignore",
                "matchPolicy": "Equivalent",
                "sideEffects": "None",
                "timeoutSeconds": 5,
                "admissionReviewVersions": ["v1", "v1beta1"],
            }
        ],
    }


@pytest.fixture(scope="module")
def guarded(cluster_api: KubeClient, kubeconfig: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarding(cluster_api, kubeconfig, tmp_path_factory.mktemp("webhook"), "webhook") as started:
        yield started


def wrong(**config: Any) -> Manifest:
    return plugin("limit-count", {"count": 1, "time_window": 60, "rejected_code": 4711, **config})


@pytest.mark.parametrize("kind", ["ApisixRoute", "ApisixPluginConfig"])
def test_wrong_plugin_configuration_is_denied_on_create_and_update(guarded: Guarded, kind: str) -> None:
    def spec(*plugins: Manifest) -> Manifest:
        routes = {"http": [rule("rule", {"paths": ["/*"]}, plugins=list(plugins))]}
        return routes if kind == "ApisixRoute" else {"plugins": list(plugins)}

    path = "spec.http[0].plugins[0]" if kind == "ApisixRoute" else "spec.plugins[0]"
    want = (
        f"{path}: limit-count plugin's config is invalid",
        f"{path}.config.rejected_code: Must be less than or equal to 599",
    )
    message = guarded.denied(kind, "plugins", spec(wrong()))
    assert all(words in message for words in want)
    assert not guarded.exists(kind, "plugins")
    guarded.send(kind, "plugins", spec(wrong(rejected_code=503)))
    message = guarded.denied(kind, "plugins", spec(wrong()))
    assert all(words in message for words in want)
    guarded.send(kind, "plugins", spec(wrong(rejected_code=429)))


def test_unknown_plugin_is_denied_with_the_nearest_name(guarded: Guarded) -> None:
    got = guarded.denied("ApisixGlobalRule", "unknown", {"plugins": [plugin("promtheus")]})
    assert "spec.plugins[0]: unknown plugin promtheus; did you mean prometheus?" in got


@pytest.mark.parametrize("kind", NAMESPACED)
def test_class_of_an_object_may_be_set_but_not_changed(guarded: Guarded, kind: str) -> None:
    spec = SPECS[kind]  # a new kind needs an entry
    guarded.send(kind, "class", spec)
    guarded.send(kind, "class", {**spec, "ingressClassName": "apisix"})
    assert CLASS_CHANGED in guarded.denied(kind, "class", {**spec, "ingressClassName": "other"})
    guarded.send(kind, "class", {**spec, "ingressClassName": "apisix"}, labels={"edited": "yes"})
    guarded.api.delete(kind, "class", namespace=guarded.namespace)


def put_certificate(guarded: Guarded, name: str, leaf: LeafCert, namespace: str = "") -> None:
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems).decode()
    data = {"tls.crt": chain, "tls.key": leaf.private_key_pem.bytes().decode()}
    metadata = {"name": name, "namespace": namespace or guarded.namespace}
    guarded.api.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})


def test_host_with_another_certificate_is_denied(guarded: Guarded) -> None:
    authority = CA()
    one, two = (authority.issue_cert(guarded.host) for _ in range(2))
    for name, leaf in (("one", one), ("copy", one), ("two", two)):
        put_certificate(guarded, name, leaf)

    def tls(secret: str) -> Manifest:
        return {"hosts": [guarded.host], "secret": {"name": secret, "namespace": guarded.namespace}}

    def ingress(secret: str) -> Manifest:
        backend = {"service": {"name": "web", "port": {"number": 80}}}
        http = {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}
        entry = {"hosts": [guarded.host], "secretName": secret}
        return {"ingressClassName": "apisix", "rules": [{"host": guarded.host, "http": http}], "tls": [entry]}

    guarded.send("ApisixTls", "one", tls("one"))
    guarded.wait_condition("ApisixTls", "one", "True")
    want = f"host {guarded.host} already has a different certificate, in ApisixTls {guarded.namespace}/one"
    assert want in guarded.denied("ApisixTls", "two", tls("two"))
    assert want in guarded.denied("Ingress", "two", ingress("two"))
    guarded.send("ApisixTls", "copy", tls("copy"))
    guarded.send("Ingress", "copy", ingress("copy"))


def test_warnings_are_returned_to_clients_and_objects_may_be_applied_in_any_order(guarded: Guarded) -> None:
    spec = {"http": [rule("rule", {"paths": ["/late"]}, "late", plugins=[plugin("key-auth", {}, secretRef="late")])]}
    got = guarded.send("ApisixRoute", "early", spec)
    where = "does not exist; create it or correct the name"
    assert got == [
        f"spec.http[0].plugins[0].secretRef: Secret {guarded.namespace}/late {where}",
        f"spec.http[0].backends[0].serviceName: Service {guarded.namespace}/late {where}",
    ]
    prefix = "k8s.apisix.apache.org"
    ingress = {"ingressClassName": "apisix", "defaultBackend": {"service": {"name": "late", "port": {"number": 80}}}}
    annotations = {f"{prefix}/enable-websockets": "true", "nginx.ingress.kubernetes.io/rewrite-target": "/"}
    got = guarded.send("Ingress", "early", ingress, annotations=annotations)
    where = "metadata.annotations"
    words = "annotation of another controller; use the equivalent annotation or plugin, or remove it"
    assert got[1:] == [
        f"{where}[{prefix}/enable-websockets]: has no effect: did you mean {prefix}/enable-websocket?",
        f"{where}[nginx.ingress.kubernetes.io/rewrite-target]: ignored: {words}",
    ]


def test_objects_of_other_namespaces_and_classes_are_admitted(guarded: Guarded) -> None:
    bad = {"http": [rule("rule", {"paths": ["/*"]}, plugins=[plugin("no-such-plugin")])]}
    with guarded.api.namespace(labels=OWN) as elsewhere:
        assert guarded.send("ApisixRoute", "elsewhere", bad, namespace=elsewhere) == []
    annotations = {"k8s.apisix.apache.org/auth-type": "magic"}
    ingress = {"ingressClassName": "nginx", "defaultBackend": {"service": {"name": "late", "port": {"number": 80}}}}
    assert guarded.send("Ingress", "foreign", ingress, annotations=annotations) == []
    assert "'magic' is unknown" in guarded.denied(
        "Ingress", "ours", {**ingress, "ingressClassName": "apisix"}, annotations=annotations
    )


def test_an_absent_gateway_or_controller_delays_nothing(
    cluster_api: KubeClient, kubeconfig: Path, tmp_path: Path
) -> None:
    def route(path: str) -> Manifest:
        return {"http": [rule("rule", {"paths": [path]}, plugins=[wrong()])]}

    nodes = {"externalNodes": [{"type": "Domain", "name": "Not A Host"}]}
    with guarding(cluster_api, kubeconfig, tmp_path, "webhook-away") as guarded:
        denial = guarded.denied("ApisixUpstream", "nodes", nodes)
        guarded.denied("ApisixRoute", "web", route("/a/*"))
        guarded.controller.stop()
        assert guarded.send("ApisixUpstream", "nodes", nodes) == []
        guarded.send("ApisixRoute", "web", route("/a/*"))
        guarded.gateway.stop()
        guarded.controller.start()
        # The gateway is unreachable, so its schemas are unknown.
        got = guarded.send("ApisixRoute", "web", route("/b/*"))
        assert "plugins were not checked: the schemas of gateway cluster default are unknown at present" in got
        guarded.gateway.start()
        message = guarded.wait_condition("ApisixUpstream", "nodes", "False")
        assert message.partition(": ")[2] in denial
        pods = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
        guarded.send("Service", "web", pods)
        guarded.wait_condition("ApisixRoute", "web", "False", "rejected_code")
        wait_until(lambda: is_denied(guarded, route("/c/*")), bool, "the schemas to be known again")
