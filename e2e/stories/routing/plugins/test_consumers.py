"""Stories of ApisixConsumer: which requests are admitted to a route with authentication."""

import base64
from typing import Any

from e2e.cluster.client import Manifest, wait_until
from e2e.scene import Scene, rule
from e2e.story import Stage, route, says


def consumer(scene: Scene, name: str, **parameter: Any) -> Manifest:
    return scene.apply("ApisixConsumer", name, spec={"authParameter": parameter})


def keyed(name: str, value: str) -> Manifest:
    spec = {"authParameter": {"keyAuth": {"value": {"key": value}}}}
    return {"apiVersion": "apisix.apache.org/v2", "kind": "ApisixConsumer", "metadata": {"name": name}, "spec": spec}


def guarded(scene: Scene, kind: str) -> None:
    """Create a route with authentication, and wait until it is in effect."""
    scene.serve("web")
    auth = {"enable": True, "type": kind}
    scene.route("web", rule("rule", {"hosts": [scene.host], "paths": ["/*"]}, authentication=auth))
    scene.wait_live("web")
    scene.until_status(401)


def key(value: str) -> dict[str, str]:
    return {"apikey": value}


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def username(scene: Scene, name: str) -> str:
    return f"{scene.namespace}_{name}".replace("-", "_")


def until_let_in(scene: Scene, headers: dict[str, str]) -> str:
    """Wait until a request with these headers is admitted; return the consumer that the pod saw."""
    answer = scene.until_pod("web", headers=headers)
    return str(answer.seen["headers"].get("x-consumer-username"))


def test_a_key_authenticates_its_consumer_until_the_key_or_consumer_changes(scene: Scene) -> None:
    guarded(scene, "keyAuth")
    old, new = (f"{scene.namespace}-{age}" for age in ("old", "new"))
    consumer(scene, "jack", keyAuth={"value": {"key": old}})
    assert until_let_in(scene, key(old)) == username(scene, "jack")
    scene.wait_synced("ApisixConsumer", "jack")
    assert scene.send(headers=key("wrong")).status == 401
    consumer(scene, "jack", keyAuth={"value": {"key": new}})
    assert until_let_in(scene, key(new)) == username(scene, "jack")
    assert scene.send(headers=key(old)).status == 401
    scene.delete("ApisixConsumer", "jack")
    scene.until_status(401, headers=key(new))
    assert username(scene, "jack") not in scene.gateway.records("consumers")


def test_a_name_and_password_authenticate_their_consumer(scene: Scene) -> None:
    guarded(scene, "basicAuth")
    user = f"{scene.namespace}-jack"
    consumer(scene, "jack", basicAuth={"value": {"username": user, "password": "p1"}})
    assert until_let_in(scene, basic(user, "p1")) == username(scene, "jack")
    assert scene.send(headers=basic(user, "p2")).status == 401


def test_credentials_follow_their_secret_and_stay_after_its_deletion(scene: Scene) -> None:
    guarded(scene, "basicAuth")
    user = f"{scene.namespace}-jill"
    consumer(scene, "jill", basicAuth={"secretRef": {"name": "jill"}})
    scene.wait_aborted("ApisixConsumer", "jill", f"Secret {scene.namespace}/jill does not exist")
    scene.secret("jill", username=user, password="p1")
    assert until_let_in(scene, basic(user, "p1")) == username(scene, "jill")
    scene.wait_synced("ApisixConsumer", "jill")
    scene.secret("jill", username=user, password="p2")
    assert until_let_in(scene, basic(user, "p2")) == username(scene, "jill")
    assert scene.send(headers=basic(user, "p1")).status == 401
    scene.delete("Secret", "jill")
    scene.wait_aborted("ApisixConsumer", "jill", f"Secret {scene.namespace}/jill does not exist")
    assert scene.send(headers=basic(user, "p2")).status == 200
    scene.delete("ApisixConsumer", "jill")
    scene.until_status(401, headers=basic(user, "p2"))


