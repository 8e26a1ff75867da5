"""Stories about changes: objects, Services, Pods and namespaces are created, deleted and re-created under traffic."""

import time
from functools import partial
from typing import Any

import pytest

from e2e.cluster.client import KubeClient, Manifest, wait_until
from e2e.controller import Controller
from e2e.story import Stage, condition, route, says
from e2e.traffic import RequestLoop, Traffic
from e2e.workload import STOP_TIMEOUT, Deployment, PodFactory

pytestmark = pytest.mark.usefixtures("controller")

NO_RETRIES: Manifest = {
    "apiVersion": "apisix.apache.org/v2",
    "kind": "ApisixUpstream",
    "metadata": {"name": "web"},
    "spec": {"retries": 0},
}
"""A gateway that tries the next node after a refused connection would hide a stale one."""


@pytest.fixture
def host(namespace: str) -> str:
    return f"{namespace}.example.org"


def wait_route(api: KubeClient, namespace: str, status: str, *words: str) -> None:
    what = f"the condition {status} {words}"
    api.wait("ApisixRoute", "web", says(status, *words), what, namespace=namespace)


def nodes(stage: Stage) -> list[set[str]]:
    """Return the addresses in each upstream of the gateway."""
    return [{node["host"] for node in each["nodes"] or []} for each in stage.gateway.records("upstreams").values()]


def is_without(address: str, upstreams: list[set[str]]) -> bool:
    return not any(address in each for each in upstreams)


def test_a_rolling_restart_fails_no_request_and_leaves_no_stale_node(stage: Stage) -> None:
    stage.start()
    old = [stage.pods.create(f"old-{number}", labels={"app": "web"}) for number in range(3)]
    stage.pods.service("web", {"app": "web"})
    stage.apply([NO_RETRIES, route(stage.host)])
    wait_until(lambda: nodes(stage), lambda got: got == [{pod.address for pod in old}], "every pod")
    stage.traffic.until_status(200, stage.host)
    left: dict[str, float] = {}
    with RequestLoop(stage.traffic, stage.host) as loop:
        wait_until(lambda: {answer.pod for _, answer in loop.answers}, lambda got: len(got) == 3, "every pod's answer")
        for number, pod in enumerate(old):
            stage.pods.create(f"new-{number}", labels={"app": "web"})
            stage.pods.terminate(pod, grace=STOP_TIMEOUT)
            wait_until(lambda: nodes(stage), partial(is_without, pod.address), f"no {pod.name}")
            # The response means that the data plane has processed all earlier writes.
            stage.gateway.put("/upstreams/barrier", {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}})
            stage.gateway.call("DELETE", "/upstreams/barrier")
            left[pod.name] = time.monotonic()
        # They serve until no request can reach them any more, however slowly this machine updates endpoints.
        sent = len(loop.answers)
        wait_until(lambda: len(loop.answers), lambda got: got > sent, "the request under way to be answered")
        for pod in old:
            stage.pods.remove(pod)
        seen = len(loop.answers)
        wait_until(lambda: len(loop.answers), lambda got: got > seen + 50, "requests after the last old pod")
    stale = [(at, answer.pod) for at, answer in loop.answers if at > left.get(answer.pod, at)]
    assert (loop.failures, stale) == ([], [])
    assert {answer.pod for _, answer in loop.answers} == {f"{age}-{n}" for age in ("old", "new") for n in range(3)}
    assert {answer.pod for _, answer in loop.answers[seen:]} == {f"new-{n}" for n in range(3)}


def test_a_service_scaled_to_zero_responds_with_503_until_it_is_scaled_up(
    api: KubeClient, namespace: str, pods: PodFactory, traffic: Traffic, host: str
) -> None:
    web = Deployment(pods, "web")
    pods.service("web", {"app": "web"})
    api.apply(route(host), namespace=namespace)
    traffic.until_status(200, host)
    web.scale(0, grace=0.2)
    traffic.until_status(503, host)
    wait_route(api, namespace, "True")
    web.scale(2)
    want = {pod.name for pod in web.pods}
    wait_until(lambda: set(traffic.counts(4, host)), lambda got: got == want, "both pods and no error")


