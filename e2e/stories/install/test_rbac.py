"""The shipped roles grant what the controller uses: no request is forbidden, and no verb is unused.

A controller runs under the account and the settings of a rendered chart; the API server's audit log shows its
requests.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from trustme import CA

from apisix_ingress.diagnostics.doctor.permissions import Right
from apisix_ingress.model.kinds.table import RESOURCES
from crds import KINDS
from e2e.charts.chart import WITH_KEY, find, merged, nested, render
from e2e.charts.kinds import granted
from e2e.cluster.client import KubeClient, Manifest, wait_until
from e2e.cluster.local import LocalCluster
from e2e.cluster.process import whole_lines
from e2e.controller import Controller
from e2e.definitions import gateway_kinds
from e2e.definitions.gateway_kinds import GROUP
from e2e.stories.changes.test_ingress_status import ingress, show
from e2e.story import Stage, route, says

BURST = 12
BURSTS = 20


class Audit:
    """The requests of one account to the API server."""

    def __init__(self, log: Path, namespace: str, account: str) -> None:
        self._log = log
        self._user = f"system:serviceaccount:{namespace}:{account}"

    def events(self) -> Iterator[Mapping[str, Any]]:
        """Yield its requests, including those in progress."""
        for line in whole_lines(self._log):
            if self._user in line:
                event = json.loads(line)
                if event["user"]["username"] == self._user:
                    yield event

    def refused(self) -> list[str]:
        """Return its forbidden requests."""
        return [
            f"{event['verb']} {event['requestURI']}"
            for event in self.events()
            if event.get("responseStatus", {}).get("code") in (401, 403)
        ]

    def uses(self, right: Right) -> bool:
        """Whether it used a permission."""
        return any(_is_covered(event, right) for event in self.events())

    def unused(self, rights: Sequence[Right]) -> list[Right]:
        """Return the permissions that it did not use."""
        events = [event for event in self.events() if "objectRef" in event]
        return [right for right in rights if not any(_is_covered(event, right) for event in events)]


def _is_covered(event: Mapping[str, Any], right: Right) -> bool:
    about = event.get("objectRef") or {}
    resource = "/".join(filter(None, (about.get("resource"), about.get("subresource"))))
    asked = (about.get("apiGroup", ""), resource, event["verb"])
    return (
        asked == (right.group, right.resource, right.verb)
        and right.namespace in ("", about.get("namespace"))
        and right.name in ("", about.get("name"))
    )


REFUSED = ("ApisixProto", "ApisixSecretManager")
"""Kinds that the preset `multi-tenant` does not publish."""


class RbacHarness:
    """An environment with a controller that runs as in the chart."""

    def __init__(self, stage: Stage, cluster: LocalCluster, values: Mapping[str, Any], *, name: str) -> None:
        self.stage = stage
        self.cluster = f"east-{stage.mark}"
        own = {"recordOwner": f"rbac-{stage.mark}", "kubernetes": {"namespaceSelector": stage.selector}}
        values = merged(WITH_KEY, {"config": {**own, "gatewayAPI": {"enabled": False}}}, values)
        self.manifests = render(values, release=name, namespace=stage.namespace)
        self.status = values["config"].get("status", {}).get("enabled", True)
        self.refused = REFUSED if values.get("preset") == "multi-tenant" else ()
        account = find(self.manifests, "ServiceAccount")["metadata"]["name"]
        kinds = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
        self._applied = [each for each in self.manifests if each["kind"] in kinds]
        # The ConfigMap with plugin metadata is part of the chart, too.
        metadata = [each for each in self.manifests if each["metadata"]["name"].endswith("-plugin-metadata")]
        self._applied += [each for each in metadata if each["kind"] == "ConfigMap"]
        stage.api.apply(self._applied, strict=True)
        self.audit = Audit(cluster.audit_log, stage.namespace, account)
        token = stage.api.account_token(account, namespace=stage.namespace)
        self._kubeconfig = cluster.kubeconfig_for(token, account)

    def start(self, *, wait: bool = True) -> Controller:
        """Start the controller with the settings of the chart, except for the locations on this machine."""
        settings = yaml.safe_load(find(self.manifests, "ConfigMap", self._config_name)["data"]["config.yaml"])
        kubernetes = settings["kubernetes"]
        # In a Pod, this is the namespace of the release by default.
        kubernetes["election"]["namespace"] = self.stage.namespace
        kubernetes["kubeconfig"] = str(self._kubeconfig)
        gateways, gateway_api = {self.cluster: self.stage.gateway}, settings["gateway_api"]
        return self.stage.start(gateways, kubernetes=kubernetes, gateway_api=gateway_api, wait=wait)

    @property
    def _config_name(self) -> str:
        name: str = find(self.manifests, "Deployment")["metadata"]["name"]
        return name

    def close(self) -> None:
        """Remove the objects outside the story's namespace."""
        for each in self._applied:
            if each["kind"].startswith("ClusterRole"):
                self.stage.api.delete(each["kind"], each["metadata"]["name"])
        self.stage.api.delete("ApisixClusterConfig", self.cluster)
        self.stage.api.delete("ApisixSecretManager", "web")

    def objects(self) -> list[Manifest]:
        """Return a valid object of every kind."""
        leaf = CA().issue_cert(self.stage.host)
        pair = {"tls.crt": leaf.cert_chain_pems[0].bytes().decode(), "tls.key": leaf.private_key_pem.bytes().decode()}
        header = {"name": "response-rewrite", "enable": True, "config": {"headers": {"set": {"X-A": "b"}}}}
        kinds: dict[str, Manifest] = {
            "ApisixUpstream": {"loadbalancer": {"type": "least_conn"}},
            "ApisixPluginConfig": {"plugins": [header]},
            "ApisixTls": {"hosts": [self.stage.host], "secret": {"name": "cert", "namespace": self.stage.namespace}},
            "ApisixConsumer": {"authParameter": {"keyAuth": {"secretRef": {"name": "key"}}}, "group": "web"},
            "ApisixConsumerGroup": {"plugins": [header]},
            "ApisixProto": {"content": "message Empty {}"},
            "ApisixGlobalRule": {"plugins": [{"name": "request-id", "enable": True}]},
        }
        secured = ingress(f"tls.{self.stage.host}", "secured")
        secured["spec"]["tls"] = [{"hosts": [f"tls.{self.stage.host}"], "secretName": "cert"}]
        found = [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cert"}, "stringData": pair},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"key": "sesame"}},
            *(self.custom(kind, spec) for kind, spec in kinds.items()),
            self.custom(
                "ApisixSecretManager",
                {"type": "vault", "config": {"uri": "http://vault:8200", "prefix": "kv", "token": "t"}},
            ),
            self.custom("ApisixClusterConfig", {"monitoring": {"prometheus": {"enable": True}}}),
            route(self.stage.host, plugin_config_name="web"),
            ingress(f"i.{self.stage.host}"),
            secured,
        ]
        missing = KINDS.keys() - {each["kind"] for each in found}
        assert not missing, f"add an object of {sorted(missing)}: its permissions must be used"
        return found

    def custom(self, kind: str, spec: Mapping[str, Any]) -> Manifest:
        """Return a custom resource; an ApisixClusterConfig has the name of its cluster."""
        name = self.cluster if kind == "ApisixClusterConfig" else "web"
        return {"apiVersion": "apisix.apache.org/v2", "kind": kind, "metadata": {"name": name}, "spec": spec}

    def until_all_are_well(self) -> None:
        """Wait until traffic flows, and every object with a condition reports that it is synced."""
        self.stage.traffic.until_status(200, self.stage.host)
        self.stage.traffic.until_status(200, f"i.{self.stage.host}")
        records = self.stage.gateway.records
        for kind in ("ssls", "consumers", "global_rules", "plugin_configs", "upstreams"):
            wait_until(lambda kind=kind: records(kind), bool, f"{kind} at the gateway")  # type: ignore[misc]
        for kind in KINDS if self.status else ():
            name = self.cluster if kind == "ApisixClusterConfig" else "web"
            self._wait_judged(kind, name, self.stage.namespace)

    def make_statuses_conflict(self, right: Right) -> None:
        """Change objects faster than the controller updates statuses, until it had to re-read one after a conflict."""
        kind = next(each for each in KINDS if RESOURCES[each].plural == right.resource.partition("/")[0])
        name = self.cluster if kind == "ApisixClusterConfig" else "web"
        namespace = self.stage.namespace if RESOURCES[kind].namespaced else ""
        for _ in range(BURSTS):
            for number in range(BURST):
                change = {"spec": {"ingressClassName": f"class-{number}"}}
                self.stage.api.patch(kind, name, change, namespace=namespace)
            self._wait_judged(kind, name, namespace)
            if self.audit.uses(right):
                return

    def _wait_judged(self, kind: str, name: str, namespace: str) -> None:
        want, what = ("False", "to be refused") if kind in self.refused else ("True", "to be synced")
        self.stage.api.wait(kind, name, says(want), what, namespace=namespace)

    def repeat_a_mistake(self) -> None:
        """Make the same mistake twice: the second time, the count of the first Event increases."""
        good, bad = route(self.stage.host), route(self.stage.host, plugins={"no-such-plugin": {"a": 1}})
        for _ in range(2):
            self.stage.apply(bad)
            self.stage.wait_route(says("False", "no-such-plugin"), "to be refused")
            self.stage.apply(good)
            self.stage.wait_route(says("True"), "to be well")

    def repeat_a_mistake_outside_namespaces(self) -> None:
        """Remove a plugin from the ApisixClusterConfig twice; its Events are in the namespace default."""
        rule = self.custom("ApisixGlobalRule", {"plugins": [{"name": "prometheus", "enable": True}]})
        rule["metadata"]["name"] = "contender"
        for _ in range(2):
            self.stage.apply(rule)
            self.stage.api.wait("ApisixClusterConfig", self.cluster, says("False", "prometheus"), "to lose it")
            self.stage.api.delete("ApisixGlobalRule", "contender", namespace=self.stage.namespace)
            self.stage.api.wait("ApisixClusterConfig", self.cluster, says("True"), "to be well")


