"""`secrets: referenced`: the controller reads a Secret only while an object refers to it, where roles permit it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from e2e.cluster.client import Manifest, wait_until
from e2e.stories.install.test_rbac import RbacHarness
from e2e.story import Stage, route, says


def secret(name: str, token: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"token": token}}


def with_token(host: str, source: str, name: str = "web") -> Manifest:
    token = {"valueFrom": {"secretKeyRef": {"name": source, "key": "token"}}}
    return route(host, name=name, plugins={"proxy-rewrite": {"headers": {"set": {"X-Token": token}}}})


def wait_token(stage: Stage, host: str, token: str) -> None:
    stage.traffic.until(lambda answer: answer.received("x-token") == token, host)


@pytest.fixture
def harness(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Callable[[Mapping[str, Any]], RbacHarness]]:
    """A function that renders a chart and applies its roles."""
    if request.config.getoption("--cluster") != "local":
        pytest.skip("the audit log is that of the local cluster")
    made: list[RbacHarness] = []

    def make(values: Mapping[str, Any]) -> RbacHarness:
        cluster = request.getfixturevalue("local_cluster")
        made.append(RbacHarness(stage, cluster, values, name=f"secrets-{stage.mark}"))
        return made[-1]

    yield make
    for each in made:
        each.close()


def requests_for_secrets(harness: RbacHarness) -> set[tuple[str, str, int]]:
    """Return name, verb and status of the requests for Secrets; the name is empty for a list of all."""
    return {
        (event["objectRef"].get("name", ""), event["verb"], event["responseStatus"]["code"])
        for event in harness.audit.events()
        if (event.get("objectRef") or {}).get("resource") == "secrets" and "responseStatus" in event
    }


def test_a_secret_is_read_only_while_an_object_refers_to_it(
    stage: Stage, harness: Callable[[Mapping[str, Any]], RbacHarness]
) -> None:
    readable = {stage.namespace: ["first", "second", "unused"]}
    shown = harness({"rbac": {"secrets": readable}, "config": {"kubernetes": {"secrets": "referenced"}}})
    stage.serve()
    stage.apply([secret("first", "one"), secret("unused", "x"), secret("closed", "y")])
    stage.apply([with_token(stage.host, "first"), with_token(f"b.{stage.host}", "closed", name="closed")])
    controller = shown.start()
    wait_token(stage, stage.host, "one")
    stage.apply(secret("first", "two"))
    wait_token(stage, stage.host, "two")
    # A Secret that may not be read has no effect on other objects, nor on readiness.
    stage.api.wait(
        "ApisixRoute", "closed", says("False", "not permitted to read it"), "to say so", namespace=stage.namespace
    )
    assert controller.probe("/readyz")[0] == 200
    # An object refers to another Secret, which is created later.
    stage.apply(with_token(stage.host, "second"))
    stage.wait_route(says("False", "second"), "to miss its Secret")
    stage.apply(secret("second", "three"))
    wait_token(stage, stage.host, "three")
    # A restart writes nothing: the Secrets are known before the first write.
    controller.stop()
    controller.start()
    wait_until(lambda: controller.leads, bool, "it to lead again")
    takeover = wait_until(lambda: controller.events("cluster.takeover"), bool, "its takeover")[-1]
    assert (takeover["upserts"], takeover["deletes"]) == (0, 0)
    assert controller.stop() == 0
    assert requests_for_secrets(shown) == {
        ("first", "list", 200),
        ("first", "watch", 200),
        ("second", "list", 200),
        ("second", "watch", 200),
        ("closed", "list", 403),
    }
