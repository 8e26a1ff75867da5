"""Paths with an address list are never open while they are created or deleted."""

from __future__ import annotations

from e2e.cluster.client import wait_until
from e2e.stories.changes.test_ingress_status import wait_event
from e2e.stories.nginx.test_provider import ingress, start
from e2e.story import DONE, Stage, put_paths

PATHS = ("/a", "/b", "/c")


def test_routes_with_an_address_list_are_created_before_routes_that_serve_and_deleted_after_them(stage: Stage) -> None:
    start(stage)
    stage.serve()
    item = ingress(stage, whitelist_source_range="203.0.113.7/32")
    rule = item["spec"]["rules"][0]["http"]
    rule["paths"] = [rule["paths"][0] | {"path": path} for path in PATHS]
    mark = len(stage.gateway.write_log())
    stage.apply(item)
    for path in PATHS:
        stage.traffic.until_status(403, stage.host, path)
    wait_event(stage, "web", "ResourcesSynced")
    routes = stage.gateway.records("routes")

    created = [path.removeprefix("/routes/") for path in put_paths(stage.gateway, mark) if path.startswith("/routes/")]
    is_serving = ["upstream_id" in routes[id_] for id_ in created]
    assert set(is_serving) == {False, True}
    assert is_serving == sorted(is_serving)

    mark = len(stage.gateway.write_log())
    stage.api.delete("Ingress", "web", namespace=stage.namespace)
    wait_until(lambda: stage.gateway.records("routes"), lambda got: not got, "no routes")
    log = [line for line in stage.gateway.write_log(mark) if line["method"] == "DELETE" and line["status"] in DONE]
    deleted = [line["path"].rpartition("/")[2] for line in log if "/routes/" in line["path"]]
    was_serving = ["upstream_id" in routes[id_] for id_ in deleted]
    assert was_serving == sorted(was_serving, reverse=True)
