"""Stories of gateway clusters: one that is down does not delay another, and lost or edited records are restored."""

from typing import Any

import pytest

from e2e.cluster.client import wait_until
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway
from e2e.story import WRITES, Stage, put_paths, route, says, through

DRIFT = "apisix_ingress_controller_drift_repaired_total"
KINDS = ("routes", "upstreams")


def bodies(gateway: DevGateway) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the records by kind and id, without the timestamps that every write changes."""
    return {
        kind: {
            id_: {name: value for name, value in body.items() if name not in ("create_time", "update_time")}
            for id_, body in gateway.records(kind).items()
        }
        for kind in KINDS
    }


@pytest.fixture
def audited(stage: Stage) -> Controller:
    """A controller that audits every second, with one live route."""
    own = stage.start(sync={"audit_interval": "1s"})
    stage.serve()
    stage.apply(route(stage.host))
    stage.traffic.until_status(200, stage.host)
    stage.wait_route(says("True"), "to be synced")
    return own


def test_a_cluster_that_is_down_delays_no_other_and_catches_up(stage: Stage) -> None:
    away = stage.another_gateway()
    own = stage.start({"here": stage.gateway, "away": away}, sync={"timeout": "1s"})
    stage.serve()
    stage.apply([route(stage.host, name=name, path=f"/{name}") for name in ("kept", "deleted")])
    for gateway in (stage.gateway, away):
        for path in ("/kept", "/deleted"):
            through(gateway).until_status(200, stage.host, path)
    stage.wait_route(says("True"), "to be in both", "kept")
    away.stop()
    stage.apply([route(stage.host, name=f"made-{number}", path=f"/made-{number}") for number in range(5)])
    stage.api.delete("ApisixRoute", "deleted", namespace=stage.namespace)
    stage.traffic.until_status(404, stage.host, "/deleted")
    for number in range(5):
        stage.traffic.until_status(200, stage.host, f"/made-{number}")
        stage.wait_route(says("False", "away"), "to name the cluster", f"made-{number}")
    assert own.probe("/readyz")[0] == 200
    before = len(stage.gateway.write_log())
    away.start()
    through(away).until_status(404, stage.host, "/deleted")
    for number in range(5):
        through(away).until_status(200, stage.host, f"/made-{number}")
        stage.wait_route(says("True"), "to be in both", f"made-{number}")
    assert put_paths(stage.gateway, before) == []
    assert bodies(away) == bodies(stage.gateway)
    away_paths = put_paths(away)
    assert len(away_paths) == len(set(away_paths)) == 6


def test_a_cluster_that_hangs_delays_no_other(stage: Stage) -> None:
    frozen = stage.another_gateway()
    stage.start({"here": stage.gateway, "frozen": frozen}, sync={"timeout": "1s"})
    stage.serve()
    stage.apply(route(stage.host))
    through(frozen).until_status(200, stage.host)
    frozen.pause()
    try:
        stage.apply(route(stage.host, path="/new"))
        stage.traffic.until_status(200, stage.host, "/new")
        stage.wait_route(says("False", "frozen"), "to name the cluster")
        stage.apply(route(stage.host, path="/newer"))
        stage.traffic.until_status(200, stage.host, "/newer")
    finally:
        frozen.resume()
    through(frozen).until_status(200, stage.host, "/newer")
    stage.wait_route(says("True"), "to be in both")
    assert through(frozen).send(stage.host, "/new").status == 404
    assert bodies(frozen) == bodies(stage.gateway)


def test_a_cluster_that_is_down_at_the_start_does_not_affect_the_other(stage: Stage) -> None:
    away = stage.another_gateway()
    away.stop()
    stage.serve()
    stage.apply(route(stage.host))
    own = stage.start({"here": stage.gateway, "away": away}, sync={"timeout": "1s"})
    stage.traffic.until_status(200, stage.host)
    stage.wait_route(says("False", "away"), "to name the cluster")
    assert len(own.events("cluster.unreachable")) == 1
    away.start()
    through(away).until_status(200, stage.host)
    stage.wait_route(says("True"), "to be in both")


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_edited_manually_is_restored(stage: Stage, audited: Controller, kind: str) -> None:
    want = bodies(stage.gateway)
    (id_,) = want[kind]
    edit = {"routes": {"uris": ["/elsewhere"]}, "upstreams": {"nodes": {"127.0.0.1:1": 1}}}[kind]
    before = len(stage.gateway.write_log())
    # An audit may run at any moment: its repair is delayed, so that a request is sent while the edit is in effect.
    stage.gateway.add_fault("delay", method="PUT", delay="2s", times=1)
    stage.gateway.call("PATCH", f"/{kind}/{id_}", edit)
    stage.traffic.until(lambda answer: answer.status != 200, stage.host)
    wait_until(lambda: bodies(stage.gateway), lambda got: got == want, "the record to be as before")
    stage.traffic.until_status(200, stage.host)
    assert put_paths(stage.gateway, before) == [f"/{kind}/{id_}"] * 2
    wait_until(lambda: audited.metric(DRIFT), lambda got: got == 1, "the drift to be counted")


def test_a_record_deleted_manually_is_restored(stage: Stage, audited: Controller) -> None:
    want = bodies(stage.gateway)
    (id_,) = want["routes"]
    stage.gateway.call("DELETE", f"/routes/{id_}")
    wait_until(lambda: bodies(stage.gateway), lambda got: got == want, "the record to be back")
    stage.traffic.until_status(200, stage.host)
    wait_until(lambda: audited.metric(DRIFT), lambda got: got == 1, "the drift to be counted")


def test_a_stray_record_with_our_label_is_removed(stage: Stage, audited: Controller) -> None:
    want = bodies(stage.gateway)
    (mine,) = want["routes"].values()
    stage.gateway.put("/routes/stray", {**mine, "id": "stray", "uris": ["/stray"]})
    wait_until(lambda: bodies(stage.gateway), lambda got: got == want, "the stray route to be gone")
    assert stage.traffic.send(stage.host, "/stray").status == 200
    wait_until(lambda: audited.metric(WRITES, operation="delete"), lambda got: got == 1, "the delete to be counted")


def test_a_wiped_gateway_is_filled_again(stage: Stage, audited: Controller) -> None:
    stage.apply([route(stage.host, name=f"web-{number}", path=f"/{number}") for number in range(40)])
    wait_until(lambda: len(stage.gateway.records("routes")), lambda got: got == 41, "every route")
    want = bodies(stage.gateway)
    stage.gateway.wipe()
    wait_until(lambda: bodies(stage.gateway), lambda got: got == want, "every record to be back")
    stage.traffic.until_status(200, stage.host, "/39")
    paths = put_paths(stage.gateway)
    assert (len(paths), len(set(paths))) == (42, 42)
    assert paths[0].startswith("/upstreams/")
    assert audited.events("deletes.held_back") == []
