"""How soon a gateway outage or data loss is detected, with default settings and nothing to write."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from e2e.cluster.client import wait_until
from e2e.controller import Controller
from e2e.devgateway.process import DevGateway
from e2e.faults.figures import note
from e2e.story import Stage, route, says

NOTICED = 10.0
"""Seconds within which it is detected: `sync.check_interval` plus `sync.timeout`, with a margin."""
BREAKER = "apisix_ingress_controller_breaker_open"
SINCE = "apisix_ingress_controller_outage_start_timestamp_seconds"


@pytest.fixture
def own(stage: Stage) -> Controller:
    """A controller with default settings and one live route, which has nothing to write."""
    started = stage.start()
    stage.serve()
    stage.apply(route(stage.host))
    stage.traffic.until_status(200, stage.host)
    stage.wait_route(says("True"), "to be synced")
    return started


def overview(own: Controller) -> dict[str, Any]:
    """Return the state of the cluster on the status page."""
    (found,) = json.loads(own.probe("/status/api/overview")[1])["clusters"]
    assert isinstance(found, dict)
    return found


def seconds_until(own: Controller, status: int) -> float:
    """Wait until /apisix/healthz responds with this status; return the seconds that it took."""
    began = time.monotonic()
    reported = f"/apisix/healthz to be {status}"
    wait_until(lambda: own.probe("/apisix/healthz")[0], lambda got: got == status, reported, 2 * NOTICED)
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("begin", "end", "cause"),
    [
        (DevGateway.kill, DevGateway.start, "Connection refused"),
        (DevGateway.pause, DevGateway.resume, "no response within 5 s"),
    ],
    ids=["killed", "hanging"],
)
def test_a_gateway_outage_is_reported_once_with_the_same_message_everywhere(
    stage: Stage, own: Controller, begin: Callable[[DevGateway], None], end: Callable[[DevGateway], None], cause: str
) -> None:
    begin(stage.gateway)
    noticed = seconds_until(own, 500)
    (line,) = own.events("cluster.unreachable")
    place = stage.gateway.admin_url.split("/")[2]
    assert line["error"] == f"{place}: {cause}"
    reported, since = overview(own), line["since"].replace("+00:00", "Z")
    assert (reported["state"], reported["reason"], reported["since"]) == ("unreachable", line["error"], since)
    words = f"cluster default: not reachable since {since}: {line['error']}"
    assert json.loads(own.probe("/apisix/healthz")[1]) == {"status": words}
    assert json.loads(own.probe("/readyz")[1])["notes"] == {"clusters": words}
    assert (own.probe("/readyz")[0], own.probe("/healthz")[0]) == (200, 200)
    assert own.metric(BREAKER, cluster="default") == 1
    assert time.time() - 2 * NOTICED < own.metric(SINCE, cluster="default", reason="unreachable") < time.time()
    end(stage.gateway)
    note("A1", cause=cause, noticed_s=round(noticed, 1), recovered_s=round(seconds_until(own, 200), 1))
    assert [len(own.events(event)) for event in ("cluster.unreachable", "cluster.recovered", "audit.failed")] == [
        1,
        1,
        0,
    ]
    assert (overview(own)["state"], own.metric(BREAKER, cluster="default")) == ("in sync", 0)
    stage.traffic.until_status(200, stage.host)


def test_a_gateway_that_lost_its_data_is_filled_before_the_next_audit(stage: Stage, own: Controller) -> None:
    stage.gateway.wipe()
    began = time.monotonic()
    stage.traffic.until_status(404, stage.host)
    served = "the route to be served again"
    wait_until(lambda: stage.traffic.send(stage.host).status, lambda got: got == 200, served, 2 * NOTICED)
    note("F-13", filled_s=round(time.monotonic() - began, 1))
    assert [line["record"] for line in own.events("check.differs")] != []
    assert len(own.events("audit.drift")) == 1
