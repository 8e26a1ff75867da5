"""Takeover of a gateway that 1.8 filled: equal records are not written, foreign records are left unchanged.

The records are what controller 1.8.4 sent for the golden cases, including its defects and leftovers.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from e2e.cluster.client import KubeClient, wait_until
from e2e.conftest import StartController
from e2e.devgateway.process import DevGateway
from e2e.golden.cases import (
    UNLABELLED,
    Place,
    Records,
    fill,
    left_by_1_8,
    placed,
    recorded_cases,
    stored,
    wait_stored,
    wanted,
)
from e2e.golden.moved import MovedCase, RecordsByKind, crc
from e2e.story import Stage, route, says
from e2e.traffic import RequestLoop
from tests.golden.recorded import listed, recordings

APART = (
    {
        "consumer-hmac-auth-inline-with-all-fields": "the same access key as in the case with required fields",
        "consumer-hmac-auth-from-secret-with-required-keys": "the same access key as in the case with required fields",
        "consumer-hmac-auth-from-secret-with-all-keys": "the same access key as in the case with required fields",
        "consumer-jwt-auth-inline-gets-crd-defaults": "the gateway wants a secret",
        "consumer-ldap-auth-inline": "the gateway has no such plugin",
        "consumer-username-clash-goes-to-the-older-object": "created in one second, the older one is unknown",
        "consumer-username-replaces-dashes-with-underscores": "the same key as in consumer-labels-reach-the-record",
        "consumer-name-with-dots-is-rejected": "the gateway rejects the username",
        "global-rule-plugin-config-from-secret": "the same plugin as in the case with duplicate plugins",
        "global-rule-plugin-clash-goes-to-the-older-object": "the same plugin as in the case with duplicate plugins",
        "route-authentication-ldap-auth": "the gateway has no such plugin",
        "route-plugin-config-keeps-value-types": "the gateway has no such plugin",
        "route-plugin-secret-dotted-keys-set-nested-fields": "the gateway rejects the body",
        "route-with-duplicate-rule-names-fails": "the API server rejects the object",
        "stream-rules-with-the-same-name-fail": "the API server rejects the object",
        "upstream-external-node-of-an-unknown-type-fails": "the API server rejects the object",
    }
    | dict.fromkeys(
        (
            "cluster-config-enables-prometheus-and-skywalking",
            "cluster-config-without-monitoring-has-no-global-rule",
            "cluster-config-with-another-name-is-ignored",
            "cluster-config-with-prometheus-disabled-has-no-global-rule",
            "cluster-config-prometheus-prefers-names",
        ),
        "the same object as in cluster-config-enables-prometheus",
    )
    | {"cluster-config-enables-skywalking-with-sample-ratio": "the same object as in cluster-config-enables-prometheus"}
)
"""Cases that cannot share an API server and a gateway with the others, and why."""

LAST_GOOD = (
    "plugin-config-fails-without-its-secret",
    "route-with-a-missing-external-upstream-is-not-published",
    "ingress-waits-for-a-missing-plugin-config",
)
"""Objects that cannot be translated: the records that 1.8 published for them stay."""

STAMP = {
    "desc": "Created by apisix-ingress-controller, DO NOT modify it manually",
    "labels": {"managed-by": "apisix-ingress-controller"},
}


def steady() -> dict[str, MovedCase]:
    found = recorded_cases({})
    return {name: case for name, case in found.items() if case.states == 1 and name not in APART}


def changing() -> dict[str, MovedCase]:
    return {name: case for name, case in recorded_cases({}).items() if case.states > 1}


def writes(gateway: DevGateway, after: int) -> Counter[tuple[str, str]]:
    """Return the method and the record of each write."""
    lines = gateway.write_log(after)
    return Counter((line["method"], line["path"].removeprefix("/apisix/admin/")) for line in lines)


def needed(before: Records, want: Records) -> Counter[tuple[str, str]]:
    """Return the writes that turn some records into others, one for each difference."""
    puts = [("PUT", key) for key, body in want.items() if before.get(key) != body]
    return Counter([*puts, *(("DELETE", key) for key in before.keys() - want.keys())])


def kept(place: Place, before: Records, want: Records) -> Records:
    """Return the records that must remain besides the wanted ones.

    For kinds without labels, a record without an object may belong to another client. Last good records remain.
    """
    prefixes = tuple(f"{recordings()[name].recorded_as}_" for name in LAST_GOOD if name in place.cases)
    prefixes += tuple(f"ing_{prefix}" for prefix in prefixes)
    return {
        key: body
        for key, body in before.items()
        if key not in want and (key.startswith(UNLABELLED) or body.get("name", "").startswith(prefixes))
    }


def take_over(place: Place, start_controller: StartController, number: int) -> tuple[Records, Records, Counter[Any]]:
    """Fill a gateway as 1.8 left it and start a controller; return the records before and after, and the writes."""
    with DevGateway() as gateway, DevGateway() as scratch:
        want, refused = wanted(place, number, scratch)
        assert refused == {}
        fill(gateway, left_by_1_8(place, number))
        before, log = stored(gateway), len(gateway.write_log())
        want |= kept(place, before, want) | special(before)
        own = start_controller({"default": gateway}, place.selector)
        wait_stored(gateway, want, "what is wanted")
        assert own.stop() == 0
        return before, want, writes(gateway, log)


def special(before: Records) -> Records:
    """Return the records that remain or change for a special reason."""
    found: Records = {}
    for key, body in before.items():
        if body.get("labels", {}).get("managed-by") == "helm":
            # In 1.8 a user's label managed-by replaced the ownership label: the record is not recognized as one of the
            # controller.
            found[key] = body
        if body.get("name", "").startswith("ar-granularity-service-headless_"):
            # The object fails and its last good records remain, except that the host `None` is not an address of the
            # Service.
            found[key] = body | ({"nodes": []} if key.startswith("upstreams/") else {})
    return found


def written_for(place: Place, got: Counter[tuple[str, str]], number: int) -> set[str]:
    """Return the cases whose records were written."""
    keys = {key for _, key in got}
    found = (
        (name, (*listing(case.want(number)), *listing(case.recorded(number)))) for name, case in place.cases.items()
    )
    return {name for name, records in found if keys.intersection(records)}


def listing(records: RecordsByKind) -> list[str]:
    """Return the keys of records by kind."""
    names = (("username" if kind == "consumers" else "id", kind, found) for kind, found in records.items())
    return [f"{kind}/{body[name]}" for name, kind, found in names for body in found]


def explained() -> set[str]:
    """Return the cases with a listed difference, and the cases with a label of 1.8 that nothing reads."""
    labels = (
        (name, upstream.get("labels", {}))
        for name, recording in recordings().items()
        for state in recording.states
        for upstream in state.records.get("upstreams", ())
    )
    return {name for name, found in labels if "meta_weight" in found} | set(listed()["differ"])


def test_leftovers_of_1_8_are_deleted(cluster_api: KubeClient, start_controller: StartController) -> None:
    with placed(cluster_api, changing()) as place:
        number = max(case.states for case in place.cases.values()) - 1
        place.go_to(number)
        before, want, got = take_over(place, start_controller, number)
    assert got == needed(before, want)
    assert written_for(place, got, number) <= explained()
    deleted = {before[key]["name"] for method, key in got if method == "DELETE" and "name" in before[key]}
    assert {"mut-rule-removed_web2_80", "mut-split-route-deleted_web2_80"} <= deleted


def test_a_gateway_of_1_8_is_adopted(cluster_api: KubeClient, start_controller: StartController) -> None:
    with placed(cluster_api, steady(), wait=False) as place:
        before, want, got = take_over(place, start_controller, 0)
    equal = [key for key, body in want.items() if before.get(key) == body]
    assert got == needed(before, want)
    assert written_for(place, got, 0) <= explained()
    assert len(equal) > 9 * sum(got.values())
    # No record is deleted here: every record that 1.8 left belongs to an object.
    assert [key for method, key in got if method == "DELETE"] == []


def upstream_of_1_8(name: str, pod: str) -> dict[str, Any]:
    """Return an upstream as 1.8 sent it."""
    nodes = [{"host": pod, "port": 80, "weight": 100}]
    return {"id": crc(name), "name": name, "type": "roundrobin", "scheme": "http", "nodes": nodes, **STAMP}


def route_of_1_8(name: str, host: str, path: str, upstream: str) -> dict[str, Any]:
    """Return a route as 1.8 sent it."""
    body = {"id": crc(name), "name": name, "hosts": [host], "uris": [path], "upstream_id": crc(upstream)}
    return body | STAMP


def theirs() -> Mapping[str, dict[str, Any]]:
    """Return records of other clients, one of them in this controller's format but without its label."""
    answer = {"plugins": {"fault-injection": {"abort": {"http_status": 418}}}}
    return {
        "/routes/theirs": {"uri": "/theirs", **answer},
        "/routes/like-ours": {"uri": "/like-ours", "desc": STAMP["desc"], "labels": {"managed-by": "me"}, **answer},
        "/upstreams/theirs": {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}},
        "/global_rules/theirs": {"plugins": {"response-rewrite": {"headers": {"X-Theirs": "yes"}}}},
        "/plugin_metadata/http-logger": {"log_format": {"host": "$host"}},
    }


