"""The measurement: Pods are deleted one after the other while requests arrive.

Everything is real except the kubelet and the gateway: the development gateway proxies as APISIX does, more slowly. Two
Pods serve at any time. A deleted Pod still responds, as Pods do during their grace period, so that every request after
the deletion reached a Pod that the gateway should have left out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import crds
from benchmarks.adapter import Adapter
from benchmarks.deletion.load import HOST, OK, PORT, Load
from benchmarks.gateway import raise_revision
from benchmarks.scenarios import Figures, latencies
from benchmarks.seeds import REVISIONS, etcd_url
from benchmarks.subject import Subject
from e2e.cluster.client import KubeClient, Manifest, wait_until
from e2e.cluster.local import LocalCluster
from e2e.devgateway.process import DevGateway
from e2e.workload import NETWORK, Pod, pod_manifest, pod_status

RATE = 400.0
"""Requests per second: a Pod receives one every 5 ms, which is the resolution of the figures."""
DELETIONS = 20
GRACE = 30
"""Seconds of the grace period, as Kubernetes sets it."""
WATCHED = 1.0
"""A deleted Pod that received nothing for this many seconds receives nothing more."""
NAME, NODE, NAMESPACE = "deletion", "node-a", "default"


def measure(each: Adapter, known: dict[str, str], program: Path, folder: Path) -> Figures:
    """Start an API server, a gateway and the controller, delete Pods, and return the figures."""
    with ExitStack() as stack:
        cluster = stack.enter_context(LocalCluster())
        raise_revision(program, etcd_url(cluster), REVISIONS)
        api = stack.enter_context(cluster.client())
        api.apply(crds.manifests())
        gateway = stack.enter_context(DevGateway(stream=False))
        where = {**known, "kubeconfig": str(cluster.kubeconfig), "admin_key": gateway.admin_key}
        where |= {"gateway_url": f"http://{gateway.admin_address}", "admin_url": gateway.admin_url}
        api.apply([*each.manifests(where), *_objects()])
        proxy = urlsplit(gateway.proxy_url)
        load = stack.enter_context(Load((proxy.hostname or "", proxy.port or 80), RATE))
        subject = Subject(each, where, folder)
        stack.callback(subject.close)
        subject.start()
        pods = [_start(api, load, f"{NAME}-{number}") for number in range(2)]
        load.send()
        _wait_for_requests(load, pods)
        before = load.statuses()  # 404 until the route is published
        delays = list(_delays(api, load, pods))
        statuses = load.statuses() - before
        return {**latencies(delays), "requests": statuses.total(), "failed": statuses.total() - statuses[OK]}


def _delays(api: KubeClient, load: Load, pods: list[Pod]) -> Iterator[float]:
    """Replace the Pods one by one; yield the seconds from each deletion to the last request that the Pod received."""
    for number in range(DELETIONS):
        _wait_for_requests(load, pods)
        old = pods.pop(0)
        began = time.time()
        api.delete("Pod", old.name, namespace=NAMESPACE, grace=GRACE)
        yield _last(load, old.address) - began
        pods.append(_start(api, load, f"{NAME}-{number + 2}"))


def _last(load: Load, address: str) -> float:
    """Return when the last request arrived, once there was none for a while."""
    received = partial(load.received, address)
    return wait_until(received, lambda got: time.time() - got.last > WATCHED, f"no more requests at {address}").last


def _start(api: KubeClient, load: Load, name: str) -> Pod:
    address, _ = NETWORK.allocate()
    pod = Pod(name, NAMESPACE, address, "", {"http": PORT}, {"app": NAME})
    load.serve(address)
    api.create(pod_manifest(pod, NODE))
    api.patch("Pod", name, pod_status(pod, ready=True), namespace=NAMESPACE, subresource="status")
    return pod


def _wait_for_requests(load: Load, pods: Sequence[Pod]) -> None:
    for pod in pods:
        wait_until(partial(load.received, pod.address), lambda got: got.requests > 0, f"requests at {pod.name}")


def _objects() -> list[Manifest]:
    meta = {"name": NAME, "namespace": NAMESPACE}
    port = {"name": "http", "port": 80, "targetPort": "http"}
    backend = {"serviceName": NAME, "servicePort": 80}
    rule = {"name": "all", "match": {"hosts": [HOST], "paths": ["/*"]}, "backends": [backend]}
    return [
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": {"app": NAME}, "ports": [port]}},
        {
            "apiVersion": "apisix.apache.org/v2",
            "kind": "ApisixRoute",
            "metadata": meta,
            "spec": {"ingressClassName": "apisix", "http": [rule]},
        },
    ]