def test_a_route_serves_once_its_service_is_created(
    api: KubeClient, namespace: str, pods: PodFactory, traffic: Traffic, host: str
) -> None:
    pods.create("web")
    api.apply(route(host), namespace=namespace)
    wait_route(api, namespace, "False", f"{namespace}/web")
    assert traffic.send(host).status == 404
    pods.service("web", {"app": "web"})
    assert traffic.until_status(200, host).pod == "web"
    wait_route(api, namespace, "True")


def test_a_deleted_service_responds_with_503_until_it_is_re_created(
    api: KubeClient, namespace: str, pods: PodFactory, traffic: Traffic, host: str
) -> None:
    pods.create("web")
    pods.service("web", {"app": "web"})
    api.apply(route(host), namespace=namespace)
    traffic.until_status(200, host)
    api.delete("Service", "web", namespace=namespace)
    traffic.until_status(503, host)
    wait_route(api, namespace, "False", f"{namespace}/web")
    pods.service("web", {"app": "web"})
    traffic.until_status(200, host)
    wait_route(api, namespace, "True")


def test_endpoints_objects_can_be_the_source_of_addresses(stage: Stage) -> None:
    stage.start(kubernetes={"endpoint_source": "endpoints"})
    web = Deployment(stage.pods, "web", replicas=2)
    one, two = web.pods
    stage.pods.service("web", {"app": "web"})
    stage.apply(route(stage.host))
    wait_until(lambda: nodes(stage), lambda got: got == [{one.address, two.address}], "both pods")
    stage.traffic.until_status(200, stage.host)
    assert set(stage.traffic.counts(6, stage.host)) == {one.name, two.name}
    stage.pods.unready(one)
    wait_until(lambda: nodes(stage), lambda got: got == [{two.address}], "the ready pod")
    assert set(stage.traffic.counts(6, stage.host)) == {two.name}
    web.scale(0, grace=0.2)
    stage.traffic.until_status(503, stage.host)


def test_a_namespace_that_loses_its_label_is_withdrawn_until_it_has_it_again(stage: Stage) -> None:
    stage.start()
    stage.serve()
    stage.apply(route(stage.host))
    stage.traffic.until_status(200, stage.host)
    stage.api.patch("Namespace", stage.namespace, {"metadata": {"labels": {"e2e-story": None}}})
    stage.traffic.until_status(404, stage.host)
    empty: dict[str, Any] = {}
    wait_until(
        lambda: [stage.gateway.records(kind) for kind in ("routes", "upstreams")],
        lambda got: got == [empty, empty],
        "no record",
    )
    stage.api.patch("Namespace", stage.namespace, {"metadata": {"labels": {"e2e-story": stage.mark}}})
    assert stage.traffic.until_status(200, stage.host).pod == "web"


def test_deleting_a_namespace_deletes_all_its_records(stage: Stage) -> None:
    stage.start()
    stage.serve()
    stage.apply([route(stage.host, name=f"web-{number}", path=f"/{number}") for number in range(60)])
    for number in (0, 59):
        stage.traffic.until_status(200, stage.host, f"/{number}")
    wait_until(lambda: len(stage.gateway.records("routes")), lambda got: got == 60, "every route")
    stage.pods.close()
    stage.api.delete("Namespace", stage.namespace)
    wait_until(lambda: stage.gateway.records("routes"), lambda got: got == {}, "no route")
    wait_until(lambda: stage.gateway.records("upstreams"), lambda got: got == {}, "no upstream")
    assert stage.traffic.send(stage.host, "/0").status == 404


def test_an_object_that_leaves_the_class_is_withdrawn(stage: Stage) -> None:
    stage.start(kubernetes={"ingress_class": "ours"})
    stage.serve()
    mine = route(stage.host)
    mine["spec"]["ingressClassName"] = "ours"
    stage.apply(mine)
    stage.traffic.until_status(200, stage.host)
    stage.api.patch("ApisixRoute", "web", {"spec": {"ingressClassName": "theirs"}}, namespace=stage.namespace)
    stage.traffic.until_status(404, stage.host)
    stage.api.patch("ApisixRoute", "web", {"spec": {"ingressClassName": "ours"}}, namespace=stage.namespace)
    stage.traffic.until_status(200, stage.host)