def test_requests_succeed_while_the_controller_is_replaced(stage: Stage) -> None:
    """After 1.8 stopped, a route moved to another Service and one was deleted. The leftovers of 1.8 exist, too."""
    begin, host, gateway = f"{stage.namespace}_", stage.host, stage.gateway
    for name in ("web", "other"):
        stage.serve(name)
    (pod,) = [each.address for each in stage.pods.pods if each.name == "web"]
    upstreams = {name: upstream_of_1_8(f"{begin}{name}_80", pod) for name in ("web", "old", "orphan")}
    routes = {
        "same": route_of_1_8(f"{begin}same_rule", host, "/same", f"{begin}web_80"),
        "moved": route_of_1_8(f"{begin}moved_rule", host, "/moved", f"{begin}old_80"),
        "gone": route_of_1_8(f"{begin}gone_rule", host, "/gone", f"{begin}old_80"),
    }
    assert fill(gateway, [{"upstreams": [*upstreams.values()], "routes": [*routes.values()]}]) == {}
    foreign = {path: gateway.put(path, body) for path, body in theirs().items()}
    stage.apply([route(host, name="same", path="/same"), route(host, name="moved", path="/moved", service="other")])
    log = len(gateway.write_log())
    with RequestLoop(stage.traffic, host, "/same") as same, RequestLoop(stage.traffic, host, "/moved") as moved:
        own = stage.start(sync={"audit_interval": "1s"})
        stage.traffic.until(lambda answer: answer.pod == "other", host, "/moved")
        stage.traffic.until_status(404, host, "/gone")
        wait_until(lambda: len(gateway.records("upstreams")), lambda count: count == 3, "two of ours and theirs")
        for name in ("same", "moved"):
            stage.wait_route(says("True"), "to be synced", name)
        assert own.stop() == 0
    assert (same.failures, moved.failures) == ([], [])
    lines = [(line["method"], line["path"].rpartition("/")[2]) for line in gateway.write_log(log)]
    other, ids = crc(f"{begin}other_80"), {name: body["id"] for name, body in (routes | upstreams).items()}
    assert Counter(lines) == Counter(
        [("PUT", other), ("PUT", ids["moved"])] + [("DELETE", ids[name]) for name in ("gone", "old", "orphan")]
    )
    order = [other, ids["moved"], ids["old"]]
    assert [key for _, key in lines if key in order] == order
    assert {path: gateway.call("GET", path)[1]["value"] for path in foreign} == foreign
    assert stage.traffic.send(host, "/theirs").status == 418
