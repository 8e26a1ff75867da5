"""Stories of ApisixUpstream: settings for the upstreams of a Service, and nodes outside the cluster."""

import itertools
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from trustme import CA

from e2e.cluster.client import Manifest
from e2e.cluster.echo import EchoServers
from e2e.scene import Scene, addresses, rule
from e2e.traffic import Response

# Pods never get addresses of this range; each story uses different ones.
OUTSIDE = (f"10.244.0.{number}" for number in itertools.count(10))

Outside = Callable[[str], str]


@pytest.fixture
def outside(echo_servers: EchoServers) -> Iterator[Outside]:
    """A function that starts a server outside the cluster and returns its address; it listens on 80 and 8080."""
    with ExitStack() as stack:

        def serve(name: str) -> str:
            address = next(OUTSIDE)
            echo_servers.serve(name, [address], [80, 8080])
            stack.callback(echo_servers.drop, address)
            return address

        yield serve


def upstream(scene: Scene, name: str = "web", **spec: Any) -> Manifest:
    return scene.apply("ApisixUpstream", name, spec=spec)


def external(scene: Scene, *nodes: Manifest, name: str = "outside", **spec: Any) -> Manifest:
    return upstream(scene, name, externalNodes=list(nodes), **spec)


def domain(address: str, **fields: Any) -> Manifest:
    return {"type": "Domain", "name": address, **fields}


def to_service(scene: Scene, **fields: Any) -> None:
    scene.route("web", rule("all", {"hosts": [scene.host], "paths": ["/*"]}, **fields))


def to_outside(scene: Scene, *upstreams: Manifest, **fields: Any) -> None:
    match = {"hosts": [scene.host], "paths": ["/*"]}
    names = list(upstreams) or [{"name": "outside"}]
    scene.route("web", {"name": "all", "match": match, "upstreams": names, **fields})


def client_secret(scene: Scene, authority: CA) -> None:
    """Apply the Secret `client` with a new certificate of an authority."""
    leaf = authority.issue_cert("gateway@example.org")
    chain = b"".join(blob.bytes() for blob in leaf.cert_chain_pems).decode()
    scene.secret("client", **{"tls.crt": chain, "tls.key": leaf.private_key_pem.bytes().decode()})


def host_seen(want: str, response: Response) -> bool:
    """Return whether the node received this host."""
    return response.received("host") == want


def external_name(scene: Scene, name: str, target: str) -> None:
    scene.apply("Service", name, spec={"type": "ExternalName", "externalName": target})


def test_a_node_outside_the_cluster_is_served(scene: Scene, outside: Outside) -> None:
    address = outside("legacy")
    external(scene, domain(address, port=8080))
    to_outside(scene)
    assert scene.until_pod("legacy", "/x").seen["path"] == "/x"
    scene.wait_synced("ApisixRoute", "web")
    scene.wait_synced("ApisixUpstream", "outside")
    assert addresses(scene.record("upstreams", "outside")) == [(address, 8080)]


def test_nodes_outside_share_by_weight_and_default_to_port_80(scene: Scene, outside: Outside) -> None:
    heavy, light, idle = (outside(name) for name in ("heavy", "light", "idle"))
    external(scene, domain(heavy, weight=75), domain(light, weight=25), domain(idle, weight=0))
    to_outside(scene)
    scene.wait_live("web")
    assert scene.traffic.counts(100, scene.host) == {"heavy": 75, "light": 25}
    found = scene.record("upstreams", "outside") or {}
    assert {node["host"]: (node["port"], node["weight"]) for node in found["nodes"]} == {
        heavy: (80, 75),
        light: (80, 25),
        idle: (80, 0),
    }


def test_a_change_of_nodes_outside_is_followed(scene: Scene, outside: Outside) -> None:
    old, new = outside("old"), outside("new")
    external(scene, domain(old))
    to_outside(scene)
    scene.until_pod("old")
    external(scene, domain(new))
    scene.until_pod("new")
    assert addresses(scene.record("upstreams", "outside")) == [(new, 80)]


def test_a_route_exists_as_long_as_its_upstream(scene: Scene, outside: Outside) -> None:
    address = outside("late")
    to_outside(scene)
    scene.wait_aborted("ApisixRoute", "web", f"ApisixUpstream {scene.namespace}/outside does not exist")
    assert scene.send().status == 404
    external(scene, domain(address))
    scene.until_pod("late")
    scene.wait_synced("ApisixRoute", "web")
    scene.delete("ApisixRoute", "web")
    scene.wait_record("upstreams", "outside", lambda found: found is None, "to be gone")
    assert scene.send().status == 404


def test_an_upstream_without_a_route_has_no_record(scene: Scene) -> None:
    external(scene, domain("unused.example.org"))
    scene.wait_synced("ApisixUpstream", "outside")
    assert scene.names("upstreams") == set()