def test_an_ingress_that_leaves_the_class_is_withdrawn(
    api: KubeClient, namespace: str, pods: PodFactory, traffic: Traffic, host: str
) -> None:
    pods.create("web")
    pods.service("web", {"app": "web"})
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    spec = {"ingressClassName": "apisix", "rules": [{"host": host, "http": {"paths": paths}}]}
    meta = {"name": "web"}
    api.apply(
        {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta, "spec": spec}, namespace=namespace
    )
    traffic.until_status(200, host)
    for other in ("nginx", None):
        api.patch("Ingress", "web", {"spec": {"ingressClassName": other}}, namespace=namespace)
        traffic.until_status(404, host)
        api.patch("Ingress", "web", {"spec": {"ingressClassName": "apisix"}}, namespace=namespace)
        traffic.until_status(200, host)


def test_a_secret_created_later_completes_the_route(
    api: KubeClient, namespace: str, pods: PodFactory, traffic: Traffic, host: str
) -> None:
    pods.create("web")
    pods.service("web", {"app": "web"})
    item = route(host)
    item["spec"]["http"][0]["plugins"] = [
        {"name": "response-rewrite", "enable": True, "config": {"body": "none"}, "secretRef": "words"}
    ]
    api.apply(item, namespace=namespace)
    wait_route(api, namespace, "False", "words")
    assert traffic.send(host).status == 404
    secret: Manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "words"}}
    api.apply({**secret, "stringData": {"body": "first words"}}, namespace=namespace)
    traffic.until(lambda answer: answer.text == "first words", host)
    wait_route(api, namespace, "True")
    api.apply({**secret, "stringData": {"body": "other words"}}, namespace=namespace)
    traffic.until(lambda answer: answer.text == "other words", host)


def test_a_bad_update_keeps_the_last_good_record_serving(
    api: KubeClient, namespace: str, pods: PodFactory, traffic: Traffic, host: str
) -> None:
    pods.create("web")
    pods.service("web", {"app": "web"})
    api.apply(route(host, path="/old"), namespace=namespace)
    traffic.until_status(200, host, "/old")
    wait_route(api, namespace, "True")
    with RequestLoop(traffic, host, "/old") as loop:
        api.apply(route(host, path="/new", service="absent"), namespace=namespace)
        wait_route(api, namespace, "False", "absent")
        assert traffic.send(host, "/new").status == 404
        refused = {"limit-count": {"count": 0, "time_window": 60}}
        api.apply(route(host, path="/new", plugins=refused), namespace=namespace)
        wait_route(api, namespace, "False", "limit-count")
        assert traffic.send(host, "/new").status == 404
        seen = len(loop.answers)
        wait_until(lambda: len(loop.answers), lambda got: got > seen + 20, "more requests")
    assert loop.failures == []
    api.apply(route(host, path="/new"), namespace=namespace)
    traffic.until_status(200, host, "/new")
    wait_route(api, namespace, "True")
    assert traffic.send(host, "/old").status == 404


def test_a_route_that_is_deleted_and_re_created_serves_its_new_spec(
    controller: Controller, api: KubeClient, namespace: str, pods: PodFactory, traffic: Traffic, host: str
) -> None:
    pods.create("one")
    pods.service("one", {"app": "one"})
    pods.create("two")
    pods.service("two", {"app": "two"})
    api.apply(route(host, service="one"), namespace=namespace)
    assert traffic.until_status(200, host).pod == "one"
    for service in ("two", "one", "two"):
        api.delete("ApisixRoute", "web", namespace=namespace)
        api.apply(route(host, service=service), namespace=namespace)
    traffic.until(lambda answer: answer.pod == "two", host)
    wait_route(api, namespace, "True")
    assert condition(api.get("ApisixRoute", "web", namespace=namespace))["reason"] == "ResourcesSynced"
    assert controller.leads
