"""Paths whose protection a gateway rejects: they are closed, never open."""

from __future__ import annotations

from typing import Any

from e2e.cluster.client import Manifest, wait_until
from e2e.story import Stage, condition, put_paths, route, says

REJECTED: dict[str, dict[str, Any]] = {"key-auth": {}, "limit-count": {"count": 0, "time_window": 60}}
REPAIRED: dict[str, dict[str, Any]] = {"key-auth": {}}
CLOSED = {"fault-injection": {"abort": {"http_status": 503}}}


def admin(host: str, plugins: dict[str, dict[str, Any]]) -> Manifest:
    """Return a route that requires a key, for a path below an open one of the same Service."""
    return route(host, name="admin", path="/admin*", plugins=plugins)


def closed_route(stage: Stage) -> dict[str, Any] | None:
    """Return the route of the path that requires a key, if it is closed."""
    found = (body for body in stage.gateway.records("routes").values() if body["uris"] == ["/admin*"])
    return next((body for body in found if body["plugins"] == CLOSED and "upstream_id" not in body), None)


def test_a_path_whose_route_is_rejected_is_closed_until_it_is_repaired(stage: Stage) -> None:
    own = stage.start(sync={"audit_interval": "1s"})
    stage.serve()
    stage.apply([route(stage.host), admin(stage.host, REJECTED)])
    stage.traffic.until_status(200, stage.host)
    stage.traffic.until_status(503, stage.host, "/admin/x")
    stage.wait_route(says("False", "count", "503"), "to be rejected", "admin")
    assert condition(stage.wait_route(says("True"), "to be synced"))["status"] == "True"

    assert own.stop() == 0
    mark = len(stage.gateway.write_log())
    own.start()
    wait_until(lambda: own.leads and len(own.events("cluster.takeover")) > 1, bool, "the takeover")
    wait_until(lambda: len(stage.gateway.write_log()) > mark, bool, "another try of the rejected route")
    assert put_paths(stage.gateway, mark) == []
    assert stage.traffic.send(stage.host, "/admin/x").status == 503

    stage.gateway.wipe()
    wait_until(lambda: closed_route(stage), bool, "the route to be closed in the emptied gateway", 60)
    stage.traffic.until_status(200, stage.host)
    assert stage.traffic.send(stage.host, "/admin/x").status == 503

    stage.apply(admin(stage.host, REPAIRED))
    stage.traffic.until_status(401, stage.host, "/admin/x")
    stage.wait_route(says("True"), "to be repaired", "admin")