def test_pods_and_nodes_outside_share_requests(scene: Scene, outside: Outside) -> None:
    address = outside("legacy")
    scene.serve("web")
    external(scene, domain(address))
    backends = [{"serviceName": "web", "servicePort": 80, "weight": 9}]
    to_outside(scene, {"name": "outside", "weight": 1}, backends=backends)
    scene.wait_live("web")
    assert scene.traffic.counts(100, scene.host) == {"web": 90, "legacy": 10}


def test_a_service_of_type_external_name_is_a_node_and_is_followed(scene: Scene, outside: Outside) -> None:
    old, new = outside("old"), outside("new")
    external_name(scene, "partner", old)
    external(scene, {"type": "Service", "name": "partner", "port": 8080})
    to_outside(scene)
    scene.until_pod("old")
    assert addresses(scene.record("upstreams", "outside")) == [(old, 8080)]
    external_name(scene, "partner", new)
    scene.until_pod("new")


def test_a_missing_external_name_service_is_reported_and_found_later(scene: Scene, outside: Outside) -> None:
    address = outside("partner")
    external(scene, {"type": "Service", "name": "partner"})
    to_outside(scene)
    for kind, name in (("ApisixUpstream", "outside"), ("ApisixRoute", "web")):
        scene.wait_aborted(kind, name, f"Service {scene.namespace}/partner does not exist")
    external_name(scene, "partner", address)
    scene.until_pod("partner")
    scene.wait_synced("ApisixUpstream", "outside")
    scene.wait_synced("ApisixRoute", "web")


def test_a_service_of_type_external_name_can_be_a_backend(scene: Scene, outside: Outside) -> None:
    address = outside("partner")
    external_name(scene, "web", address)
    to_service(scene, backends=[{"serviceName": "web", "servicePort": 8080}])
    scene.until_pod("partner")
    assert addresses(scene.record("upstreams", "web_8080")) == [(address, 8080)]


def test_the_host_header_for_nodes_outside(scene: Scene, outside: Outside) -> None:
    address = outside("legacy")
    to_outside(scene)
    for settings, want in (
        ({"passHost": "pass"}, scene.host),
        ({"passHost": "node"}, address),
        ({"passHost": "rewrite", "upstreamHost": "inside.example.org"}, "inside.example.org"),
    ):
        external(scene, domain(address), **settings)
        scene.traffic.until(partial(host_seen, want), scene.host)


def test_settings_of_a_service_reach_its_upstream_until_the_object_is_deleted(scene: Scene) -> None:
    scene.serve("web")
    to_service(scene)
    scene.until_pod("web")
    plain = scene.record("upstreams", "web_80") or {}
    upstream(scene, retries=0, timeout={"read": "1s"}, loadbalancer={"type": "least_conn"})
    scene.wait_synced("ApisixUpstream", "web")
    found = scene.wait_record("upstreams", "web_80", lambda each: "retries" in (each or {}), "to have settings")
    assert (found["retries"], found["type"]) == (0, "least_conn")
    assert found["timeout"] == {"connect": 60, "send": 60, "read": 1}
    assert scene.send("/delay/1.5").status == 504
    assert scene.send().pod == "web"
    scene.delete("ApisixUpstream", "web")
    found = scene.wait_record("upstreams", "web_80", lambda each: "retries" not in (each or {}), "to be plain")
    assert {key: value for key, value in found.items() if key != "update_time"} == {
        key: value for key, value in plain.items() if key != "update_time"
    }
    assert scene.send("/delay/1.5").status == 200


@pytest.mark.parametrize(("retries", "want"), [(1, {200}), (0, {200, 502})])
def test_retries_decide_whether_a_dead_pod_is_noticed(scene: Scene, retries: int, want: set[int]) -> None:
    for name in ("dead", "live"):
        scene.pods.create(name, labels={"app": "web"})
    scene.pods.service("web", {"app": "web"})
    upstream(scene, retries=retries)
    to_service(scene)
    scene.wait_live("web")
    scene.wait_record("upstreams", "web_80", lambda found: len(addresses(found)) == 2, "to have both pods")
    scene.pods.stop_serving(scene.pods.pods[0])
    assert {scene.send().status for _ in range(20)} == want


def test_consistent_hashing_on_a_header_sticks_to_a_pod(scene: Scene) -> None:
    for name in "abc":
        scene.pods.create(name, labels={"app": "web"})
    scene.pods.service("web", {"app": "web"})
    upstream(scene, loadbalancer={"type": "chash", "hashOn": "header", "key": "X-User"})
    to_service(scene)
    scene.wait_live("web")
    scene.wait_record("upstreams", "web_80", lambda found: len(addresses(found)) == 3, "to have three pods")
    users = [f"user-{number}" for number in range(30)]
    pods = {user: scene.traffic.counts(3, scene.host, headers={"X-User": user}) for user in users}
    assert {len(found) for found in pods.values()} == {1}, "every user stays with one pod"
    assert {pod for found in pods.values() for pod in found} == {"a", "b", "c"}
    got = scene.record("upstreams", "web_80") or {}
    assert (got["type"], got["hash_on"], got["key"]) == ("chash", "header", "X-User")


