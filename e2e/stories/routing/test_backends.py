"""Stories of Service backends: shares by weight, subsets of pods, and which port and address of a Service are used."""

from collections.abc import Mapping

import pytest

from e2e.cluster.client import Manifest
from e2e.scene import Scene, addresses, rule, shares

MANY = 2000
EVERY_PATH = {"paths": ["/*"]}


def split(scene: Scene, weights: Mapping[str, int]) -> Manifest:
    """Apply a route that splits the host's requests between Services."""
    backends = [{"serviceName": name, "servicePort": 80, "weight": weight} for name, weight in weights.items()]
    return scene.route("web", rule("all", {"hosts": [scene.host], **EVERY_PATH}, backends=backends))


def one(scene: Scene, **backend: object) -> Manifest:
    """Apply a route to one backend."""
    backends = [{"serviceName": "web", "servicePort": 80, **backend}]
    return scene.route("web", rule("all", {"hosts": [scene.host], **EVERY_PATH}, backends=backends))


def subsets(scene: Scene, **labels: Mapping[str, str]) -> None:
    """Apply the ApisixUpstream `web` with subsets."""
    scene.apply(
        "ApisixUpstream", "web", spec={"subsets": [{"name": name, "labels": want} for name, want in labels.items()]}
    )


def test_weights_90_to_10_over_two_thousand_requests(scene: Scene) -> None:
    scene.serve("stable", "canary")
    split(scene, {"stable": 90, "canary": 10})
    scene.wait_live("web")
    got = scene.traffic.counts(MANY, scene.host)
    assert got["stable"] + got["canary"] == MANY, got
    assert got["canary"] / MANY == pytest.approx(0.10, abs=0.03)


def test_three_backends_get_their_shares_and_an_edit_shifts_them(scene: Scene) -> None:
    scene.serve("one", "two", "three")
    split(scene, {"one": 50, "two": 30, "three": 20})
    scene.wait_live("web")
    got = scene.traffic.counts(500, scene.host)
    assert {name: got[name] / 500 for name in got} == pytest.approx({"one": 0.5, "two": 0.3, "three": 0.2}, abs=0.03)
    split(scene, {"one": 10, "two": 30, "three": 60})
    scene.wait_live("web")
    got = scene.traffic.counts(500, scene.host)
    assert {name: got[name] / 500 for name in got} == pytest.approx({"one": 0.1, "two": 0.3, "three": 0.6}, abs=0.03)


@pytest.mark.parametrize("idle", ["first", "second"])
def test_weight_0_gets_no_request(scene: Scene, idle: str) -> None:
    scene.serve("first", "second")
    split(scene, {"first": 1, "second": 1} | {idle: 0})
    scene.wait_live("web")
    busy = {"first": "second", "second": "first"}[idle]
    assert scene.traffic.counts(200, scene.host) == {busy: 200}


def test_weights_default_to_equal_shares(scene: Scene) -> None:
    scene.serve("a", "b")
    backends = [{"serviceName": name, "servicePort": 80} for name in ("a", "b")]
    scene.route("web", rule("all", {"hosts": [scene.host], **EVERY_PATH}, backends=backends))
    scene.wait_live("web")
    assert scene.traffic.counts(100, scene.host) == {"a": 50, "b": 50}


def test_a_backend_dropped_from_a_split_leaves_no_record(scene: Scene) -> None:
    scene.serve("a", "b")
    split(scene, {"a": 1, "b": 1})
    scene.wait_live("web")
    assert scene.names("upstreams") == {"a_80", "b_80"}
    split(scene, {"a": 1})
    scene.wait_record("upstreams", "b_80", lambda found: found is None, "to be gone")
    assert "plugins" not in (scene.record("routes", "web_all") or {})
    assert scene.traffic.counts(20, scene.host) == {"a": 20}


