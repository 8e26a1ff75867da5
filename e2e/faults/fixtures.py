"""Fixtures of fault stories: a proxy in front of the gateway, and the setup of a module with API faults.

A module can override the parts of the setup.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from e2e.cluster.client import KubeClient
from e2e.cluster.echo import EchoServers
from e2e.faults.proxies.admin_proxy import AdminProxy
from e2e.faults.stand import BASE, ApiStand, stand
from e2e.story import Stage


@pytest.fixture
def proxy(stage: Stage, tmp_path: Path) -> Iterator[AdminProxy]:
    """A proxy in front of the story's gateway; the controllers are stopped before it."""
    with AdminProxy(stage.gateway.admin_url, stage.gateway.admin_key, tmp_path) as started:
        yield started
        for controller in stage.controllers:
            controller.stop()


@pytest.fixture(scope="module")
def fault_server(cluster_api: KubeClient, kubeconfig: Path) -> tuple[KubeClient, Path]:
    """The API server behind the proxy, and its kubeconfig: the one of all stories."""
    return cluster_api, kubeconfig


@pytest.fixture(scope="module")
def fault_routes() -> Sequence[str]:
    """The names of the initial routes."""
    return BASE


@pytest.fixture(scope="module")
def made(
    fault_server: tuple[KubeClient, Path],
    fault_routes: Sequence[str],
    echo_servers: EchoServers,
    canary_search: object,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ApiStand]:
    """The setup that the stories of a module share."""
    with stand(*fault_server, echo_servers, tmp_path_factory.mktemp("faults"), fault_routes) as found:
        yield found
