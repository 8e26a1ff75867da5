"""Since when something fails and what changed: the answers of a new leader are those of its predecessor."""

import json
from typing import Any

from e2e.cluster.client import wait_until
from e2e.controller import Controller
from e2e.stories.changes.test_ingress_status import ingress
from e2e.story import Stage, route


def items(controller: Controller, name: str) -> list[dict[str, Any]]:
    """Return a list of the page of a controller."""
    status, text = controller.probe(f"/status/api/{name}")
    found: list[dict[str, Any]] = json.loads(text)["items"] if status == 200 else []
    return found


def failing(controller: Controller) -> dict[str, str]:
    """Return since when each code is reported."""
    return {each["code"]: each["since"] for each in items(controller, "problems")}


def test_times_and_changes_survive_a_failover(stage: Stage) -> None:
    stage.serve()
    stage.pods.service("idle", {"app": "nobody"})
    idle = route(f"idle.{stage.host}", name="idle")
    idle["spec"]["http"][0]["backends"][0]["serviceName"] = "idle"
    web = route(stage.host)
    stage.apply([web, idle])
    first = stage.start(name="first")
    stage.apply(ingress(f"lost.{stage.host}", name="lost", service="gone"))
    stage.traffic.until_status(200, stage.host)
    wanted = {"NoEndpoints", "ServiceNotFound"}
    wait_until(lambda: failing(first), lambda got: wanted <= {code for code, at in got.items() if at}, "both problems")
    web["spec"]["http"][0]["match"]["paths"] += ["/added"]
    stage.apply(web)
    words = wait_until(
        lambda: [word for each in items(first, "changes") for word in each["words"]], bool, "a described change"
    )
    assert words == ["path /added added"]
    wait_until(
        lambda: [each["reason"] for each in stage.api.objects("Event", namespace=stage.namespace)],
        lambda got: "ServiceNotFound" in got,
        "the Event of the Ingress",
    )
    changed = {(each["kind"], each["id"]) for each in items(first, "changes")}
    first.process.kill()

    second = stage.start(name="second")
    wait_until(lambda: second.leads, bool, "the second controller to lead")
    began = json.loads(second.probe("/status/api/changes")[1])["began"]
    wait_until(
        lambda: failing(second),
        lambda got: all(got.get(code, began) < began for code in wanted),
        f"times before {began}, when this process started",
    )
    assert {(each["kind"], each["id"]) for each in items(second, "changes")} == changed