StartHarness = Callable[[Mapping[str, Any]], RbacHarness]


@pytest.fixture
def harness(stage: Stage, request: pytest.FixtureRequest) -> Iterator[StartHarness]:
    """A function that renders a chart and applies its roles."""
    if request.config.getoption("--cluster") != "local":
        pytest.skip("the audit log is that of the local cluster")
    harnesses = []

    def make(values: Mapping[str, Any]) -> RbacHarness:
        harnesses.append(
            RbacHarness(stage, request.getfixturevalue("local_cluster"), values, name=f"rbac-{stage.mark}")
        )
        return harnesses[-1]

    yield make
    for each in harnesses:
        each.close()


@pytest.fixture
def granting(cluster_api: KubeClient) -> Iterator[None]:
    """The kind ReferenceGrant."""
    with gateway_kinds.served(cluster_api, ["ReferenceGrant"]):
        yield


def check(harness: RbacHarness) -> None:
    """Compare the granted with the used permissions."""
    rights = granted(harness.manifests)
    gets = [right for right in rights if right.group == "apisix.apache.org" and right.verb == "get"]
    for right in harness.audit.unused(gets):
        harness.make_statuses_conflict(right)
    (controller,) = harness.stage.controllers
    assert controller.stop() == 0
    # An existing lease is taken over with an update.
    controller.start()
    wait_until(lambda: controller.leads, bool, "it to lead again")
    assert controller.stop() == 0
    assert harness.audit.unused([*rights, Right("", "pods", "get")]) == [Right("", "pods", "get")]
    assert harness.audit.refused() == []


