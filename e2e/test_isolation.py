"""Stories of what must not touch each other: records of others, and one bad object among many good ones."""

from typing import Any

from e2e.cluster.client import wait_until
from e2e.story import Stage, condition, put_paths, route, says

MANY = 500
FOREIGN_LABELS = (None, {"team": "blue"}, {"managed-by": "somebody"}, {"apisix-ingress/controller": "apisix-ingress"})


def foreign(uri: str, labels: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a route that somebody else made: it answers 418."""
    body: dict[str, Any] = {
        "uri": uri,
        "plugins": {"fault-injection": {"abort": {"http_status": 418}}},
        "upstream": {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}},
    }
    return body | ({"labels": labels} if labels else {})


def test_records_of_others_survive_everything(stage: Stage) -> None:
    gateway = stage.gateway
    for number, labels in enumerate(FOREIGN_LABELS):
        gateway.put(f"/routes/foreign-{number}", foreign(f"/foreign/{number}", labels))
    gateway.put("/upstreams/foreign", {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}})
    gateway.put("/global_rules/foreign", {"plugins": {"response-rewrite": {"headers": {"X-Global": "yes"}}}})
    gateway.put("/consumers/foreign", {"username": "foreign", "plugins": {"key-auth": {"key": "a-key-of-theirs"}}})
    gateway.put("/plugin_configs/foreign", {"plugins": {"cors": {}}})
    kinds = ("routes", "upstreams", "global_rules", "consumers", "plugin_configs")
    want = {kind: gateway.records(kind) for kind in kinds}
    own = stage.start(sync={"audit_interval": "1s"})
    stage.serve()
    stage.apply(route(stage.host))
    assert stage.traffic.until_status(200, stage.host).headers["x-global"] == "yes"
    assert own.stop() == 0
    own.start()
    stage.apply(route(stage.host, path="/new"))
    stage.traffic.until_status(200, stage.host, "/new")
    stage.api.delete("ApisixRoute", "web", namespace=stage.namespace)
    wait_until(lambda: {kind: gateway.records(kind) for kind in kinds}, lambda got: got == want, "theirs alone")
    for number in range(len(FOREIGN_LABELS)):
        assert stage.traffic.send(stage.host, f"/foreign/{number}").status == 418
    assert not [line for line in gateway.write_log() if "foreign" in line["path"] and line["user_agent"]]


def test_a_record_of_others_under_a_wanted_id_is_left_and_the_object_says_so(stage: Stage) -> None:
    own = stage.start(sync={"audit_interval": "1s"})
    stage.serve()
    stage.apply([route(stage.host), route(stage.host, name="other", path="/other")])
    stage.wait_route(says("True"), "to be synced")
    (id_,) = [key for key, each in stage.gateway.records("routes").items() if "_web_" in each["name"]]
    assert own.stop() == 0
    stage.gateway.put(f"/routes/{id_}", foreign("/*"))
    theirs = stage.gateway.records("routes")[id_]
    own.start()
    stage.wait_route(says("False", f"routes/{id_}", "not ours"), "to say that the id is taken")
    stage.apply(route(stage.host, path="/edited"))
    stage.wait_route(says("False", f"routes/{id_}", "not ours"), "to say that the id is taken")
    assert stage.gateway.records("routes")[id_] == theirs
    assert stage.traffic.send(stage.host).status == 418
    assert stage.traffic.send(stage.host, "/other").status == 200
    stage.gateway.call("DELETE", f"/routes/{id_}")
    stage.traffic.until_status(200, stage.host, "/edited")
    stage.wait_route(says("True"), "to be synced")


def test_one_rejected_route_of_many_stands_alone(stage: Stage) -> None:
    own = stage.start()
    stage.serve()
    names = [f"web-{number}" for number in range(MANY)]
    bad = "web-250"
    many = [route(stage.host, name=name, path=f"/{name}") for name in names if name != bad]
    refused = {"limit-count": {"count": 0, "time_window": 60, "rejected_code": 503, "key": "remote_addr"}}
    stage.apply([*many[:250], route(stage.host, name=bad, path=f"/{bad}", plugins=refused), *many[250:]])

    def states() -> dict[str, str]:
        items = stage.api.objects("ApisixRoute", namespace=stage.namespace)
        return {item["metadata"]["name"]: condition(item).get("status", "") for item in items}

    want = dict.fromkeys(names, "True") | {bad: "False"}
    wait_until(states, lambda got: got == want, f"all but {bad} to be synced", 60)
    records = stage.gateway.records("routes")
    assert len(records) == MANY - 1
    assert {stage.traffic.send(stage.host, f"/{name}").status for name in names if name != bad} == {200}
    assert stage.traffic.send(stage.host, f"/{bad}").status == 404
    (event,) = own.events("record.rejected")
    message = condition(stage.api.get("ApisixRoute", bad, namespace=stage.namespace))["message"]
    words = (event["record"], "limit-count", "count", "validation failed")
    assert [word for word in words if word not in message] == []

    def warnings() -> list[tuple[str, str]]:
        events = stage.api.objects("v1/Event", namespace=stage.namespace)
        return [(each["involvedObject"]["name"], each["message"]) for each in events if each["type"] == "Warning"]

    ((about, told),) = wait_until(warnings, bool, "an Event")
    assert (about, [word for word in words if word not in told]) == (bad, [])
    assert {each["object"] for each in own.events("status.written") if each["status"] == "False"} == {
        f"ApisixRoute {stage.namespace}/{bad}"
    }
    attempts = [line for line in stage.gateway.write_log() if line["path"].endswith(event["record"])]
    assert [line["status"] for line in attempts] == [400]
    before = len(stage.gateway.write_log())
    stage.apply(route(stage.host, name=bad, path=f"/{bad}"))
    stage.traffic.until_status(200, stage.host, f"/{bad}")
    stage.wait_route(says("True"), "to be well", bad)
    assert put_paths(stage.gateway, before) == [f"/{event['record']}"]


def test_a_route_that_the_gateway_comes_to_reject_keeps_its_last_good_record(stage: Stage) -> None:
    stage.start()
    stage.serve()
    stage.apply(route(stage.host, path="/old"))
    stage.traffic.until_status(200, stage.host, "/old")
    want = stage.gateway.records("routes")
    stage.apply(route(stage.host, path="/new", plugins={"no-such-plugin": {"a": 1}}))
    stage.wait_route(says("False", "no-such-plugin"), "to name the plugin")
    assert stage.gateway.records("routes") == want
    assert stage.traffic.send(stage.host, "/old").status == 200
    assert stage.traffic.send(stage.host, "/new").status == 404
