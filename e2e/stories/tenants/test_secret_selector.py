"""Secrets that the controller may read by their labels: others are unknown to it."""

from e2e.cluster.client import Manifest
from e2e.story import Stage, route, says

SELECTOR = "gateway in (apisix)"
LABELS = {"gateway": "apisix"}


def secret(value: str, **labels: str) -> Manifest:
    metadata = {"name": "keys", "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"token": value}}


def with_token(stage: Stage, host: str) -> Manifest:
    source = {"valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}}
    return route(host, plugins={"proxy-rewrite": {"headers": {"set": {"X-Token": source}}}})


def wait_token(stage: Stage, host: str, token: str) -> None:
    stage.traffic.until(lambda answer: answer.received("x-token") == token, host)


def test_a_secret_without_the_labels_does_not_exist(stage: Stage) -> None:
    controller = stage.start(kubernetes={"secret_selector": SELECTOR})
    stage.serve()
    stage.apply([secret("one"), with_token(stage, stage.host)])
    stage.wait_route(says("False", "lacks the labels of secret_selector (gateway in (apisix))"), "to miss its Secret")
    assert stage.traffic.send(stage.host).status == 404
    stage.apply(secret("one", **LABELS))
    wait_token(stage, stage.host, "one")
    stage.apply(secret("two", **LABELS))
    wait_token(stage, stage.host, "two")
    # Without the labels it counts as deleted: the last valid records stay.
    stage.api.patch("Secret", "keys", {"metadata": {"labels": {"gateway": None}}}, namespace=stage.namespace)
    stage.wait_route(says("False", "secret_selector"), "to miss its Secret again")
    wait_token(stage, stage.host, "two")
    # A list agrees with the watch.
    controller.stop()
    stage.start(name="second", kubernetes={"secret_selector": SELECTOR})
    stage.apply(secret("three", **LABELS))
    wait_token(stage, stage.host, "three")
