"""An API server and a gateway with a route in effect, and the command line, for tests of diagnostics."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from apisix_ingress.diagnostics.collect.cluster_state import api_server
from apisix_ingress.diagnostics.collect.inventory import Inventory, take_inventory
from apisix_ingress.settings import load_settings
from tests.fakes.adminapi import FakeAdminApi
from tests.fakes.kube.apiserver import FakeApiServer, Kind, Manifest
from tests.flow.commandline import Cli
from tests.flow.program import SERVED

CRD = Kind("CustomResourceDefinition", "apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False)
HOOKS = Kind(
    "ValidatingWebhookConfiguration",
    "admissionregistration.k8s.io/v1",
    "validatingwebhookconfigurations",
    namespaced=False,
)
DEPLOYMENT = Kind("Deployment", "apps/v1", "deployments")
DAEMON_SET = Kind("DaemonSet", "apps/v1", "daemonsets")
WELL = {"type": "ResourcesAvailable", "status": "True", "reason": "ResourcesSynced", "message": "Sync Successfully"}


def route(name: str = "web", *, service: str = "web", **spec: Any) -> Manifest:
    """Return an ApisixRoute with one rule."""
    rule = {
        "name": "rule",
        "match": {"hosts": [f"{name}.example.org"], "paths": ["/*"]},
        "backends": [{"serviceName": service, "servicePort": 80}],
        **spec,
    }
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixRoute", "metadata": meta, "spec": {"http": [rule]}}


def plain(kind: str, name: str, **rest: Any) -> Manifest:
    """Return an object of a built-in kind."""
    meta = {"name": name, **({"namespace": "default"} if kind != "IngressClass" else {}), **rest.pop("meta", {})}
    return {
        "apiVersion": (SERVED | {"Deployment": DEPLOYMENT})[kind].api_version,
        "kind": kind,
        "metadata": meta,
        **rest,
    }


def say(item: Manifest, status: str = "True", message: str = "Sync Successfully") -> Manifest:
    """Return an object with a condition for its current generation."""
    condition = {**WELL, "status": status, "message": message, "observedGeneration": item["metadata"]["generation"]}
    return {**item, "status": {"conditions": [condition]}}


@dataclass
class SurveyHarness:
    """An API server, a gateway and the command line."""

    server: FakeApiServer
    gateway: FakeAdminApi
    cli: Cli
    config: str

    async def inventory(self, **kubernetes: Any) -> Inventory:
        """Read the API server."""
        settings = load_settings(self.cli.folder / self.config, {"kubernetes": kubernetes})
        async with api_server(settings) as api:
            return await take_inventory(api, settings)

    async def fill(self) -> None:
        """Write the desired records to the gateway."""
        found = await self.inventory()
        for key, record in found.world.desired.records("default").items():
            self.gateway.records.setdefault(key.kind, {})[key.id] = dict(record.body)

    async def ask(self, command: str, *arguments: str) -> tuple[int, Any]:
        """Run a command; return its exit status and document."""
        return await self.cli.json(command, *arguments, "--config", self.config)

    async def checks(self, *arguments: str) -> dict[str, list[tuple[str, str]]]:
        """Return the findings of doctor: name → level and message."""
        found: dict[str, list[tuple[str, str]]] = {}
        for each in (await self.ask("doctor", *arguments))[1]["checks"]:
            found.setdefault(each["name"], []).append((each["level"], each["message"]))
        return found

    def lead(self, *, seconds: float = 1.0, namespace: str = "default", holder: str = "one") -> None:
        """Create a lease that was renewed some seconds ago."""
        moment = (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat()
        spec = {"holderIdentity": holder, "renewTime": moment, "leaseDurationSeconds": 60}
        self.server.put(plain("Lease", "apisix-ingress-leader", meta={"namespace": namespace}, spec=spec))
