"""Fixtures of all stories: an API server with the CRDs, a gateway with a data plane and a controller.

A story that needs a controller or gateway of its own labels its namespace `e2e-controller: own`: the shared controller
ignores such namespaces, so that two controllers never write the status of the same object.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import crds
from e2e.cluster.client import KubeClient
from e2e.controller import Controller, Gateway
from e2e.devgateway.process import STANDALONE, DevGateway
from e2e.gateways import CommandGateway, RemoteGateway
from e2e.traffic import Traffic

pytest_plugins = [
    "e2e.canary",
    "e2e.cluster.fixtures",
    "e2e.story",
    "e2e.scene",
    "e2e.definitions.gateway_kinds",
    "e2e.definitions.extension_kinds",
    "e2e.faults.fixtures",
]

OWN = {"e2e-controller": "own"}
SHARED_SELECTOR = "e2e-controller!=own"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that name another cluster or gateway."""
    group = parser.getgroup("e2e")
    group.addoption("--cluster", choices=["local", "kind"], default="local", help="how the API server is provided")
    group.addoption("--kubeconfig", default="", help="with --cluster=kind: the kubeconfig of the kind cluster")
    group.addoption(
        "--gateway-mode", choices=["apisix", STANDALONE], default="apisix", help="where gateways keep records"
    )
    group.addoption("--gateway-start", default="", help="a command that starts a gateway instead: see e2e/README.md")
    group.addoption("--gateway-stop", default="", help="the command that stops it")
    group.addoption("--admin-url", default="", help="a running gateway's Admin API instead of the development gateway")
    group.addoption("--admin-key", default="", help="the admin key of that gateway")
    group.addoption("--proxy-url", default="", help="its address for HTTP")
    group.addoption("--tls-address", default="", help="its host:port for TLS")


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """The admin kubeconfig of the cluster that the stories run on."""
    if request.config.getoption("--cluster") == "kind":
        return Path(request.config.getoption("--kubeconfig") or Path.home() / ".kube" / "config")
    path: Path = request.getfixturevalue("local_cluster").kubeconfig
    return path


@pytest.fixture(scope="session")
def cluster_api(api: KubeClient) -> KubeClient:
    """The API server with the CRDs of this project installed."""
    api.apply(crds.manifests())
    return api


NewGateway = Callable[..., DevGateway]


@pytest.fixture(scope="session")
def new_gateway(request: pytest.FixtureRequest) -> NewGateway:
    """Return what makes another gateway of the kind that the options name; arguments as for the development gateway."""
    option = request.config.getoption
    standalone = option("--gateway-mode") == STANDALONE
    if start := option("--gateway-start"):
        return lambda **_: CommandGateway(start, option("--gateway-stop"), standalone=standalone)
    return partial(DevGateway, standalone=standalone)


@pytest.fixture(scope="session")
def gateway(request: pytest.FixtureRequest, new_gateway: NewGateway) -> Iterator[DevGateway | RemoteGateway]:
    """The gateway of the shared controller."""
    options = request.config
    if options.getoption("--admin-url"):
        yield RemoteGateway(
            admin_url=options.getoption("--admin-url"),
            admin_key=options.getoption("--admin-key"),
            proxy_url=options.getoption("--proxy-url"),
            tls_address=options.getoption("--tls-address"),
            mode=options.getoption("--gateway-mode"),
        )
        return
    with new_gateway(admin_key=f"canary-{secrets.token_hex(16)}") as started:
        yield started


@pytest.fixture(scope="session")
def traffic(gateway: DevGateway | RemoteGateway) -> Traffic:
    """Requests through the shared gateway."""
    return Traffic(gateway.proxy_url, gateway.tls_address)


@pytest.fixture(scope="session")
def controller(
    cluster_api: KubeClient, kubeconfig: Path, gateway: Gateway, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Controller]:
    """The controller that most stories share."""
    shared = Controller(
        tmp_path_factory.mktemp("controller"),
        kubeconfig=kubeconfig,
        gateways={"default": gateway},
        kubernetes={"namespace_selector": SHARED_SELECTOR},
    )
    with shared:
        yield shared


StartController = Callable[..., Controller]


@pytest.fixture
def start_controller(cluster_api: KubeClient, kubeconfig: Path, tmp_path: Path) -> Iterator[StartController]:
    """A function that starts another controller for this test; all of them are stopped at the end.

    It serves the namespaces that match `selector`, e.g. `e2e-story=restart`; label them with `OWN` as well.
    """
    with ExitStack() as stack:

        def start(
            gateways: Mapping[str, Gateway],
            selector: str,
            *,
            name: str = "own",
            kubernetes: Mapping[str, Any] | None = None,
            wait: bool = True,
            **settings: Any,
        ) -> Controller:
            lease = {"name": f"lease-{selector.replace('=', '-')}"}
            started = Controller(
                tmp_path,
                name=name,
                kubeconfig=kubeconfig,
                gateways=gateways,
                kubernetes={"namespace_selector": selector, "election": lease, **(kubernetes or {})},
                **settings,
            )
            stack.callback(started.stop)
            started.start(wait=wait)
            return started

        yield start
