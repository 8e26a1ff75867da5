"""Stories about a controller that stops and restarts: its writes, the records that it keeps, the shutdown."""

from collections import Counter
from typing import Any

from e2e.cluster.client import Manifest, wait_until
from e2e.controller import Controller
from e2e.story import WRITES, Stage, put_paths, route, says
from e2e.traffic import RequestLoop

ROUTES = 300

PLUGIN_CONFIG: Manifest = {
    "apiVersion": "apisix.apache.org/v2",
    "kind": "ApisixPluginConfig",
    "metadata": {"name": "shared"},
    "spec": {"plugins": [{"name": "cors", "enable": True}]},
}
UPSTREAM: Manifest = {
    "apiVersion": "apisix.apache.org/v2",
    "kind": "ApisixUpstream",
    "metadata": {"name": "web"},
    "spec": {"loadbalancer": {"type": "chash", "hashOn": "header", "key": "X-User"}, "retries": 2},
}


def records(stage: Stage) -> dict[str, Counter[str]]:
    """Return the number of records of each kind."""
    kinds = ("routes", "upstreams", "plugin_configs", "ssls")
    return {kind: Counter(each.get("name", "") for each in stage.gateway.records(kind).values()) for kind in kinds}


def versions(stage: Stage) -> dict[str, str]:
    """Return name → resourceVersion of the objects that have a status."""
    return {
        item["metadata"]["name"]: item["metadata"]["resourceVersion"]
        for kind in ("ApisixRoute", "ApisixPluginConfig", "ApisixUpstream")
        for item in stage.api.objects(kind, namespace=stage.namespace)
    }


def wait_all_true(stage: Stage, count: int) -> None:
    def said() -> int:
        return sum(says("True")(item) for item in stage.api.objects("ApisixRoute", namespace=stage.namespace))

    wait_until(said, lambda got: got == count, f"{count} routes to be synced", 60)


def restart(controller: Controller) -> None:
    assert controller.stop() == 0
    controller.start()
    takeovers = len(controller.events("cluster.takeover"))
    wait_until(lambda: controller.leads, bool, "it to lead")
    wait_until(lambda: len(controller.events("cluster.takeover")), lambda got: got >= max(2, takeovers), "its takeover")


def test_a_restart_with_everything_in_place_writes_nothing(stage: Stage) -> None:
    own = stage.start(sync={"audit_interval": "1s"})
    stage.serve()
    many = [
        route(stage.host, name=f"web-{number}", path=f"/{number}", plugin_config_name="shared")
        for number in range(ROUTES)
    ]
    stage.apply([PLUGIN_CONFIG, UPSTREAM, *many])
    wait_all_true(stage, ROUTES)
    # The conditions do not wait for addresses, which may be written separately.
    stage.traffic.until_status(200, stage.host, "/7")
    before, objects, written = records(stage), versions(stage), len(stage.gateway.write_log())
    assert sum(before["routes"].values()) == ROUTES
    with RequestLoop(stage.traffic, stage.host, "/7") as loop:
        restart(own)
        # A later write in the same queue shows that the takeover left nothing to write.
        stage.apply(route(stage.host, name="last", path="/last"))
        stage.traffic.until_status(200, stage.host, "/last")
        stage.wait_route(says("True"), "to be synced", "last")
    (last,) = [each["id"] for each in stage.gateway.records("routes").values() if "_last_" in each["name"]]
    assert put_paths(stage.gateway, written) == [f"/routes/{last}"]
    assert own.metric(WRITES) == 1
    takeover = own.events("cluster.takeover")[-1]
    assert (takeover["upserts"], takeover["deletes"]) == (0, 0)
    assert records(stage)["routes"] - before["routes"] == Counter([f"{stage.namespace}_last_rule"])
    after = versions(stage)
    del after["last"]
    assert (after, loop.failures) == (objects, [])