def test_with_the_defaults_all_permissions_are_granted_and_used(harness: StartHarness) -> None:
    # Nothing is published: that permission is for the LoadBalancer Service of the gateways.
    shown = harness({"config": {"status": {"publishService": ""}}})
    shown.start()
    shown.stage.serve()
    shown.stage.apply(shown.objects())
    shown.until_all_are_well()
    # The ledger changes once more.
    shown.stage.apply(shown.custom("ApisixGlobalRule", {"plugins": [{"name": "cors", "enable": True}]}))
    shown.repeat_a_mistake()
    check(shown)


@pytest.mark.usefixtures("granting")
def test_with_every_option_all_permissions_are_granted_and_used(harness: StartHarness, stage: Stage) -> None:
    values = {
        "preset": "multi-tenant",
        "config": {
            "kubernetes": {"endpointSource": "endpoints"},
            "status": {"publishService": f"{stage.namespace}/gw"},
        },
        "gatewayProxy": {"provider": {"pluginMetadata": {"http-logger": {"log_format": {"a": "$host"}}}}},
    }
    shown = harness(values)
    shown.start()
    stage.serve()
    stage.pods.service("gw", {"app": "gw"}, type="LoadBalancer")
    stage.apply(shown.objects())
    show(stage, "Service", "gw", {"ip": "192.0.2.1"})
    shown.until_all_are_well()

    def addresses(item: Manifest | None) -> list[Manifest]:
        return list(((item or {}).get("status") or {}).get("loadBalancer", {}).get("ingress") or [])

    stage.api.wait("Ingress", "web", lambda item: bool(addresses(item)), "to show it", namespace=stage.namespace)
    # The owner of addresses is checked before they are removed.
    stage.api.delete("Service", "gw", namespace=stage.namespace)
    stage.api.wait("Ingress", "web", lambda item: not addresses(item), "to show none", namespace=stage.namespace)
    stage.apply(shown.custom("ApisixGlobalRule", {"plugins": [{"name": "cors", "enable": True}]}))
    shown.repeat_a_mistake()
    check(shown)


