"""The foundation of the stories: the cluster starts, pods become endpoints, and changes of pods reach the slices."""

import contextlib
import dataclasses
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from e2e.cluster.binaries import locate
from e2e.cluster.client import KubeApiError, KubeClient, Manifest, wait_until
from e2e.cluster.local import NODES, ClusterError, LocalCluster
from e2e.cluster.process import whole_lines
from e2e.devgateway.ports import free_port
from e2e.workload import STOP_TIMEOUT, Deployment, Pod, PodFactory

pytest_plugins = ["e2e.cluster.fixtures"]

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.e2e.example.com}
spec:
  group: e2e.example.com
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: e2e.example.com/v1
kind: Widget
metadata: {name: small}
spec: {size: 1}
"""


def conditions_by_address(api: KubeClient, namespace: str, service: str) -> dict[str, dict[str, bool]]:
    """Return address → conditions in the EndpointSlices of a Service."""
    slices = api.objects("EndpointSlice", namespace=namespace, labels=f"kubernetes.io/service-name={service}")
    return {
        address: endpoint["conditions"]
        for each in slices
        for endpoint in each["endpoints"] or []
        for address in endpoint["addresses"]
    }


def ready_addresses(api: KubeClient, namespace: str, service: str) -> set[str]:
    conditions = conditions_by_address(api, namespace, service)
    return {address for address, each in conditions.items() if each["ready"]}


def await_ready(api: KubeClient, namespace: str, service: str, want: set[str]) -> None:
    wait_until(lambda: ready_addresses(api, namespace, service), lambda got: got == want, f"ready endpoints {want}")


def addresses(*pods: Pod) -> set[str]:
    return {pod.address for pod in pods}


def test_nodes_exist_and_versions_are_reported(local_cluster: LocalCluster, api: KubeClient) -> None:
    got = {node["metadata"]["name"] for node in api.objects("Node")}
    assert got == set(NODES)
    version = json.loads(local_cluster.kubectl("version", "--output=json"))["serverVersion"]
    assert (version["major"], version["gitVersion"].split(".")[0]) == ("1", "v1")


def test_pods_become_endpoints_and_endpoint_slices(api: KubeClient, namespace: str, pods: PodFactory) -> None:
    web = Deployment(pods, "web", replicas=2, ports={"http": 8080})
    pods.service("web", {"app": "web"})
    await_ready(api, namespace, "web", addresses(*web.pods))

    def subset_addresses(endpoints: Manifest | None) -> set[str]:
        subsets = (endpoints or {}).get("subsets", [])
        return {address["ip"] for subset in subsets for address in subset.get("addresses", [])}

    want = addresses(*web.pods)
    api.wait("Endpoints", "web", lambda o: subset_addresses(o) == want, f"to have {want}", namespace=namespace)


def test_a_pod_responds_on_its_address_and_repeats_the_request(pods: PodFactory) -> None:
    pod = pods.create("echo", ports={"http": 80, "admin": 9000})
    reply = httpx.post(pod.url("/a/b?c=d", port="admin"), content="hello", headers={"X-Test": "1"}, trust_env=False)
    got = reply.json()
    assert (reply.status_code, reply.headers["X-Pod"]) == (200, "echo")
    assert {key: got[key] for key in ("pod", "method", "path", "query", "body")} == {
        "pod": "echo",
        "method": "POST",
        "path": "/a/b",
        "query": "c=d",
        "body": "hello",
    }
    assert got["headers"]["x-test"] == "1"
    assert httpx.get(pod.url("/status/503"), trust_env=False).status_code == 503


async def test_a_pod_echoes_websocket_messages(pods: PodFactory) -> None:
    import aiohttp

    pod = pods.create("echo")
    async with aiohttp.ClientSession() as session, session.ws_connect(pod.url("/ws/chat")) as socket:
        await socket.send_str("hello")
        assert await socket.receive_str(timeout=5) == "hello"


def test_an_unready_pod_leaves_the_ready_endpoints_until_it_is_ready(
    api: KubeClient, namespace: str, pods: PodFactory
) -> None:
    one, two = Deployment(pods, "web", replicas=2).pods
    pods.service("web", {"app": "web"})
    await_ready(api, namespace, "web", addresses(one, two))
    pods.unready(one)
    await_ready(api, namespace, "web", addresses(two))
    pods.ready(one)
    await_ready(api, namespace, "web", addresses(one, two))


def test_a_terminating_pod_serves_until_it_is_deleted_and_is_shown_as_terminating(
    api: KubeClient, namespace: str, pods: PodFactory
) -> None:
    pod = pods.create("web")
    pods.service("web", {"app": "web"})
    await_ready(api, namespace, "web", addresses(pod))
    # It stays until the assertion below, however late its endpoint is updated.
    pods.terminate(pod, grace=STOP_TIMEOUT)
    want = {pod.address: {"ready": False, "serving": True, "terminating": True}}
    wait_until(lambda: conditions_by_address(api, namespace, "web"), lambda got: got == want, str(want))
    assert httpx.get(pod.url(), trust_env=False).status_code == 200
    pods.remove(pod)
    assert api.find("Pod", pod.name, namespace=namespace) is None
    with pytest.raises(httpx.ConnectError):
        httpx.get(pod.url(), trust_env=False)
    wait_until(lambda: conditions_by_address(api, namespace, "web"), lambda got: got == {}, "no endpoint")


def test_a_rolling_restart_never_leaves_the_service_without_a_ready_pod(
    api: KubeClient, namespace: str, pods: PodFactory
) -> None:
    web = Deployment(pods, "web", replicas=2)
    old = web.pods
    pods.service("web", {"app": "web"})
    await_ready(api, namespace, "web", addresses(*old))
    seen: list[int] = []
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.01):
            seen.append(len(ready_addresses(api, namespace, "web")))

    watcher = threading.Thread(target=look)
    watcher.start()
    with contextlib.ExitStack() as stack:
        stack.callback(watcher.join)
        stack.callback(done.set)
        web.rolling_restart(grace=0.5)
    assert not addresses(*web.pods) & addresses(*old)
    await_ready(api, namespace, "web", addresses(*web.pods))
    assert min(seen) >= 1


def test_scaling_down_ends_the_newest_pods(api: KubeClient, namespace: str, pods: PodFactory) -> None:
    web = Deployment(pods, "web", replicas=3)
    pods.service("web", {"app": "web"})
    await_ready(api, namespace, "web", addresses(*web.pods))
    first = web.pods[0]
    web.scale(1, grace=0.2)
    await_ready(api, namespace, "web", addresses(first))


def test_a_dual_stack_pod_responds_on_ipv6_and_gets_a_slice_of_each_family(
    api: KubeClient, namespace: str, pods: PodFactory
) -> None:
    pod = pods.create("web", dual_stack=True)
    pods.service("web", {"app": "web"}, ipFamilyPolicy="PreferDualStack")
    await_ready(api, namespace, "web", {pod.address, pod.address_v6})
    assert httpx.get(f"http://[{pod.address_v6}]/", trust_env=False).json()["pod"] == "web"


def test_a_custom_resource_can_be_applied_with_its_definition(api: KubeClient, namespace: str) -> None:
    widget = api.apply(WIDGETS, namespace=namespace)[-1]
    assert widget["spec"] == {"size": 1}
    api.patch("Widget", "small", {"status": {"seen": True}}, namespace=namespace, subresource="status")
    got = api.get("Widget", "small", namespace=namespace)
    assert got["status"] == {"seen": True}
    api.delete("Widget", "small", namespace=namespace)
    assert api.find("Widget", "small", namespace=namespace) is None


def test_a_service_account_has_its_role_and_its_requests_are_audited(
    local_cluster: LocalCluster, api: KubeClient, namespace: str
) -> None:
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}, namespace=namespace)
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    role: dict[str, Any] = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader", "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [subject],
    }
    api.apply(role)
    kubeconfig = local_cluster.kubeconfig_for(api.account_token("reader", namespace=namespace), "reader")
    with KubeClient.from_kubeconfig(kubeconfig) as reader:
        wait_until(lambda: _allowed(reader, namespace), bool, "the role to count")
        with pytest.raises(KubeApiError) as refused:
            reader.objects("Secret", namespace=namespace)
    assert refused.value.status == 403
    user = f"system:serviceaccount:{namespace}:reader"
    events = [json.loads(line) for line in whole_lines(local_cluster.audit_log)]
    got = {
        (e["verb"], e["objectRef"]["resource"])
        for e in events
        if e["user"].get("username") == user and "objectRef" in e
    }
    assert got == {("list", "services"), ("list", "secrets")}


def test_objects_and_controllers_survive_a_killed_api_server(
    local_cluster: LocalCluster, api: KubeClient, namespace: str, pods: PodFactory
) -> None:
    one = pods.create("one", labels={"app": "web"})
    pods.service("web", {"app": "web"})
    await_ready(api, namespace, "web", addresses(one))
    local_cluster.kill_apiserver()
    with pytest.raises(httpx.TransportError):
        api.get("Service", "web", namespace=namespace)
    local_cluster.start_apiserver()
    assert api.get("Service", "web", namespace=namespace)["metadata"]["name"] == "web"
    two = pods.create("two", labels={"app": "web"})
    await_ready(api, namespace, "web", addresses(one, two))


def test_a_cluster_that_cannot_start_shows_the_end_of_the_log(tmp_path: Path) -> None:
    broken = tmp_path / "etcd"
    broken.write_text("#!/bin/sh\necho no space left >&2\nexit 3\n")
    broken.chmod(0o755)
    cluster = LocalCluster(root=tmp_path / "root", binaries=dataclasses.replace(locate(), etcd=broken))
    with pytest.raises(ClusterError) as failed:
        cluster.start()
    got = str(failed.value)
    assert got.startswith(f"etcd ended with status 3; its log {tmp_path}/root/etcd.log ends with:")
    assert got.endswith("no space left")
    assert cluster.apiserver.pid is None


def test_a_published_port_is_reachable_outside_its_namespace() -> None:
    port = free_port()
    server = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", str(port)]
    command = [sys.executable, "-m", "e2e.netns", "--publish", str(port), "--", *server]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _status(f"http://127.0.0.1:{port}/"), lambda got: got == 200, "an answer")
    finally:
        child.terminate()
    assert child.wait(10) == 128 + signal.SIGTERM


def _status(url: str) -> int:
    try:
        return httpx.get(url, trust_env=False).status_code
    except httpx.TransportError:
        return 0


def _allowed(reader: KubeClient, namespace: str) -> bool:
    try:
        reader.objects("Service", namespace=namespace)
    except KubeApiError:
        return False
    return True
