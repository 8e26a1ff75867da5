"""Stories of `spec.admin` of an ApisixClusterConfig: a gateway cluster moves under traffic, or fails to.

Each cluster has a unique name: the object is cluster-scoped, so every controller sees it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from e2e.cluster.client import Manifest, wait_until
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway
from e2e.story import Stage, put_paths, route, says, through
from e2e.traffic import RequestLoop

SECRET = "canary-key-of-an-object"


@contextmanager
def config(stage: Stage) -> Iterator[str]:
    """Reserve the name of the environment's cluster for an object, which is deleted at the end."""
    name = f"c-{stage.mark}"
    try:
        yield name
    finally:
        if stage.api.find("ApisixClusterConfig", name) is not None:
            stage.api.delete("ApisixClusterConfig", name)


def move(stage: Stage, name: str, url: str, key: str) -> None:
    """Set the cluster's address in the object."""
    spec = {"admin": {"baseURL": url, "adminKey": key}}
    metadata = {"name": name}
    stage.api.apply(
        {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixClusterConfig", "metadata": metadata, "spec": spec}
    )


def wait_config(stage: Stage, name: str, status: str, *words: str) -> Manifest:
    found: Manifest = stage.api.wait("ApisixClusterConfig", name, says(status, *words), f"to be {status}: {words}")
    return found


def records(gateway: DevGateway) -> dict[str, set[str]]:
    return {kind: {body["name"] for body in gateway.records(kind).values()} for kind in ("routes", "upstreams")}


def assert_hidden(stage: Stage, own: Controller, name: str, *keys: str) -> None:
    """Assert that no key is in any output of the controller."""
    item = stage.api.get("ApisixClusterConfig", name)
    shown = [
        json.dumps(own.events()),
        json.dumps(item.get("status")),
        own.probe("/metrics")[1],
        own.probe("/readyz")[1],
    ]
    shown += [own.probe("/apisix/healthz")[1], json.dumps(stage.api.events(name, namespace="default"))]
    assert [key for key in keys for text in shown if key in text] == []


def test_a_cluster_moves_to_another_gateway_and_back_while_traffic_flows(stage: Stage) -> None:
    other = stage.another_gateway()
    with config(stage) as name:
        own = stage.start({name: stage.gateway})
        stage.serve()
        stage.apply([route(stage.host, name="kept", path="/kept"), route(stage.host, name="gone", path="/gone")])
        stage.traffic.until_status(200, stage.host, "/kept")
        stage.wait_route(says("True"), "to be synced", "gone")
        with RequestLoop(stage.traffic, stage.host, "/kept") as loop:
            move(stage, name, other.admin_url, other.admin_key)
            through(other).until_status(200, stage.host, "/kept")
            wait_config(stage, name, "True")
            before = len(stage.gateway.write_log())
            stage.apply(route(stage.host, name="new", path="/new"))
            stage.api.delete("ApisixRoute", "gone", namespace=stage.namespace)
            through(other).until_status(200, stage.host, "/new")
            through(other).until_status(404, stage.host, "/gone")
            stage.wait_route(says("True"), "to be synced", "new")
            assert stage.traffic.send(stage.host, "/new").status == 404
            assert stage.traffic.send(stage.host, "/gone").status == 200
            assert len(stage.gateway.write_log()) == before
            stage.api.delete("ApisixClusterConfig", name)
            stage.traffic.until_status(200, stage.host, "/new")
            stage.traffic.until_status(404, stage.host, "/gone")
            assert loop.failures == []
        assert records(stage.gateway) == records(other)
        assert [event["by"] for event in own.events("cluster.moved")] == ["ApisixClusterConfig", "settings"]
        assert len(put_paths(other)) == len(set(put_paths(other))) + 1  # /gone was written and deleted
    assert own.stop() == 0


def test_an_unusable_address_changes_nothing(stage: Stage) -> None:
    with config(stage) as name:
        own = stage.start({name: stage.gateway})
        stage.serve()
        stage.apply(route(stage.host, path="/old"))
        stage.traffic.until_status(200, stage.host, "/old")
        move(stage, name, "http://127.0.0.1:99999/apisix/admin", SECRET)
        wait_config(stage, name, "False", "spec.admin.baseURL", "use the form")
        stage.apply(route(stage.host, path="/new"))
        stage.traffic.until_status(200, stage.host, "/new")
        stage.wait_route(says("True"), "to be synced")
        assert own.events("cluster.moved") == []
        assert_hidden(stage, own, name, SECRET)


def test_a_rejected_key_is_reported_with_its_field_until_it_is_correct(stage: Stage) -> None:
    other = stage.another_gateway()
    with config(stage) as name:
        own = stage.start({name: stage.gateway})
        stage.serve()
        stage.apply(route(stage.host))
        stage.traffic.until_status(200, stage.host)
        move(stage, name, other.admin_url, SECRET)
        field = f"spec.admin.adminKey of ApisixClusterConfig {name}"
        wait_config(stage, name, "False", "the gateway rejects the admin key", field)
        stage.wait_route(says("False", field), "to say why")
        assert stage.traffic.send(stage.host).status == 200
        assert_hidden(stage, own, name, SECRET, stage.gateway.admin_key)
        move(stage, name, other.admin_url, other.admin_key)
        through(other).until_status(200, stage.host)
        wait_config(stage, name, "True")
        stage.wait_route(says("True"), "to be synced")
        assert_hidden(stage, own, name, SECRET, other.admin_key)


def test_a_new_leader_continues_at_the_new_address(stage: Stage) -> None:
    other = stage.another_gateway()
    with config(stage) as name:
        first, second = (stage.start({name: stage.gateway}, name=each) for each in ("first", "second"))
        wait_until(lambda: first.leads or second.leads, bool, "one to lead")
        leader, follower = (first, second) if first.leads else (second, first)
        stage.serve()
        stage.apply(route(stage.host, path="/old"))
        stage.traffic.until_status(200, stage.host, "/old")
        move(stage, name, other.admin_url, other.admin_key)
        through(other).until_status(200, stage.host, "/old")
        wait_config(stage, name, "True")
        before, writes = len(stage.gateway.write_log()), len(other.write_log())
        assert leader.stop() == 0
        wait_until(lambda: follower.leads, bool, "the other to lead")
        stage.apply(route(stage.host, path="/new"))
        through(other).until_status(200, stage.host, "/new")
        assert len(stage.gateway.write_log()) == before
        assert len(put_paths(other, writes)) == 1


def test_the_condition_names_the_cluster_that_rejects_a_record(stage: Stage) -> None:
    strict = stage.another_gateway()
    words: dict[str, Any] = {"error_msg": "no such thing here"}
    strict.add_fault("status", method="PUT", path=".*/routes/.*", status=400, body=json.dumps(words))
    stage.start({"mild": stage.gateway, "strict": strict})
    stage.serve()
    stage.apply(route(stage.host))
    stage.traffic.until_status(200, stage.host)
    found = stage.wait_route(
        says("False", "cluster strict: routes/", "no such thing here", "accepted by mild"), "refused"
    )
    assert "cluster mild" not in json.dumps(found["status"])
    assert through(strict).send(stage.host).status == 404
