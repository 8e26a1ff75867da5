"""Stories of Ingress rules: paths, hosts, backends, and the classes that the controller handles."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from e2e.cluster.client import Manifest, wait_until
from e2e.scene import Scene, addresses, backend, path, rule

OURS = "apisix.apache.org/apisix-ingress-controller"
DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def paths(scene: Scene, *entries: Manifest, host: str = "") -> Manifest:
    """Return a rule of an Ingress."""
    return {"host": host or scene.host, "http": {"paths": list(entries)}}


@contextmanager
def ingress_class(scene: Scene, controller: str = OURS, **annotations: str) -> Iterator[str]:
    """Create a temporary IngressClass, named like the namespace because classes are cluster-scoped."""
    name = scene.namespace
    manifest = {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass"}
    scene.api.apply(
        {**manifest, "metadata": {"name": name, "annotations": annotations}, "spec": {"controller": controller}}
    )
    try:
        yield name
    finally:
        scene.api.delete("IngressClass", name)


def until_withdrawn(scene: Scene, name: str) -> None:
    """Wait until an Ingress has no route any more."""
    wait_until(lambda: scene.ingress_routes(name), lambda found: not found, f"the routes of {name} to be gone")


def test_exact_prefix_and_implementation_specific_paths(scene: Scene) -> None:
    scene.serve("exact", "prefix", "own", "both")
    scene.ingress(
        "web",
        paths(
            scene,
            path("/exact", "exact", kind="Exact"),
            path("/prefix", "prefix"),
            path("/slash/", "prefix"),
            path("/own/*", "own", kind="ImplementationSpecific"),
            path("/both", "both"),
            path("/both", "exact", kind="Exact"),
        ),
    )
    want = {
        "/exact": "exact",
        "/exact/": "",
        "/prefix": "prefix",
        "/prefix/": "prefix",
        "/prefix/a": "prefix",
        "/prefixed": "",
        "/slash": "prefix",
        "/slash/a": "prefix",
        "/slashed": "",
        "/own/a": "own",
        "/own": "",
        "/both": "exact",
        "/both/a": "both",
    }
    scene.wait_ingress("web", routes=6)
    assert {text: scene.send(text).pod for text in want} == want
    assert scene.send("/prefixed").status == 404


def test_the_longest_prefix_wins_in_any_order(scene: Scene) -> None:
    scene.serve("root", "deep", "deeper")
    scene.ingress("web", paths(scene, path("/", "root"), path("/a/b", "deeper"), path("/a", "deep")))
    want = {"/": "root", "/x": "root", "/a": "deep", "/a/x": "deep", "/a/b": "deeper", "/a/b/c": "deeper"}
    scene.wait_ingress("web", routes=3)
    assert {text: scene.send(text).pod for text in want} == want


def test_hosts_are_separate_and_a_wildcard_matches_the_others(scene: Scene) -> None:
    scene.serve("a", "b", "rest")
    scene.ingress(
        "web",
        paths(scene, path("/", "a"), host=f"a.{scene.host}"),
        paths(scene, path("/", "b"), host=f"b.{scene.host}"),
        paths(scene, path("/", "rest"), host=f"*.{scene.host}"),
    )
    for host in ("a", "b"):
        scene.until_pod(host, host=f"{host}.{scene.host}")
    scene.until_pod("rest", host=f"c.{scene.host}")
    assert scene.send().status == 404
    assert {found["host"] for found in scene.ingress_routes("web")} == {f"{sub}.{scene.host}" for sub in "ab*"}


def test_ports_by_name_and_by_number(scene: Scene) -> None:
    pod = scene.pods.create("web", ports={"web": 8080, "admin": 9090})
    scene.pods.service("web", {"app": "web"}, {"http": (80, "web"), "management": (9000, "admin")})
    scene.ingress("web", paths(scene, path("/name", "web", "management"), path("/number", "web", 80)))
    scene.until_pod("web", "/name")
    scene.until_pod("web", "/number")
    assert addresses(scene.record("upstreams", "web_9000")) == [(pod.address, 9090)]
    assert addresses(scene.record("upstreams", "web_80")) == [(pod.address, 8080)]


def test_ingress_and_route_share_the_upstream_of_a_service(scene: Scene) -> None:
    scene.serve("web")
    scene.ingress("web", paths(scene, path("/", "web")))
    scene.route("web", rule("all", {"hosts": [f"route.{scene.host}"], "paths": ["/*"]}))
    scene.until_pod("web")
    scene.until_pod("web", host=f"route.{scene.host}")
    assert scene.names("upstreams") == {"web_80"}
    scene.delete("Ingress", "web")
    scene.until_status(404)
    assert scene.send(host=f"route.{scene.host}").pod == "web"


def test_the_default_backend_receives_requests_that_match_no_rule(scene: Scene) -> None:
    # Without a host, it matches requests of every story, so it exists only briefly.
    scene.serve("web", "rest")
    scene.ingress("web", paths(scene, path("/known", "web")), defaultBackend=backend("rest"))
    scene.until_pod("web", "/known")
    got = scene.until_pod("rest", "/anything", host=f"nobody.{scene.host}")
    assert got.seen["path"] == "/anything"
    default = [found for found in scene.ingress_routes("web") if "host" not in found]
    assert [(found["uris"], found["priority"]) for found in default] == [(["/*"], -1)]
    scene.ingress("web", paths(scene, path("/known", "web")))
    scene.until_status(404, "/anything", host=f"nobody.{scene.host}")


def test_a_rule_without_paths_affects_nothing_else(scene: Scene) -> None:
    scene.serve("web")
    scene.ingress("web", {"host": f"empty.{scene.host}"}, paths(scene, path("/", "web")))
    scene.until_pod("web")
    scene.ingress("web", {"host": f"empty.{scene.host}"}, paths(scene, path("/now", "web")))
    scene.until_pod("web", "/now")
    scene.until_status(404, "/")
    scene.delete("Ingress", "web")
    until_withdrawn(scene, "web")


def test_a_path_that_is_edited_leaves_no_record(scene: Scene) -> None:
    scene.serve("old", "new")
    scene.ingress("web", paths(scene, path("/old", "old")))
    scene.until_pod("old", "/old")
    scene.ingress("web", paths(scene, path("/new", "new")))
    scene.until_pod("new", "/new")
    scene.until_status(404, "/old")
    scene.wait_record("upstreams", "old_80", lambda found: found is None, "to be gone")
    assert [found["uris"] for found in scene.ingress_routes("web")] == [["/new", "/new/*"]]


def test_a_missing_service_is_reported_in_an_event_and_found_later(scene: Scene) -> None:
    scene.ingress("web", paths(scene, path("/", "web")))

    def reported(events: list[Manifest]) -> bool:
        want = f"Service {scene.namespace}/web does not exist"
        return any(event["reason"] == "ServiceNotFound" and want in event["message"] for event in events)

    wait_until(lambda: scene.api.events("web", namespace=scene.namespace), reported, "an Event about the Service")
    assert scene.send().status == 404
    scene.serve("web")
    scene.until_pod("web")


def with_class_in_spec(scene: Scene, name: str | None) -> None:
    scene.ingress("web", paths(scene, path("/", "web")), ingressClassName=name)


def with_class_in_annotation(scene: Scene, name: str | None) -> None:
    with_class_in_spec(scene, None)
    annotations = {"kubernetes.io/ingress.class": name}
    scene.api.patch("Ingress", "web", {"metadata": {"annotations": annotations}}, namespace=scene.namespace)


@pytest.mark.parametrize("put", [with_class_in_spec, with_class_in_annotation])
def test_an_ingress_moved_to_another_class_is_withdrawn_until_it_returns(
    scene: Scene, put: Callable[[Scene, str | None], None]
) -> None:
    scene.serve("web")
    put(scene, "apisix")
    scene.until_pod("web")
    put(scene, "somebody-else")
    scene.until_status(404)
    until_withdrawn(scene, "web")
    scene.wait_record("upstreams", "web_80", lambda found: found is None, "to be gone")
    put(scene, "apisix")
    scene.until_pod("web")


def test_a_class_of_this_controller_is_handled_under_any_name(scene: Scene) -> None:
    scene.serve("web")
    with ingress_class(scene) as name:
        with_class_in_spec(scene, name)
        scene.until_pod("web")
    scene.until_status(404)
    with ingress_class(scene):
        scene.until_pod("web")


def test_a_class_of_another_controller_is_ignored(scene: Scene) -> None:
    scene.serve("web", "known")
    with ingress_class(scene, "example.org/another") as name:
        with_class_in_spec(scene, name)
        # A later object is live, so the first one has been processed.
        scene.ingress("known", paths(scene, path("/", "known"), host=f"known.{scene.host}"))
        scene.until_pod("known", host=f"known.{scene.host}")
        assert scene.send().status == 404
        assert scene.ingress_routes("web") == []


def test_an_ingress_without_class_is_handled_only_with_a_default_class(scene: Scene) -> None:
    scene.serve("web", "known")
    with_class_in_spec(scene, None)
    scene.ingress("known", paths(scene, path("/", "known"), host=f"known.{scene.host}"))
    scene.until_pod("known", host=f"known.{scene.host}")
    assert scene.send().status == 404
    # The API server writes the default class into new Ingresses if one exists: this Ingress is older.
    with ingress_class(scene, **{DEFAULT_CLASS: "true"}):
        scene.until_pod("web")
        item: dict[str, Any] = scene.api.get("Ingress", "web", namespace=scene.namespace)
        assert "ingressClassName" not in item["spec"]
    scene.until_status(404)


def test_the_regular_expression_of_a_path_is_matched_if_enabled(scene: Scene) -> None:
    scene.serve("web", "prefix")
    scene.ingress(
        "web",
        paths(scene, path("/v[0-9]+/.*", "web", kind="ImplementationSpecific"), path("/v", "prefix")),
        annotations={"use-regex": "true"},
    )
    scene.until_pod("web", "/v12/users")
    scene.until_pod("prefix", "/v/users")
    assert scene.send("/vv/users").status == 404
    # It matches anywhere in the path, as in 1.8, and the API server rejects paths that begin with `^`.
    assert scene.send("/old/v12/users").pod == "web"
