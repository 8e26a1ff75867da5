"""Canary releases by Argo Rollouts and Flagger: the stories write ApisixRoutes as these controllers do.

The bodies are those of argo-rollouts v1.10 (`rollout/trafficrouting/apisix`), which edits the object that it read, and
of flagger v1.41 (`pkg/router/apisix.go`), whose Go types encode absent fields as null or zero.
"""

import copy

from e2e.cluster.client import Manifest
from e2e.scene import Scene, plugin, rule, shares
from e2e.traffic import RequestLoop

REQUESTS = 100
FLAGGER_PRIORITY = 10000
HEADER = {"X-Canary": "yes"}


def shift(scene: Scene, name: str, *weights: int) -> None:
    """Replace the weights of the only rule, and wait until the gateway has them; meanwhile, no request fails."""
    route = scene.api.get("ApisixRoute", name, namespace=scene.namespace)
    for backend, weight in zip(route["spec"]["http"][0]["backends"], weights, strict=True):
        backend["weight"] = weight
    with RequestLoop(scene.traffic, scene.host) as loop:
        scene.api.request(
            "PUT", f"/apis/apisix.apache.org/v2/namespaces/{scene.namespace}/apisixroutes/{name}", body=route
        )
        scene.wait_live(name)
    assert loop.failures == []


def backend(service: str, weight: int) -> Manifest:
    return {"serviceName": service, "servicePort": 80, "weight": weight}


def test_argo_rollouts_shifts_requests_between_stable_and_canary(scene: Scene) -> None:
    scene.serve("stable", "canary")
    match = {"hosts": [scene.host], "paths": ["/*"]}
    scene.route("web", rule("main", match, backends=[backend("stable", 100), backend("canary", 0)]))
    scene.wait_live("web")
    assert scene.traffic.counts(REQUESTS, scene.host) == shares(stable=100)
    shift(scene, "web", 80, 20)
    assert scene.traffic.counts(REQUESTS, scene.host) == shares(stable=80, canary=20)
    shift(scene, "web", 0, 100)
    assert scene.traffic.counts(REQUESTS, scene.host) == shares(canary=100)
    shift(scene, "web", 100, 0)
    assert scene.traffic.counts(REQUESTS, scene.host) == shares(stable=100)


def test_argo_rollouts_sends_requests_with_a_header_to_the_canary(scene: Scene) -> None:
    scene.serve("stable", "canary")
    match = {"hosts": [scene.host], "paths": ["/*"]}
    scene.route("web", rule("main", match, backends=[backend("stable", 100), backend("canary", 0)]))
    scene.api.create(managed_route(scene.wait_live("web")))
    scene.wait_synced("ApisixRoute", "set-header")
    assert scene.traffic.counts(10, scene.host, headers=HEADER) == {"canary": 10}
    assert scene.traffic.counts(10, scene.host) == {"stable": 10}
    scene.delete("ApisixRoute", "set-header")
    scene.traffic.until(lambda answer: answer.pod == "stable", scene.host, headers=HEADER)


def managed_route(route: Manifest) -> Manifest:
    """Return the copy for requests with a header that `SetHeaderRoute` creates, with the status of the original."""
    made = copy.deepcopy(route)
    made["metadata"]["name"] = "set-header"
    for field in ("resourceVersion", "generation", "uid", "creationTimestamp"):
        del made["metadata"][field]
    (only,) = made["spec"]["http"]
    subject = {"scope": "Header", "name": "X-Canary"}
    only["match"]["exprs"] = [{"subject": subject, "op": "Equal", "value": "yes"}]
    return made | {"spec": {"http": [only | {"priority": 1, "backends": [backend("canary", 100)]}]}}


def test_flagger_shifts_requests_with_a_copy_of_the_route(scene: Scene) -> None:
    scene.serve("web", "web-primary", "web-canary")
    match = {
        "hosts": [scene.host],
        "paths": ["/*"],
        "exprs": [
            {"subject": {"scope": "Path"}, "op": "RegexMatch", "value": "^/"},
            {"subject": {"scope": "Header", "name": "X-Team"}, "op": "NotIn", "set": ["a", "b"]},
        ],
    }
    timeout = {"connect": "5s"}
    scene.route("web", rule("main", match, timeout=timeout, plugins=[plugin("request-id")]))
    original = scene.wait_live("web")
    scene.api.create(copy_by_flagger(original), namespace=scene.namespace)
    scene.wait_live("web-web-canary")
    assert scene.traffic.counts(REQUESTS, scene.host) == shares(**{"web-primary": 100})
    shift(scene, "web-web-canary", 90, 10)
    assert scene.traffic.counts(REQUESTS, scene.host) == shares(**{"web-primary": 90, "web-canary": 10})
    shift(scene, "web-web-canary", 100, 0)
    assert scene.traffic.counts(REQUESTS, scene.host) == shares(**{"web-primary": 100})
    scene.delete("ApisixRoute", "web-web-canary")  # Kubernetes does so when the Canary is deleted
    scene.until_pod("web")


def copy_by_flagger(route: Manifest) -> Manifest:
    """Return the route for the canary that `Reconcile` creates, as its Go types encode it."""
    (only,) = copy.deepcopy(route["spec"]["http"])
    match = only["match"]
    match["exprs"] = [
        {
            "subject": {"name": "", **each["subject"]},
            "op": each["op"],
            "set": each.get("set"),
            "value": each.get("value"),
        }
        for each in match["exprs"]
    ]
    backends = [backend("web-primary", 100), backend("web-canary", 0)]
    http = {
        "name": only["name"],
        "priority": FLAGGER_PRIORITY,
        "timeout": {"connect": "5s", "send": "0s", "read": "0s"},
        "match": match,
        "backends": backends,
        "websocket": False,
        "plugins": [{"name": each["name"], "enable": each["enable"], "config": None} for each in only["plugins"]],
    }
    meta = {"name": "web-web-canary", "creationTimestamp": None}
    return {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixRoute",
        "metadata": meta,
        "spec": {"http": [http]},
        "status": {},
    }
