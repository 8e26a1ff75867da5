"""Simulates pods without a kubelet: they are created through the API and respond over HTTP on their own addresses.

This module writes the status that a kubelet would write; the real controllers create Endpoints and EndpointSlices from
it. The pod range must be local: run under `python -m e2e.netns --`.
"""

import ipaddress
import itertools
import math
import secrets
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from e2e.cluster.client import KubeClient, Manifest, wait_until
from e2e.cluster.echo import EchoServers
from e2e.netns import POD_RANGE, POD_RANGE_V6

CONTAINER = "echo"
DEFAULT_GRACE = 1.0
STOP_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Pod:
    """One simulated pod. `ports` is port name → number."""

    name: str
    namespace: str
    address: str
    address_v6: str
    ports: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)

    def url(self, path: str = "/", port: str = "http") -> str:
        """Return a URL at the pod itself, past any gateway."""
        return f"http://{self.address}:{self.ports[port]}{path}"


class PodNetwork:
    """Allocates addresses of the pod range, each only once."""

    def __init__(self) -> None:
        # The first /24 is reserved for fixed addresses, e.g. external nodes in a story.
        self._numbers = itertools.count(256)

    def allocate(self) -> tuple[str, str]:
        """Return an unused IPv4 address and the IPv6 address that goes with it."""
        number = next(self._numbers)
        if number >= POD_RANGE.num_addresses - 2:
            raise RuntimeError(f"no address is left in {POD_RANGE}")
        first_v4, first_v6 = int(POD_RANGE.network_address), int(POD_RANGE_V6.network_address)
        return str(ipaddress.IPv4Address(first_v4 + number)), str(ipaddress.IPv6Address(first_v6 + number))


NETWORK = PodNetwork()


class PodFactory:
    """Creates, changes and terminates pods in one namespace. A context manager: it removes every pod at the end."""

    def __init__(self, api: KubeClient, namespace: str, servers: EchoServers) -> None:
        self.namespace = namespace
        self._api = api
        self._servers = servers
        self._pods: dict[str, Pod] = {}
        self._drains: dict[str, _Drain] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods that exist, including terminating ones, oldest first."""
        return tuple(self._pods.values())

    def create(
        self,
        name: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        ports: Mapping[str, int] | None = None,
        node: str = "node-a",
        ready: bool = True,
        dual_stack: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> Pod:
        """Create a pod that serves; return when it responds on its address and its status is updated.

        Args:
            name: unique in the namespace; generated when empty.
            labels: by default `app: <name>`.
            ports: port name → number; by default `{"http": 80}`.
            node: an existing Node.
            ready: whether its Ready condition is True; it serves in both cases.
            dual_stack: also serve on, and report, the IPv6 address.
            tls: serve HTTPS with this context on every port.
        """
        name = name or f"pod-{secrets.token_hex(4)}"
        v4, v6 = NETWORK.allocate()
        pod = Pod(
            name,
            self.namespace,
            v4,
            v6 if dual_stack else "",
            dict(ports or {"http": 80}),
            dict(labels or {"app": name}),
        )
        self._servers.serve(name, _addresses(pod), sorted(set(pod.ports.values())), tls=tls)
        try:
            self._api.create(pod_manifest(pod, node))
        except BaseException:
            self._servers.drop(pod.address)
            raise
        self._pods[name] = pod
        self._set_ready(pod, ready)
        return pod

    def ready(self, pod: Pod) -> None:
        """Let its readiness probe succeed."""
        self._set_ready(pod, True)

    def unready(self, pod: Pod) -> None:
        """Let its readiness probe fail; it continues to serve, as such pods often do."""
        self._set_ready(pod, False)

    def relabel(self, pod: Pod, labels: Mapping[str, str | None]) -> None:
        """Merge labels into the pod; None removes one."""
        self._api.patch("Pod", pod.name, {"metadata": {"labels": dict(labels)}}, namespace=self.namespace)

    def stop_serving(self, pod: Pod) -> None:
        """Refuse connections at its address while its status is still ready: a pod that has just died."""
        self._servers.drop(pod.address)

    def terminate(self, pod: Pod, *, grace: float = DEFAULT_GRACE, wait: bool = False) -> None:
        """Delete the pod as `kubectl delete` does: it serves, terminating, for `grace` seconds and is then gone.

        Args:
            pod: to terminate; a second call for the same pod has no effect.
            grace: seconds between the deletion and the end of its server.
            wait: return only when it is gone.
        """
        if pod.name in self._pods and pod.address not in self._drains:
            self._api.delete("Pod", pod.name, namespace=self.namespace, grace=max(1, math.ceil(grace)))
            self._drains[pod.address] = _Drain(self, pod, grace)
        if wait:
            self.wait_gone(pod)

    def wait_gone(self, pod: Pod, timeout: float = STOP_TIMEOUT) -> None:
        """Wait until a terminated pod is gone.

        Raises:
            TimeoutError: when it is not after `timeout` seconds.
        """
        if (drain := self._drains.get(pod.address)) is not None:
            drain.join(timeout)

    def remove(self, pod: Pod) -> None:
        """End the pod at once: its server stops and its object is deleted without grace."""
        self._servers.drop(pod.address)
        self._api.delete("Pod", pod.name, namespace=self.namespace, grace=0)
        self._pods.pop(pod.name, None)

    def close(self) -> None:
        """Remove every pod, including draining ones."""
        for drain in tuple(self._drains.values()):
            drain.cancel()
        for pod in self.pods:
            self.remove(pod)

    def service(
        self,
        name: str,
        selector: Mapping[str, str],
        ports: Mapping[str, tuple[int, int | str]] | None = None,
        **spec: Any,
    ) -> Manifest:
        """Apply a Service and return it.

        Args:
            name: of the Service.
            selector: pod labels.
            ports: port name → (port, target port or its name); by default `{"http": (80, "http")}`.
            spec: further fields of the Service's spec, e.g. `clusterIP="None"`.
        """
        entries = [
            {"name": port_name, "port": port, "targetPort": target, "protocol": "TCP"}
            for port_name, (port, target) in (ports or {"http": (80, "http")}).items()
        ]
        manifest = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"selector": dict(selector), "ports": entries, **spec},
        }
        return self._api.apply(manifest)[0]

    def wait_published(self, service: str, number: int) -> None:
        """Wait until the EndpointSlices of a Service have this many ready addresses; this may take a while."""
        labels = f"kubernetes.io/service-name={service}"

        def ready() -> int:
            slices = self._api.objects("EndpointSlice", namespace=self.namespace, labels=labels)
            found = [endpoint for each in slices for endpoint in each["endpoints"] or ()]
            return sum(endpoint["conditions"].get("ready", False) for endpoint in found)

        wait_until(ready, lambda got: got >= number, f"{number} addresses of {service}")

    def _set_ready(self, pod: Pod, ready: bool) -> None:
        self._api.patch("Pod", pod.name, pod_status(pod, ready), namespace=self.namespace, subresource="status")


class PodOptions(TypedDict, total=False):
    """The keyword arguments of `PodFactory.create`."""

    labels: Mapping[str, str]
    ports: Mapping[str, int]
    node: str
    ready: bool
    dual_stack: bool
    tls: ssl.SSLContext


class Deployment:
    """A number of identical pods, replaced as by a Deployment with maxSurge 1 and maxUnavailable 0."""

    def __init__(self, factory: PodFactory, name: str, *, replicas: int = 1, **pod: Unpack[PodOptions]) -> None:
        """Create the pods.

        Args:
            factory: makes the pods.
            name: prefix of their names and, unless `labels` is set, their label `app`.
            replicas: their number.
            pod: further arguments for `PodFactory.create`.
        """
        self.name = name
        self._factory = factory
        self._pod: PodOptions = {"labels": {"app": name}, **pod}
        self._numbers = itertools.count(1)
        self._pods: list[Pod] = []
        self.scale(replicas)

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods that are not terminating, oldest first."""
        return tuple(self._pods)

    def scale(self, replicas: int, *, grace: float = DEFAULT_GRACE) -> None:
        """Add ready pods, or terminate the newest ones without waiting until they are gone."""
        while len(self._pods) < replicas:
            self._pods.append(self._add())
        while len(self._pods) > replicas:
            self._factory.terminate(self._pods.pop(), grace=grace)

    def rolling_restart(self, *, grace: float = DEFAULT_GRACE) -> None:
        """Replace every pod, one by one: the new one is ready before the old one terminates.

        An old pod responds until the end of its grace period. Returns when the last old pod is gone.
        """
        old = self._pods
        self._pods = []
        for pod in old:
            self._pods.append(self._add())
            self._factory.terminate(pod, grace=grace)
        for pod in old:
            self._factory.wait_gone(pod)

    def _add(self) -> Pod:
        return self._factory.create(f"{self.name}-{next(self._numbers)}", **self._pod)