@pytest.fixture
def gateway_api(cluster_api: KubeClient) -> Iterator[None]:
    """The kinds of the Gateway API."""
    with gateway_kinds.served(cluster_api):
        yield


@pytest.mark.usefixtures("gateway_api")
def test_with_the_gateway_api_all_permissions_are_granted_and_used(harness: StartHarness, stage: Stage) -> None:
    # A unique name: otherwise, the shared controller would also write the status of its GatewayClasses.
    controller_name = f"{stage.namespace}.example.org/controller"
    shown = harness({"config": {"gatewayAPI": {"enabled": "auto"}, "controllerName": controller_name}})
    shown.start()
    stage.serve()
    streams = [
        {"name": name.lower(), "port": 9000 + number, "protocol": name}
        for number, name in enumerate(("TCP", "UDP", "TLS"))
    ]
    http = {"name": "http", "port": 80, "protocol": "HTTP"}
    entry = gateway_kinds.gateway("gw", http, *streams)
    entry["spec"]["allowedListeners"] = {"namespaces": {"from": "Same"}}
    rules = [{"backendRefs": [{"name": "web", "port": 80}]}]
    others = {"GRPCRoute": "http", "TCPRoute": "tcp", "UDPRoute": "udp", "TLSRoute": "tls"}
    listeners = [{"name": "more", "port": 81, "protocol": "HTTP"}]
    stage.serve("secured")
    target = {"group": "", "kind": "Service", "name": "secured"}
    validation = {"hostname": "secured.example.org", "wellKnownCACertificates": "System"}
    stage.apply(
        [
            gateway_kinds.make("GatewayClass", "apisix", controllerName=controller_name),
            entry,
            gateway_kinds.make("ListenerSet", "set", parentRef={"name": "gw"}, listeners=listeners),
            gateway_kinds.http_route(f"gw.{stage.host}"),
            gateway_kinds.http_route(f"tls.{stage.host}", {"name": "secured", "port": 80}, name="secured"),
            gateway_kinds.make("BackendTLSPolicy", "secured", targetRefs=[target], validation=validation),
            *(
                gateway_kinds.make(kind, "web", parentRefs=[{"name": "gw", "sectionName": section}], rules=rules)
                for kind, section in others.items()
            ),
        ]
    )
    stage.traffic.until_status(200, f"gw.{stage.host}")
    for kind in (*others, "HTTPRoute"):
        stage.api.wait(kind, "web", lambda item: "status" in (item or {}), "a status", namespace=stage.namespace)
    for kind, name in (("Gateway", "gw"), ("ListenerSet", "set")):
        stage.api.wait(kind, name, lambda item: "status" in (item or {}), "a status", namespace=stage.namespace)
    stage.api.wait("GatewayClass", "apisix", lambda item: "status" in (item or {}), "a status")
    policy = "BackendTLSPolicy"
    stage.api.wait(policy, "secured", lambda item: "status" in (item or {}), "a status", namespace=stage.namespace)
    (controller,) = stage.controllers
    assert controller.stop() == 0
    rights = [each for each in granted(shown.manifests) if each.group == GROUP or each.resource == "configmaps"]
    unused = {each.verb for each in shown.audit.unused(rights) if each.group == GROUP}
    assert unused <= {"get"}  # it re-reads an object only after a conflict
    assert Right("", "configmaps", "list") not in shown.audit.unused(rights)
    assert shown.audit.refused() == []


