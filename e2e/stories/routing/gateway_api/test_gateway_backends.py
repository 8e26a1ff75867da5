"""Backends of routes outside the cluster: Services of type ExternalName, and the settings that refuse their hosts."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pytest

from e2e.cluster.client import Manifest, wait_until
from e2e.cluster.echo import EchoServers
from e2e.definitions.gateway_kinds import CONTROLLER, gateway, http_route, make
from e2e.scene import addresses
from e2e.story import Stage

pytestmark = pytest.mark.usefixtures("gateway_kinds")

CLASS = make("GatewayClass", "apisix", controllerName=CONTROLLER)
EVERY = {"allowedRoutes": {"namespaces": {"from": "All"}}}
LISTENERS = (
    {"name": "http", "port": 80, "protocol": "HTTP", **EVERY},
    {"name": "tcp", "port": 9100, "protocol": "TCP", **EVERY},
)

# Pods never get addresses of this range; each story uses different ones.
OUTSIDE = (f"10.244.1.{number}" for number in itertools.count(10))


@pytest.fixture
def outside(echo_servers: EchoServers) -> Iterator[Callable[[str], str]]:
    """A function that starts a server outside the cluster on port 80 and returns its address."""
    with ExitStack() as stack:

        def serve(name: str) -> str:
            address = next(OUTSIDE)
            echo_servers.serve(name, [address], [80])
            stack.callback(echo_servers.drop, address)
            return address

        yield serve


def external_name(host: str, name: str = "out") -> Manifest:
    spec = {"type": "ExternalName", "externalName": host}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def reasons(item: Manifest | None) -> dict[str, str]:
    parents = ((item or {}).get("status") or {}).get("parents") or []
    return {each["type"]: each["reason"] for parent in parents for each in parent["conditions"]}


def wait_reasons(stage: Stage, **want: str) -> None:
    stage.api.wait("HTTPRoute", "web", lambda item: reasons(item) == want, str(want), namespace=stage.namespace)


def test_a_service_outside_the_cluster_is_served_and_its_host_followed(
    stage: Stage, outside: Callable[[str], str]
) -> None:
    old, new = outside("old"), outside("new")
    stage.start()
    to_out = {"name": "out", "port": 80}
    tcp = make("TCPRoute", "tcp", parentRefs=[{"name": "gw", "sectionName": "tcp"}], rules=[{"backendRefs": [to_out]}])
    stage.apply([CLASS, gateway("gw", *LISTENERS), external_name(old), http_route(stage.host, to_out), tcp])
    assert stage.traffic.until_status(200, stage.host).pod == "old"
    wait_reasons(stage, Accepted="Accepted", ResolvedRefs="ResolvedRefs")
    streams = wait_until(partial(stage.gateway.records, "stream_routes"), bool, "a stream route")
    upstreams = stage.gateway.records("upstreams")
    assert [addresses(upstreams[each["upstream_id"]]) for each in streams.values()] == [[(old, 80)]]
    stage.apply(external_name(new))
    stage.traffic.until(lambda answer: answer.pod == "new", stage.host)


def test_a_host_that_the_settings_refuse_gets_no_requests(stage: Stage, outside: Callable[[str], str]) -> None:
    public = outside("public")
    stage.start(kubernetes={"external_addresses": "refuse-internal"})
    route = http_route(stage.host, {"name": "out", "port": 80})
    stage.apply([CLASS, gateway(), external_name("localhost"), route])
    stage.traffic.until_status(500, stage.host)
    wait_reasons(stage, Accepted="Accepted", ResolvedRefs="RefNotPermitted")
    stage.apply(external_name(public))
    assert stage.traffic.until_status(200, stage.host).pod == "public"
    stage.apply(external_name("169.254.169.254"))
    stage.traffic.until_status(500, stage.host)


def test_the_name_of_a_service_elsewhere_does_not_replace_a_grant(stage: Stage, tenant: str) -> None:
    stage.start()
    stage.serve()
    victim = f"web.{stage.namespace}.svc.cluster.local"
    entry = gateway()
    route = http_route(stage.host, {"name": "out", "port": 80})
    stage.api.apply([CLASS, entry, external_name(victim), route], namespace=tenant)
    stage.traffic.until_status(500, stage.host)
    grant = make(
        "ReferenceGrant",
        "grant",
        **{"from": [{"group": "", "kind": "Service", "namespace": tenant}], "to": [{"group": "", "kind": "Service"}]},
    )
    stage.apply(grant)
    # No resolver knows names of the cluster here: the gateway gets the node and cannot reach it.
    stage.traffic.until(lambda answer: answer.status in (502, 503), stage.host)