def test_a_key_of_another_consumer_is_reported_and_taken_over_after_its_deletion(scene: Scene) -> None:
    guarded(scene, "keyAuth")
    shared = f"{scene.namespace}-shared"
    consumer(scene, "first", keyAuth={"value": {"key": shared}})
    assert until_let_in(scene, key(shared)) == username(scene, "first")
    consumer(scene, "second", keyAuth={"value": {"key": shared}})
    reported = scene.wait_aborted(
        "ApisixConsumer", "second", "duplicate key of plugin key-auth", username(scene, "first")
    )
    assert shared not in str(reported["status"])
    assert until_let_in(scene, key(shared)) == username(scene, "first")
    scene.delete("ApisixConsumer", "first")
    wait_until(lambda: until_let_in(scene, key(shared)), lambda got: got == username(scene, "second"), "the key's move")
    scene.wait_synced("ApisixConsumer", "second")


def test_the_oldest_of_several_consumers_gets_a_shared_key(stage: Stage) -> None:
    keys = {f"{which}{number}": f"{stage.namespace}-{number}" for which in "zam" for number in range(4)}
    made = stage.apply([keyed(name, value) for name, value in keys.items()])
    by_age = sorted(made, key=lambda item: (item["metadata"]["creationTimestamp"], item["metadata"]["name"]))
    oldest: dict[str, str] = {}
    for name in (item["metadata"]["name"] for item in by_age):
        oldest.setdefault(keys[name], name)
    stage.start()
    for name, value in keys.items():
        want = says("True") if oldest[value] == name else says("False", "duplicate key of plugin key-auth")
        stage.api.wait("ApisixConsumer", name, want, "to report whose key it is", namespace=stage.namespace)
    got = sorted(stage.gateway.records("consumers"))
    assert got == sorted(f"{stage.namespace}_{name}".replace("-", "_") for name in oldest.values())


def test_two_consumers_exchange_their_keys(scene: Scene) -> None:
    guarded(scene, "keyAuth")
    keys = {name: f"{scene.namespace}-{name}" for name in ("one", "two")}
    for name, value in keys.items():
        consumer(scene, name, keyAuth={"value": {"key": value}})
        assert until_let_in(scene, key(value)) == username(scene, name)
    consumer(scene, "one", keyAuth={"value": {"key": keys["two"]}})
    consumer(scene, "two", keyAuth={"value": {"key": keys["one"]}})
    wait_until(lambda: until_let_in(scene, key(keys["two"])), username(scene, "one").__eq__, "the second key's move")
    wait_until(lambda: until_let_in(scene, key(keys["one"])), username(scene, "two").__eq__, "the first key's move")
    scene.wait_synced("ApisixConsumer", "one")
    scene.wait_synced("ApisixConsumer", "two")


def test_a_consumer_of_another_namespace_with_a_similar_name_is_rejected(stage: Stage) -> None:
    """`team-a/admin` is on the whitelist; `team/a-admin`, which is older, had the same username in 1.8."""
    with stage.another_namespace(stage.namespace) as theirs:
        suffix = theirs.removeprefix(f"{stage.namespace}-")
        own = stage.start()
        stage.serve()
        stage.apply(keyed(f"{suffix}-admin", "attacker-key"))
        only: Manifest = {
            "consumer-restriction": {"whitelist": [f"{stage.namespace}_{suffix}_admin".replace("-", "_")]}
        }
        stage.apply(route(stage.host, plugins={"key-auth": {}, **only}))
        stage.traffic.until_status(200, stage.host, headers=key("attacker-key"))
        stage.api.apply(keyed("admin", "victim-key"), namespace=theirs)
        stage.api.wait("ApisixConsumer", "admin", says("False"), "to lose its username", namespace=theirs)
        assert own.stop() == 0
        stage.start(kubernetes={"consumer_names": "unambiguous"})
        only = {"consumer-restriction": {"whitelist": [f"{theirs}_admin"]}}
        stage.apply(route(stage.host, plugins={"key-auth": {}, **only}))
        stage.traffic.until_status(200, stage.host, headers=key("victim-key"))
        stage.api.wait("ApisixConsumer", "admin", says("True"), "to be synced", namespace=theirs)
        names = {f"{stage.namespace}_{suffix}-admin", f"{theirs}_admin"}
        wait_until(lambda: set(stage.gateway.records("consumers")), names.__eq__, "two consumers")
        stage.traffic.until_status(403, stage.host, headers=key("attacker-key"))