def test_health_checks_are_in_the_record(scene: Scene) -> None:
    scene.serve("web")
    active = {
        "type": "http",
        "timeout": "500ms",
        "concurrency": 2,
        "host": "probe.example.org",
        "port": 8080,
        "httpPath": "/healthz",
        "requestHeaders": ["User-Agent: probe"],
        "strictTLS": False,
        "healthy": {"interval": "2s", "httpCodes": [200, 204], "successes": 2},
        "unhealthy": {"interval": "1s", "httpCodes": [500], "httpFailures": 3, "tcpFailures": 2, "timeouts": 4},
    }
    passive = {"type": "http", "healthy": {"httpCodes": [200]}, "unhealthy": {"httpCodes": [503], "httpFailures": 5}}
    upstream(scene, healthCheck={"active": active, "passive": passive})
    to_service(scene)
    scene.until_pod("web")
    scene.wait_synced("ApisixUpstream", "web")
    assert (scene.record("upstreams", "web_80") or {})["checks"] == {
        "active": {
            "type": "http",
            "timeout": 0.5,
            "concurrency": 2,
            "host": "probe.example.org",
            "port": 8080,
            "http_path": "/healthz",
            "req_headers": ["User-Agent: probe"],
            "https_verify_certificate": False,
            "healthy": {"interval": 2, "http_statuses": [200, 204], "successes": 2},
            "unhealthy": {
                "interval": 1,
                "http_statuses": [500],
                "http_failures": 3,
                "tcp_failures": 2,
                "timeouts": 4,
            },
        },
        "passive": {
            "type": "http",
            "healthy": {"http_statuses": [200]},
            "unhealthy": {"http_statuses": [503], "http_failures": 5},
        },
    }


def test_settings_of_a_port_override_the_common_ones(scene: Scene) -> None:
    scene.pods.create("web", ports={"http": 80, "slow": 8080})
    scene.pods.service("web", {"app": "web"}, {"http": (80, "http"), "slow": (81, "slow")})
    upstream(
        scene,
        retries=2,
        timeout={"read": "30s"},
        portLevelSettings=[{"port": 81, "timeout": {"read": "1s"}, "retries": 0}, {"port": 99, "retries": 9}],
    )
    fast, slow = ({"hosts": [f"{name}.{scene.host}"], "paths": ["/*"]} for name in ("fast", "slow"))
    scene.route("web", rule("fast", fast), rule("slow", slow, port=81))
    scene.wait_live("web")
    scene.wait_synced("ApisixUpstream", "web")
    got = {name: scene.record("upstreams", name) or {} for name in ("web_80", "web_81")}
    assert {name: (each["retries"], each["timeout"]["read"]) for name, each in got.items()} == {
        "web_80": (2, 30),
        "web_81": (0, 1),
    }
    got_status = {name: scene.send("/delay/1.2", host=f"{name}.{scene.host}").status for name in ("fast", "slow")}
    assert got_status == {"fast": 200, "slow": 504}


def test_settings_for_a_missing_service_are_reported(scene: Scene) -> None:
    upstream(scene, retries=1)
    scene.wait_aborted("ApisixUpstream", "web", f"Service {scene.namespace}/web does not exist")
    scene.serve("web")
    scene.wait_synced("ApisixUpstream", "web")


def test_a_client_certificate_that_is_missing_keeps_the_route_as_it_was(scene: Scene) -> None:
    scene.serve("web")
    to_service(scene)
    scene.until_pod("web")
    upstream(scene, tlsSecret={"name": "client", "namespace": scene.namespace}, scheme="https")
    for kind in ("ApisixUpstream", "ApisixRoute"):
        scene.wait_aborted(kind, "web", f"Secret {scene.namespace}/client does not exist")
    assert scene.send().pod == "web"
    upstream(scene, retries=1)
    scene.wait_synced("ApisixRoute", "web")
    scene.wait_record("upstreams", "web_80", lambda found: (found or {}).get("retries") == 1, "to have a retry")


def test_a_client_certificate_is_sent_to_the_pods_and_renewed(scene: Scene) -> None:
    authority = CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("web.example.org").configure_cert(tls)
    authority.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    scene.pods.create("web", ports={"https": 8443}, tls=tls)
    scene.pods.service("web", {"app": "web"}, {"http": (80, "https")})
    client_secret(scene, CA())
    upstream(scene, scheme="https", tlsSecret={"name": "client", "namespace": scene.namespace})
    to_service(scene)
    scene.wait_live("web")
    assert scene.send().status == 502
    client_secret(scene, authority)
    assert scene.until_pod("web").seen["scheme"] == "https"
    scene.wait_synced("ApisixUpstream", "web")
