"""Pytest fixtures for stories on the local cluster; a test module or conftest names this one in `pytest_plugins`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster.client import KubeClient
from e2e.cluster.echo import EchoServers
from e2e.cluster.local import LocalCluster
from e2e.netns import in_namespace
from e2e.workload import PodFactory


@pytest.fixture(scope="session")
def local_cluster() -> Iterator[LocalCluster]:
    """One cluster for the whole session."""
    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kubeconfig(local_cluster: LocalCluster) -> Path:
    """The cluster's admin kubeconfig; override this one to run the stories on another cluster."""
    return local_cluster.kubeconfig


@pytest.fixture(scope="session")
def api(kubeconfig: Path) -> Iterator[KubeClient]:
    """An API client for the cluster's admin."""
    with KubeClient.from_kubeconfig(kubeconfig) as client:
        yield client


@pytest.fixture(scope="session")
def echo_servers() -> Iterator[EchoServers]:
    """The thread that serves every pod of the session."""
    if not in_namespace():
        pytest.fail("pods need a network of their own: run `python -m e2e.netns -- pytest ...`", pytrace=False)
    with EchoServers() as servers:
        yield servers


@pytest.fixture
def namespace(api: KubeClient) -> Iterator[str]:
    """A namespace of the test's own."""
    with api.namespace() as name:
        yield name


@pytest.fixture
def pods(api: KubeClient, namespace: str, echo_servers: EchoServers) -> Iterator[PodFactory]:
    """Makes pods in the test's namespace and removes them at the end."""
    with PodFactory(api, namespace, echo_servers) as factory:
        yield factory
