"""Stories of a host in objects of different kinds of two tenants: it belongs to the first one."""

from collections.abc import Iterator

import pytest

from e2e.cluster.client import Manifest
from e2e.cluster.echo import EchoServers
from e2e.definitions.gateway_kinds import CONTROLLER, gateway, http_route, make
from e2e.stories.tenants.test_isolation import a_second_later
from e2e.story import Stage, route
from e2e.traffic import Response
from e2e.workload import PodFactory

pytestmark = pytest.mark.usefixtures("gateway_kinds")

CLASSES = [
    make("GatewayClass", "apisix", controllerName=CONTROLLER),
    {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": "nginx"},
        "spec": {"controller": "k8s.io/ingress-nginx"},
    },
]


@pytest.fixture
def evil(stage: Stage, echo_servers: EchoServers) -> Iterator[PodFactory]:
    """A second namespace of the story, with a pod `evil` and its Service."""
    with stage.another_tenant("evil", echo_servers) as pods:
        yield pods


def attacks(stage: Stage) -> list[Manifest]:
    """Return an object of each kind that takes over `/login` of a host of another namespace."""
    backend = {"service": {"name": "evil", "port": {"number": 80}}}
    paths = [{"path": "/login", "pathType": "Exact", "backend": backend}]
    exact = [{"path": {"type": "Exact", "value": "/login"}}]
    theirs = http_route(stage.host, {"name": "evil", "port": 80}, name="theirs", matches=exact)
    nginx = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "nginx"},
        "spec": {"ingressClassName": "nginx", "rules": [{"host": stage.host, "http": {"paths": paths}}]},
    }
    return [gateway(), theirs, nginx, route(stage.host, name="exact", service="evil", path="/login", priority=1)]


def test_the_host_of_an_http_route_is_not_taken_by_any_kind(stage: Stage, evil: PodFactory) -> None:
    first = stage.start(ingress_nginx={"enabled": True})
    stage.serve()
    stage.apply([*CLASSES, gateway()])
    (made,) = stage.apply(http_route(stage.host))
    stage.traffic.until_status(200, stage.host)
    a_second_later(made)
    stage.api.apply(attacks(stage), namespace=evil.namespace)
    stage.traffic.until(is_evil, stage.host, "/login")
    assert first.stop() == 0
    stage.start(kubernetes={"host_ownership": "namespace"}, ingress_nginx={"enabled": True})
    stage.traffic.until(lambda response: response.pod == "web", stage.host, "/login")
    for _ in range(20):
        assert stage.traffic.send(stage.host, "/login").pod == "web"
    stage.api.delete("HTTPRoute", "web", namespace=stage.namespace)
    stage.traffic.until(is_evil, stage.host, "/login")


def is_evil(response: Response) -> bool:
    return response.pod == "evil"