def test_only_changes_during_the_downtime_are_written(stage: Stage) -> None:
    own = stage.start()
    stage.serve()
    stage.apply([route(stage.host, name=name, path=f"/{name}") for name in ("kept", "edited", "deleted")])
    wait_all_true(stage, 3)
    stage.traffic.until_status(200, stage.host, "/kept")
    ids = {each["name"].split("_")[1]: each["id"] for each in stage.gateway.records("routes").values()}
    assert own.stop() == 0
    written = len(stage.gateway.write_log())
    stage.api.delete("ApisixRoute", "deleted", namespace=stage.namespace)
    stage.apply([route(stage.host, name="edited", path="/new"), route(stage.host, name="made", path="/made")])
    own.start()
    stage.traffic.until_status(404, stage.host, "/deleted")
    for path in ("/kept", "/new", "/made"):
        stage.traffic.until_status(200, stage.host, path)
    assert stage.traffic.send(stage.host, "/edited").status == 404
    wait_all_true(stage, 3)
    ids |= {each["name"].split("_")[1]: each["id"] for each in stage.gateway.records("routes").values()}
    got = Counter((line["method"], line["path"].rpartition("/")[2]) for line in stage.gateway.write_log(written))
    assert got == Counter([("PUT", ids["edited"]), ("PUT", ids["made"]), ("DELETE", ids["deleted"])])


def test_a_broken_object_keeps_its_routes_over_a_restart_with_current_nodes(stage: Stage) -> None:
    own = stage.start()
    first = stage.pods.create("first", labels={"app": "web"})
    stage.pods.service("web", {"app": "web"})
    stage.apply(route(stage.host))
    assert stage.traffic.until_status(200, stage.host).pod == "first"
    broken = route(stage.host)
    broken["spec"]["http"].append(route(stage.host, service="absent", path="/x")["spec"]["http"][0] | {"name": "other"})
    stage.apply(broken)
    stage.wait_route(says("False", "absent"), "to be broken")
    restart(own)
    assert stage.traffic.send(stage.host).pod == "first"
    stage.pods.create("second", labels={"app": "web"})
    stage.traffic.until(lambda answer: answer.pod == "second", stage.host)
    stage.pods.remove(first)
    wait_until(
        lambda: [[node["host"] for node in each["nodes"]] for each in stage.gateway.records("upstreams").values()],
        lambda got: len(got) == 1 and len(got[0]) == 1,
        "the second pod alone",
    )
    assert set(stage.traffic.counts(5, stage.host)) == {"second"}
    assert says("False", "absent")(stage.api.get("ApisixRoute", "web", namespace=stage.namespace))
    stage.apply(route(stage.host))
    stage.wait_route(says("True"), "to be well again")


def test_a_stop_finishes_what_is_in_flight_and_releases_the_lease(stage: Stage) -> None:
    own = stage.start()
    stage.serve()
    lease = f"lease-{stage.selector.replace('=', '-')}"

    def holder() -> str:
        found: dict[str, Any] = stage.api.get("Lease", lease, namespace="default")
        return found["spec"].get("holderIdentity") or ""

    wait_until(lambda: own.leads, bool, "it to lead")
    assert holder()
    stage.gateway.add_fault("delay", method="PUT", path=".*/routes/.*", delay="1s")
    stage.apply(route(stage.host))
    # The route is sent as soon as its upstream exists, and takes a second.
    wait_until(lambda: put_paths(stage.gateway), lambda got: len(got) == 1, "the upstream")
    assert own.stop() == 0
    assert holder() == ""
    assert [path.split("/")[1] for path in put_paths(stage.gateway)] == ["upstreams", "routes"]
    assert stage.traffic.send(stage.host).pod == "web"
    assert len(own.events("controller.stopped")) == 1
    stage.wait_route(says("True"), "to be synced before the end")


def test_shutdown_during_a_gateway_outage_is_not_delayed(stage: Stage) -> None:
    own = stage.start(sync={"timeout": "1s"})
    stage.serve()
    wait_until(lambda: own.events("cluster.takeover"), bool, "its takeover")
    stage.gateway.pause()
    try:
        stage.apply(route(stage.host))
        stage.wait_route(says("False", "no response within 1 s"), "to say that the gateway is away")
        assert own.stop() == 0
    finally:
        stage.gateway.resume()
