"""One installation of the chart on the node, with a gateway beside it: install, observe, send requests."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from e2e.cluster.client import KubeClient, Manifest, wait_until
from e2e.devgateway.process import DevGateway
from e2e.release.node import settings
from e2e.release.node.node import Node
from e2e.traffic import RequestLoop, Traffic

CHART = "deploy/charts/apisix-ingress"
NAMESPACE = "apisix-ingress"
RELEASE = "apisix-ingress"
LABELS = "app.kubernetes.io/instance=apisix-ingress"
LEASE = "apisix-ingress-leader"
HOST = "web.example.org"
TIMEOUT = 180.0
Values = dict[str, str]


class Installation:
    """The release `apisix-ingress`; its gateway is a process on the node, its backends are Pods."""

    def __init__(self, node: Node, api: KubeClient, gateway: DevGateway) -> None:
        self.node = node
        self.api = api
        self.gateway = gateway
        self.traffic = Traffic(gateway.proxy_url)

    def prepare(self, image: str) -> None:
        """Create the namespace, as strict as Kubernetes can be, the Secret with the admin key, and two backends."""
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": restricted}})
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "admin", "namespace": NAMESPACE}}
        self.api.apply({**secret, "stringData": {"admin-key": self.gateway.admin_key}})
        self.api.apply(backends(image))

    def apply_crds(self, chart: Path) -> None:
        """Apply the CRDs of a chart, with the command of the documentation."""
        self.node.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(chart / "crds"))

    def helm(self, *words: str | Path, **values: str) -> None:
        """Run a command of helm on the release, and wait until it is rolled out."""
        sets = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
        self.node.helm(*words, "--namespace", NAMESPACE, *sets, "--wait", "--timeout", f"{TIMEOUT:.0f}s")

    def values(self, image: str) -> Values:
        """Return the values for an image that is on the node."""
        repository, _, tag = image.rpartition(":")
        provider = "gatewayProxy.provider.controlPlane"
        return {
            "deployment.image.repository": repository,
            "deployment.image.tag": tag,
            f"{provider}.endpoints[0]": self.gateway.admin_url.removesuffix("/apisix/admin"),
            f"{provider}.auth.adminKey.valueFrom.secretKeyRef.name": "admin",
            "networkPolicy.apiServer.ports[0]": self.node.cluster.url.rpartition(":")[2],
        }

    def controllers(self) -> list[Manifest]:
        """Return the Pods of the release that are not terminating."""
        return self.node.pods(self.api, NAMESPACE, LABELS)

    def pid(self, pod: Manifest) -> int:
        """Return the id of the process in the first container of a Pod."""
        container = pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2]
        tasks = self.node.ctr("tasks", "list")
        found = re.search(rf"^{container}\s+(\d+)", tasks, re.MULTILINE)
        assert found, tasks
        return int(found[1])

    def ready(self) -> list[str]:
        """Return the names of the ready controllers."""
        return [pod["metadata"]["name"] for pod in self.controllers() if is_ready(pod)]

    def wait_for_two(self) -> list[str]:
        """Wait until exactly two controllers are there, both ready, and return their names."""
        wait_until(
            lambda: (len(self.controllers()), len(self.ready())), lambda n: n == (2, 2), "two controllers", TIMEOUT
        )
        return self.ready()

    def leader(self) -> str:
        """Return the holder of the Lease, empty if there is none."""
        lease = self.api.find("Lease", LEASE, namespace=NAMESPACE) or {"spec": {}}
        return str(lease["spec"].get("holderIdentity") or "")

    def wait_for_leader(self, among: list[str]) -> str:
        """Wait until one of the Pods leads, and return its name."""

        def leading() -> str:
            holder = self.leader()
            return next((name for name in among if holder.startswith(name)), "")

        return wait_until(leading, bool, f"one of {among} to lead", TIMEOUT)

    def writes(self, after: int = 0) -> list[dict[str, Any]]:
        """Return the gateway's log of write requests."""
        return self.gateway.write_log(after)

    @contextmanager
    def under_traffic(self) -> Iterator[RequestLoop]:
        """Send requests during a block; every one of them must be served."""
        with RequestLoop(self.traffic, HOST, pause=0.02) as loop:
            yield loop
        assert loop.failures == [], f"{len(loop.failures)} of {len(loop.answers)} requests: {loop.failures[:3]}"

    def changes_arrive(self, path: str) -> None:
        """Add a path to the Ingress, and wait until the gateway serves it."""
        self.api.apply(ingress("/", path))
        self.traffic.until_status(200, HOST, "/bin/")
        wait_until(
            lambda: json.dumps(self.gateway.records("routes")), lambda text: path in text, f"a record for {path}"
        )


@contextmanager
def installation(node: Node) -> Iterator[Installation]:
    """Start a gateway and yield an installation that is not installed yet."""
    with ExitStack() as stack:
        gateway = stack.enter_context(DevGateway(host=settings.ADDRESS, admin_port=9180))
        yield Installation(node, stack.enter_context(node.cluster.client()), gateway)


def is_ready(pod: Manifest) -> bool:
    """Return whether a Pod is ready."""
    conditions = pod["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def ingress(*paths: str) -> Manifest:
    """Return the Ingress `web` with these paths."""
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rules = [{"path": path, "pathType": "Prefix", "backend": backend} for path in paths]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"ingressClassName": "apisix", "rules": [{"host": HOST, "http": {"paths": rules}}]},
    }


def backends(image: str) -> list[Manifest]:
    """Return two Pods with an HTTP server, their Service and the Ingress."""
    command = ["python", "-m", "http.server", "8000", "--directory", "/opt/apisix-ingress"]
    container = {
        "name": "web",
        "image": image,
        "command": command,
        "readinessProbe": {"httpGet": {"path": "/", "port": 8000}},
    }
    meta = {"name": "web", "namespace": "default"}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    ports = [{"port": 80, "targetPort": 8000}]
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec},
        {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"selector": {"app": "web"}, "ports": ports}},
        ingress("/"),
    ]