def test_permissions_in_one_namespace_suffice_for_that_namespace(harness: StartHarness, stage: Stage) -> None:
    config = {"kubernetes": {"watchNamespaces": [stage.namespace]}, "status": {"publishService": ""}}
    shown = harness({"rbac": {"scope": "namespaced"}, "config": config})
    outside = {right.resource for right in granted(shown.manifests) if not right.namespace}
    of_cluster = {"apisixclusterconfigs", "apisixsecretmanagers"}
    assert outside == {"namespaces", "ingressclasses", *of_cluster, *(f"{each}/status" for each in of_cluster)}
    with stage.another_namespace() as elsewhere:
        stage.api.apply(route(f"b.{stage.host}"), namespace=elsewhere)
        shown.start()
        stage.serve()
        stage.apply(shown.objects())
        shown.until_all_are_well()
        assert stage.traffic.send(f"b.{stage.host}").status == 404
        assert "status" not in stage.api.get("ApisixRoute", "web", namespace=elsewhere)
    stage.apply(shown.custom("ApisixGlobalRule", {"plugins": [{"name": "cors", "enable": True}]}))
    shown.repeat_a_mistake()
    shown.repeat_a_mistake_outside_namespaces()
    check(shown)


def test_a_namespace_without_permissions_prevents_readiness_and_is_reported(
    harness: StartHarness, stage: Stage
) -> None:
    with stage.another_namespace() as elsewhere:
        watched = {"config": {"kubernetes": {"watchNamespaces": [stage.namespace, elsewhere]}}}
        shown = harness(merged(watched, {"rbac": {"scope": "namespaced"}}))
        bindings = [each for each in shown.manifests if each["kind"] == "RoleBinding"]
        (binding,) = (each for each in bindings if each["metadata"]["namespace"] == elsewhere)
        stage.api.delete("RoleBinding", binding["metadata"]["name"], namespace=elsewhere)
        stage.serve()
        stage.apply(shown.objects())
        own = shown.start(wait=False)
        want = f"listing secrets is forbidden: grant list, watch on secrets in namespace {elsewhere}"
        status, _ = wait_until(lambda: own.probe("/readyz"), lambda got: want in got[1], "the reason")
        assert (status, stage.gateway.records("routes")) == (503, {})
        stage.api.apply(binding)
        own.wait_ready()
        shown.until_all_are_well()


def test_minimal_options_reduce_the_roles_without_forbidden_requests(harness: StartHarness) -> None:
    config = {"leaderElection": {"disable": True}, "status": {"enabled": False}}
    shown = harness(merged({"config": config}, nested("deployment.replicas", 1)))
    resources = {right.resource for right in granted(shown.manifests)}
    assert not resources & {"leases", "events", "endpoints", "referencegrants"}
    assert not any(resource.endswith("/status") for resource in resources)
    shown.start()
    shown.stage.serve()
    shown.stage.apply(shown.objects())
    shown.until_all_are_well()
    before = len(shown.stage.gateway.records("global_rules"))
    second = shown.custom("ApisixGlobalRule", {"plugins": [{"name": "cors", "enable": True}]})
    second["metadata"]["name"] = "second"
    shown.stage.apply(second)
    wait_until(lambda: len(shown.stage.gateway.records("global_rules")), lambda got: got > before, "another rule")
    check(shown)