def test_an_upstream_stays_until_its_last_route_is_deleted(scene: Scene) -> None:
    scene.serve("web")
    for name in ("one", "two"):
        scene.route(name, rule("all", {"hosts": [f"{name}.{scene.host}"], **EVERY_PATH}))
        scene.wait_live(name)
    assert scene.names("upstreams") == {"web_80"}
    scene.delete("ApisixRoute", "one")
    scene.until_status(404, host=f"one.{scene.host}")
    assert scene.send(host=f"two.{scene.host}").pod == "web"
    scene.delete("ApisixRoute", "two")
    scene.wait_record("upstreams", "web_80", lambda found: found is None, "to be gone")


def test_a_subset_contains_only_pods_with_its_labels_and_follows_them(scene: Scene) -> None:
    pods = {name: scene.pods.create(name, labels={"app": "web", "version": name}) for name in ("v1", "v2")}
    scene.pods.service("web", {"app": "web"})
    subsets(scene, old={"version": "v1"}, new={"version": "v2"})
    one(scene, subset="new")
    scene.until_pod("v2")
    assert scene.traffic.counts(20, scene.host) == {"v2": 20}
    assert addresses(scene.record("upstreams", "web_new_80")) == [(pods["v2"].address, 80)]

    scene.pods.relabel(pods["v1"], {"version": "v2"})
    scene.until_pod("v1")
    scene.pods.relabel(pods["v2"], {"version": "v1"})
    want = [(pods["v1"].address, 80)]
    scene.wait_nodes("web_new_80", want)
    assert scene.traffic.counts(20, scene.host) == {"v1": 20}


def test_two_subsets_of_one_service_share_requests_by_weight(scene: Scene) -> None:
    for name in ("v1", "v2"):
        scene.pods.create(name, labels={"app": "web", "version": name})
    scene.pods.service("web", {"app": "web"})
    subsets(scene, old={"version": "v1"}, new={"version": "v2"})
    backends = [
        {"serviceName": "web", "servicePort": 80, "subset": name, "weight": weight}
        for name, weight in (("old", 3), ("new", 1))
    ]
    scene.route("web", rule("all", {"hosts": [scene.host], **EVERY_PATH}, backends=backends))
    scene.wait_live("web")
    assert scene.traffic.counts(100, scene.host) == shares(v1=75, v2=25)


def test_an_edited_subset_selects_other_pods(scene: Scene) -> None:
    for name in ("v1", "v2"):
        scene.pods.create(name, labels={"app": "web", "version": name})
    scene.pods.service("web", {"app": "web"})
    subsets(scene, chosen={"version": "v1"})
    one(scene, subset="chosen")
    scene.until_pod("v1")
    subsets(scene, chosen={"version": "v2"})
    scene.until_pod("v2")
    assert scene.traffic.counts(20, scene.host) == {"v2": 20}


def test_a_subset_without_pods_and_an_unknown_one_get_no_request(scene: Scene) -> None:
    scene.serve("web")
    subsets(scene, nobody={"version": "v9"})
    one(scene, subset="nobody")
    scene.wait_synced("ApisixRoute", "web")
    assert scene.send().status == 503
    one(scene, subset="somebody")
    scene.wait_aborted("ApisixRoute", "web", "has no subset somebody", f"ApisixUpstream {scene.namespace}/web")
    assert scene.send().status == 503
    subsets(scene, somebody={"app": "web"})
    scene.until_pod("web")
    scene.wait_synced("ApisixRoute", "web")


def test_ports_by_name_reach_the_target_ports_that_each_pod_gives_the_name(scene: Scene) -> None:
    old = scene.pods.create("old", labels={"app": "web"}, ports={"web": 8080, "admin": 9090})
    new = scene.pods.create("new", labels={"app": "web"}, ports={"web": 8081, "admin": 9091})
    scene.pods.service("web", {"app": "web"}, {"http": (80, "web"), "management": (9000, "admin")})
    scene.route(
        "web",
        rule("name", {"hosts": [scene.host], "paths": ["/name"]}, port="http"),
        rule("number", {"hosts": [scene.host], "paths": ["/number"]}, port=9000),
    )
    scene.wait_live("web")
    want = {
        "web_80": sorted([(old.address, 8080), (new.address, 8081)]),
        "web_9000": sorted([(old.address, 9090), (new.address, 9091)]),
    }
    for name, nodes in want.items():
        scene.wait_nodes(name, nodes)
    for path in ("/name", "/number"):
        assert scene.traffic.counts(20, scene.host, path) == shares(old=10, new=10)
    assert scene.names("upstreams") == {"web_80", "web_9000"}


