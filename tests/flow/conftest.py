"""The servers and the program for most flow tests; tests that need other servers start them."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.adminapi import FakeAdminApi
from tests.fakes.kube.apiserver import FakeApiServer
from tests.flow.commandline import Cli
from tests.flow.program import SERVED
from tests.flow.surveying import CRD, DAEMON_SET, DEPLOYMENT, HOOKS, SurveyHarness, plain, route, say


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer(SERVED.values()) as running:
        yield running


@pytest.fixture
async def gateway() -> AsyncIterator[FakeAdminApi]:
    async with FakeAdminApi() as running:
        yield running


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


@pytest.fixture
async def harness(tmp_path: Path, cli: Cli, gateway: FakeAdminApi) -> AsyncIterator[SurveyHarness]:
    """A Service with a pod and a route to it, which is in effect."""
    async with FakeApiServer([*SERVED.values(), CRD, HOOKS, DEPLOYMENT, DAEMON_SET]) as server:
        kubeconfig = server.kubeconfig(tmp_path / "kubeconfig")
        config = {
            "kubernetes": {"kubeconfig": str(kubeconfig), "election": {"namespace": "default"}},
            "clusters": [{"admin_url": gateway.url, "admin_key": gateway.key}],
        }
        made = SurveyHarness(server, gateway, cli, cli.write("config.yaml", json.dumps(config)))
        server.put(plain("Service", "web", spec={"clusterIP": "10.96.0.1", "ports": [{"port": 80, "name": "http"}]}))
        slice_ = {"addressType": "IPv4", "ports": [{"name": "http", "port": 8080}]}
        labels = {"labels": {"kubernetes.io/service-name": "web"}}
        server.put(plain("EndpointSlice", "web-1", meta=labels, **slice_, endpoints=[{"addresses": ["10.0.0.1"]}]))
        server.put(plain("Pod", "web-0", status={"podIP": "10.0.0.1"}))
        server.put(say(server.put(route())))
        made.lead()
        yield made
