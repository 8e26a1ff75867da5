"""References into another namespace under `cross_namespace: grant`: traffic flows only while the grant exists."""

import ssl
from functools import partial

import pytest
from trustme import CA

from e2e.cluster.client import Manifest, wait_until
from e2e.definitions.gateway_kinds import GROUP
from e2e.story import Stage, condition, route, says

OURS = "apisix.apache.org"
GRANTING = {"cross_namespace": "grant"}

pytestmark = pytest.mark.usefixtures("reference_grants")


def allow(stage: Stage, tenant: str, source: tuple[str, str], *targets: tuple[str, str, str]) -> None:
    """Grant references to objects of a tenant; source is group and kind, targets may also have a name."""
    group, kind = source
    to = [{"group": group, "kind": kind, **({"name": name} if name else {})} for group, kind, name in targets]
    spec = {"from": [{"group": group, "kind": kind, "namespace": tenant}], "to": to}
    metadata = {"name": "grant"}
    stage.apply({"apiVersion": f"{GROUP}/v1", "kind": "ReferenceGrant", "metadata": metadata, "spec": spec})


def revoke(stage: Stage) -> None:
    stage.api.delete("ReferenceGrant", "grant", namespace=stage.namespace)


def ingress(stage: Stage) -> Manifest:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "web", "annotations": {"k8s.apisix.apache.org/svc-namespace": stage.namespace}},
        "spec": {"ingressClassName": "apisix", "rules": [{"host": stage.host, "http": {"paths": paths}}]},
    }


def test_a_service_of_another_namespace_is_reachable_only_with_a_grant(stage: Stage, tenant: str) -> None:
    stage.start(kubernetes=GRANTING)
    stage.serve()
    stage.api.apply(ingress(stage), namespace=tenant)

    def refusals() -> list[str]:
        return [event["message"] for event in stage.api.events("web", namespace=tenant) if event["type"] == "Warning"]

    (reported,) = wait_until(refusals, bool, "a Warning")
    assert (
        f"Service {stage.namespace}/web does not exist, or references from namespace {tenant} are not permitted"
        in reported
    )
    assert stage.traffic.send(stage.host).status == 404
    source = ("networking.k8s.io", "Ingress")
    allow(stage, tenant, source, ("", "Service", "web"))
    assert stage.traffic.until_status(200, stage.host).pod == "web"
    revoke(stage)
    stage.traffic.until_status(404, stage.host)
    wait_until(lambda: stage.gateway.records("upstreams"), lambda got: got == {}, "no upstream")
    assert stage.gateway.records("routes") == {}
    allow(stage, tenant, source, ("", "Service", "other"), ("", "Service", ""))
    stage.traffic.until_status(200, stage.host)

    # An invalid edit keeps the last good records, but only while their grant exists.
    broken = ingress(stage)
    del broken["metadata"]["annotations"]
    stage.api.apply(broken, namespace=tenant)
    wait_until(refusals, lambda got: any(f"{tenant}/web does not exist;" in each for each in got), "another Warning")
    assert stage.traffic.send(stage.host).status == 200
    revoke(stage)
    stage.traffic.until_status(404, stage.host)


def test_a_grant_that_is_removed_while_the_controller_is_down_ends_traffic(stage: Stage, tenant: str) -> None:
    controller = stage.start(kubernetes=GRANTING)
    stage.serve()
    stage.api.apply(ingress(stage), namespace=tenant)
    allow(stage, tenant, ("networking.k8s.io", "Ingress"), ("", "Service", "web"))
    stage.traffic.until_status(200, stage.host)
    broken = ingress(stage)
    del broken["metadata"]["annotations"]
    stage.api.apply(broken, namespace=tenant)
    absent = f"{tenant}/web does not exist"
    events = partial(stage.api.events, "web", namespace=tenant)
    wait_until(
        lambda: [each["message"] for each in events()], lambda got: any(absent in each for each in got), "a Warning"
    )
    controller.stop()
    revoke(stage)

    controller.start()

    stage.traffic.until_status(404, stage.host)


def test_a_client_certificate_is_not_used_after_a_restart_without_its_grant(stage: Stage, tenant: str) -> None:
    controller = stage.start(kubernetes=GRANTING)
    stage.serve()
    leaf = CA().issue_cert("client")
    pair = {"tls.crt": leaf.cert_chain_pems[0].bytes().decode(), "tls.key": leaf.private_key_pem.bytes().decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "client"}, "stringData": pair}
    stage.api.apply(secret, namespace=tenant)
    to = [{"group": "", "kind": "Secret", "name": "client"}]
    spec = {"from": [{"group": OURS, "kind": "ApisixUpstream", "namespace": stage.namespace}], "to": to}
    grant = {"apiVersion": f"{GROUP}/v1", "kind": "ReferenceGrant", "metadata": {"name": "client"}, "spec": spec}
    stage.api.apply(grant, namespace=tenant)
    upstream = {
        "apiVersion": f"{OURS}/v2",
        "kind": "ApisixUpstream",
        "metadata": {"name": "web"},
        "spec": {"ingressClassName": "apisix", "tlsSecret": {"name": "client", "namespace": tenant}},
    }
    stage.apply(upstream)
    stage.apply(route(stage.host))

    def certificates() -> list[str]:
        return [body["tls"]["client_cert"] for body in stage.gateway.records("upstreams").values() if "tls" in body]

    wait_until(certificates, bool, "the client certificate")
    stage.traffic.until_status(200, stage.host)
    upstream["spec"] = {"ingressClassName": "apisix", "tlsSecret": {"name": "absent", "namespace": stage.namespace}}
    stage.apply(upstream)
    stage.api.wait("ApisixUpstream", "web", says("False"), "refused", namespace=stage.namespace)
    assert certificates()
    controller.stop()
    stage.api.delete("ReferenceGrant", "client", namespace=tenant)

    controller.start()

    stage.traffic.until_status(404, stage.host)
    wait_until(certificates, lambda got: got == [], "no client certificate")