def test_a_port_that_the_service_lacks_is_reported_and_found_when_it_is_added(scene: Scene) -> None:
    scene.serve("web", ports={"http": 80, "extra": 8080})
    one(scene, servicePort="extra")
    scene.wait_aborted("ApisixRoute", "web", "has no port extra")
    assert scene.send().status == 404
    scene.pods.service("web", {"app": "web"}, {"http": (80, "http"), "extra": (81, "extra")})
    scene.until_pod("web")
    scene.wait_synced("ApisixRoute", "web")


def test_a_headless_service_is_served_by_its_pods(scene: Scene) -> None:
    made = [scene.pods.create(name, labels={"app": "web"}, ports={"http": 8080}) for name in ("a", "b")]
    scene.pods.service("web", {"app": "web"}, {"http": (80, "http")}, clusterIP="None")
    one(scene)
    scene.wait_live("web")
    want = sorted((pod.address, 8080) for pod in made)
    scene.wait_nodes("web_80", want)
    assert scene.traffic.counts(20, scene.host) == shares(a=10, b=10)


@pytest.mark.parametrize("families", [["IPv4", "IPv6"], ["IPv6", "IPv4"]])
def test_a_dual_stack_service_has_each_pod_once_in_its_first_family(scene: Scene, families: list[str]) -> None:
    made = [scene.pods.create(name, labels={"app": "web"}, dual_stack=True) for name in ("a", "b")]
    scene.pods.service("web", {"app": "web"}, ipFamilyPolicy="RequireDualStack", ipFamilies=families)
    one(scene)
    scene.wait_live("web")
    shown = [pod.address if families[0] == "IPv4" else f"[{pod.address_v6}]" for pod in made]
    want = sorted((address, 80) for address in shown)
    scene.wait_nodes("web_80", want)
    assert scene.traffic.counts(20, scene.host) == shares(a=10, b=10)


def test_granularity_service_uses_the_cluster_address_while_another_route_uses_pods(scene: Scene) -> None:
    # Cluster addresses are not routed here: only the record can be checked.
    (pod,) = scene.serve("web", ports={"http": 8080})
    service = scene.api.get("Service", "web", namespace=scene.namespace)
    one(scene, resolveGranularity="service")
    scene.route("pods", rule("all", {"hosts": [f"pods.{scene.host}"], **EVERY_PATH}))
    scene.wait_live("web")
    scene.until_pod("web", host=f"pods.{scene.host}")
    assert scene.names("upstreams") == {"web_80", "web_80_service"}
    assert addresses(scene.record("upstreams", "web_80_service")) == [(service["spec"]["clusterIP"], 80)]
    assert addresses(scene.record("upstreams", "web_80")) == [(pod.address, 8080)]


def test_a_service_port_that_is_renumbered_moves_with_its_route(scene: Scene) -> None:
    scene.pods.create("web", ports={"http": 8080})
    scene.pods.service("web", {"app": "web"}, {"http": (9080, "http")})
    one(scene, servicePort=9080)
    scene.until_pod("web")
    scene.pods.service("web", {"app": "web"}, {"http": (80, "http")})
    one(scene, servicePort=80)
    scene.wait_record("upstreams", "web_9080", lambda found: found is None, "to be gone")
    scene.until_pod("web")
    assert scene.names("upstreams") == {"web_80"}
    assert scene.names("routes") == {"web_all"}


def test_a_target_port_that_changes_is_followed_without_a_change_of_the_route(scene: Scene) -> None:
    (pod,) = scene.serve("web", ports={"http": 8080, "next": 8081})
    one(scene)
    scene.until_pod("web")
    scene.pods.service("web", {"app": "web"}, {"http": (80, "next")})
    want = [(pod.address, 8081)]
    scene.wait_nodes("web_80", want)
    assert scene.send().pod == "web"