class _Drain:
    """Removes one pod on a timer thread at the end of its grace period; keeps the error if that fails."""

    def __init__(self, factory: PodFactory, pod: Pod, grace: float) -> None:
        self._factory = factory
        self._pod = pod
        self._error: Exception | None = None
        self._timer = threading.Timer(grace, self._end)
        self._timer.name = f"e2e-drain-{pod.name}"
        self._timer.daemon = True
        self._timer.start()

    def join(self, timeout: float) -> None:
        self._timer.join(timeout)
        if self._timer.is_alive():
            raise TimeoutError(f"pod {self._pod.name} is not gone after {timeout:.0f} s")
        if self._error is not None:
            raise self._error

    def cancel(self) -> None:
        self._timer.cancel()
        self._timer.join(STOP_TIMEOUT)

    def _end(self) -> None:
        try:
            self._factory.remove(self._pod)
        except Exception as e:
            # An exception of a timer thread would be lost; `join` raises it.
            self._error = e


def pod_manifest(pod: Pod, node: str) -> Manifest:
    """Return the manifest of a pod on that node; without a kubelet, the image is never pulled."""
    ports = [{"name": name, "containerPort": number} for name, number in pod.ports.items()]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "labels": dict(pod.labels)},
        "spec": {
            "nodeName": node,
            "containers": [{"name": CONTAINER, "image": CONTAINER, "ports": ports}],
        },
    }


def pod_status(pod: Pod, ready: bool) -> Manifest:
    """Return the status a kubelet would report for a running pod."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    truth = "True" if ready else "False"
    container = {
        "name": CONTAINER,
        "image": CONTAINER,
        "imageID": "",
        "restartCount": 0,
        "ready": ready,
        "started": True,
        "state": {"running": {"startedAt": now}},
    }
    states = {"PodScheduled": "True", "Initialized": "True", "ContainersReady": truth, "Ready": truth}
    return {
        "status": {
            "phase": "Running",
            "podIP": pod.address,
            "podIPs": [{"ip": address} for address in _addresses(pod)],
            "startTime": now,
            "conditions": [
                {"type": kind, "status": status, "lastTransitionTime": now} for kind, status in states.items()
            ],
            "containerStatuses": [container],
        }
    }


def _addresses(pod: Pod) -> list[str]:
    return [pod.address, pod.address_v6] if pod.address_v6 else [pod.address]
