"""All kinds at once: nothing is written without a change, and manual changes at the gateway are repaired."""

import copy
from typing import Any

import pytest

from e2e.cluster.client import wait_until
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway
from e2e.everything import METADATA, NAMESPACED, of_every_kind, statuses, stream_route, wait_every_kind
from e2e.golden.cases import Records, stored
from e2e.story import Stage, condition, put_paths, route, says, through

AUDITS = "apisix_ingress_controller_cache_sync_total"
REQUESTS = "apisix_ingress_controller_apisix_requests"
RESTARTS = 5
EDITS: dict[str, dict[str, Any]] = {
    "routes": {"uris": ["/edited"]},
    "stream_routes": {"server_port": 9999},
    "upstreams": {"retries": 7},
    "ssls": {"snis": ["edited.example.org"]},
    "consumers": {"plugins": {"key-auth": {"key": "edited"}}},
    "consumer_groups": {"plugins": {"cors": {"max_age": 77}}},
    "protos": {"content": 'syntax = "proto2";'},
    "plugin_configs": {"plugins": {"cors": {"max_age": 77}}},
    "global_rules": {"plugins": {"request-id": {"header_name": "X-Edited"}}},
    "plugin_metadata": {"log_format": {"edited": "$host"}},
}
"""The manual change of a record of each kind."""


def start(stage: Stage, **settings: Any) -> Controller:
    kubernetes = {"plugin_metadata": f"{stage.namespace}/{METADATA}", "controller_name": f"all-{stage.mark}"}
    return stage.start(kubernetes=kubernetes, sync={"audit_interval": "1s"}, **settings)


def wait_audits(controller: Controller, more: int) -> None:
    """Wait until some more audits have completed."""
    begin = controller.metric(AUDITS, result="success")
    wait_until(lambda: controller.metric(AUDITS, result="success"), lambda got: got >= begin + more, "more audits")


def wait_restored(stage: Stage, want: Records) -> None:
    wait_until(lambda: stored(stage.gateway), lambda got: got == want, "every record to be as before")


def test_audits_of_every_kind_write_nothing(stage: Stage) -> None:
    own = start(stage)
    stage.serve()
    stage.apply(of_every_kind(stage))
    want = wait_every_kind(stage)
    wait_until(lambda: set(statuses(stage).values()), lambda got: got == {"True"}, "every object to be synced")
    wait_audits(own, 1)
    log, requests = len(stage.gateway.write_log()), own.metric(REQUESTS, op="write")
    assert requests > 0
    wait_audits(own, 3)
    assert (len(stage.gateway.write_log()), own.metric(REQUESTS, op="write")) == (log, requests)
    assert stored(stage.gateway) == want


@pytest.mark.parametrize("kind", EDITS)
def test_a_record_of_any_kind_is_repaired(stage: Stage, kind: str) -> None:
    start(stage)
    stage.serve()
    stage.apply(of_every_kind(stage))
    want = wait_every_kind(stage)
    key = next(key for key in want if key.startswith(f"{kind}/"))
    edited = copy.deepcopy(EDITS[kind])
    status, _ = stage.gateway.call("PATCH", f"/{key}", edited) if kind != "consumers" else (0, None)
    if status not in (200, 201):
        # The Admin API does not support PATCH for consumers and metadata.
        stage.gateway.put(f"/{key}", {**_sendable(want[key]), **edited})
    wait_restored(stage, want)
    if kind not in ("upstreams", "plugin_configs"):
        stage.gateway.call("DELETE", f"/{key}")
        wait_restored(stage, want)


def _sendable(body: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key != "id"}


def restart(controller: Controller) -> None:
    assert controller.stop() == 0
    before = len(controller.events("cluster.takeover"))
    controller.start()
    wait_until(lambda: len(controller.events("cluster.takeover")), lambda got: got > before, "its takeover")


def test_restarts_change_no_upstream_of_either_granularity(stage: Stage) -> None:
    own = stage.start()
    for name in ("web-1", "web-2"):
        stage.pods.create(name, labels={"app": "web"})
    stage.pods.service("web", {"app": "web"})
    backend = {"serviceName": "web", "servicePort": 80, "resolveGranularity": "service"}
    stage.apply([route(stage.host, name="pods"), route(stage.host, name="cluster", path="/c", backends=[backend])])

    def nodes() -> dict[str, int]:
        found = stage.gateway.records("upstreams").values()
        return {each["name"].removeprefix(f"{stage.namespace}_"): len(each["nodes"]) for each in found}

    want = {"web_80": 2, "web_80_service": 1}
    wait_until(nodes, lambda got: got == want, "an upstream for each granularity")
    stage.wait_route(says("True"), "to be synced", "cluster")
    stage.wait_route(says("True"), "to be synced", "pods")
    log = len(stage.gateway.write_log())
    for _ in range(RESTARTS):
        restart(own)
        assert nodes() == want
    assert put_paths(stage.gateway, log) == []


def test_a_gateway_without_streams_serves_http_and_the_condition_names_the_missing_setting(stage: Stage) -> None:
    with DevGateway(stream=False) as plain:
        own = stage.start({"default": plain})
        stage.serve()
        stage.apply([route(stage.host), stream_route("stream", 9100)])
        assert through(plain).until_status(200, stage.host).pod == "web"
        stage.wait_route(says("True"), "to be synced")
        stage.wait_route(says("False", "stream"), "to say that there are no streams", "stream")
        assert own.stop() == 0


def test_with_status_disabled_nothing_is_written_to_objects(stage: Stage) -> None:
    own = start_without_status(stage)
    stage.serve()
    stage.apply(of_every_kind(stage))
    ingress = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "web"},
        "spec": {
            "ingressClassName": "apisix",
            "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}},
        },
    }
    stage.apply(ingress)
    wait_until(lambda: len(stage.gateway.records("routes")), lambda got: got == 2, "both routes")
    assert own.stop() == 0
    for kind in NAMESPACED:
        assert [condition(item) for item in stage.api.objects(kind, namespace=stage.namespace)] != []
        assert {str(item.get("status")) for item in stage.api.objects(kind, namespace=stage.namespace)} == {"None"}
    assert stage.api.get("Ingress", "web", namespace=stage.namespace)["status"]["loadBalancer"] == {}


def start_without_status(stage: Stage) -> Controller:
    status = {"enabled": False, "addresses": ["192.0.2.7"]}
    return stage.start(kubernetes={"status": status, "plugin_metadata": f"{stage.namespace}/{METADATA}"})


def test_the_lease_is_held_for_15_seconds_and_moves_to_the_next_leader(stage: Stage) -> None:
    own = stage.start(name="first")
    lease = f"lease-{stage.selector.replace('=', '-')}"

    def spec() -> dict[str, Any]:
        found: dict[str, Any] = stage.api.get("Lease", lease, namespace="default")["spec"]
        return found

    wait_until(lambda: own.leads, bool, "it to lead")
    before = spec()
    assert before["leaseDurationSeconds"] == 15
    assert "first" in before["holderIdentity"]
    second = stage.start(name="second")
    assert own.stop() == 0
    wait_until(lambda: second.leads, bool, "the other one to lead")
    after = spec()
    assert "second" in after["holderIdentity"]
    assert after["leaseTransitions"] == before["leaseTransitions"] + 1