def test_a_certificate_of_another_namespace_is_served_only_with_a_grant(stage: Stage, tenant: str) -> None:
    stage.start(kubernetes=GRANTING)
    leaf = CA().issue_cert(stage.host)
    pair = {"tls.crt": leaf.cert_chain_pems[0].bytes().decode(), "tls.key": leaf.private_key_pem.bytes().decode()}
    stage.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "cert"}, "stringData": pair})
    spec = {"hosts": [stage.host], "secret": {"name": "cert", "namespace": stage.namespace}}
    meta = {"name": "web"}
    tls = {"apiVersion": f"{OURS}/v2", "kind": "ApisixTls", "metadata": meta, "spec": spec}
    stage.api.apply(tls, namespace=tenant)
    reported = says("False", "does not exist, or references")
    refused = stage.api.wait("ApisixTls", "web", reported, "refused", namespace=tenant)
    mine = ssl.PEM_cert_to_DER_cert(pair["tls.crt"]).hex()
    assert stage.traffic.send_tls(stage.host)[1] != mine
    assert stage.gateway.records("ssls") == {}
    allow(stage, tenant, (OURS, "ApisixTls"), ("", "Secret", "cert"))
    wait_until(lambda: stage.traffic.send_tls(stage.host)[1], lambda got: got == mine, "the certificate")
    stage.api.wait("ApisixTls", "web", says("True"), "synced", namespace=tenant)
    revoke(stage)
    wait_until(lambda: stage.traffic.send_tls(stage.host)[1], lambda got: got != mine, "another certificate, or none")
    wait_until(lambda: stage.gateway.records("ssls"), lambda got: got == {}, "no certificate")
    again = stage.api.wait("ApisixTls", "web", says("False"), "refused again", namespace=tenant)

    # The message does not reveal whether the Secret exists.
    stage.api.delete("Secret", "cert", namespace=stage.namespace)
    stage.api.patch("ApisixTls", "web", {"spec": {"hosts": [f"b.{stage.host}"]}}, namespace=tenant)
    absent = stage.api.wait("ApisixTls", "web", says("False"), "absent", namespace=tenant)
    assert condition(again)["message"] == condition(refused)["message"] == condition(absent)["message"]


def test_a_backend_of_a_route_in_another_namespace_needs_a_grant(stage: Stage, tenant: str) -> None:
    stage.start(kubernetes=GRANTING)
    stage.serve()
    web = route(stage.host)
    web["spec"]["http"][0]["backends"][0]["serviceNamespace"] = stage.namespace
    stage.api.apply(web, namespace=tenant)
    stage.api.wait("ApisixRoute", "web", says("False", "ReferenceGrant"), "refused", namespace=tenant)
    assert stage.traffic.send(stage.host).status == 404
    allow(stage, tenant, (OURS, "ApisixRoute"), ("", "Service", "web"))
    assert stage.traffic.until_status(200, stage.host).pod == "web"
    stage.api.wait("ApisixRoute", "web", says("True"), "synced", namespace=tenant)
    revoke(stage)
    stage.traffic.until_status(404, stage.host)
    wait_until(lambda: stage.gateway.records("upstreams"), lambda got: got == {}, "no upstream")


def test_a_plugin_config_of_another_namespace_needs_a_grant(stage: Stage, tenant: str) -> None:
    stage.start(kubernetes=GRANTING)
    plugins = [{"name": "redirect", "enable": True, "config": {"uri": "/elsewhere", "ret_code": 302}}]
    version = f"{OURS}/v2"
    stage.apply(
        {
            "apiVersion": version,
            "kind": "ApisixPluginConfig",
            "metadata": {"name": "away"},
            "spec": {"plugins": plugins},
        }
    )
    rule = {
        "name": "rule",
        "match": {"hosts": [stage.host], "paths": ["/*"]},
        "plugin_config_name": "away",
        "plugin_config_namespace": stage.namespace,
    }
    route = {"apiVersion": version, "kind": "ApisixRoute", "metadata": {"name": "web"}, "spec": {"http": [rule]}}
    stage.api.apply(route, namespace=tenant)
    stage.api.wait("ApisixRoute", "web", says("False", "ReferenceGrant"), "refused", namespace=tenant)
    assert stage.traffic.send(stage.host).status == 404
    allow(stage, tenant, (OURS, "ApisixRoute"), (OURS, "ApisixPluginConfig", ""))
    stage.traffic.until_status(302, stage.host)
    stage.api.wait("ApisixRoute", "web", says("True"), "synced", namespace=tenant)
    revoke(stage)
    stage.traffic.until_status(404, stage.host)
    assert list(stage.gateway.records("plugin_configs")) != []
