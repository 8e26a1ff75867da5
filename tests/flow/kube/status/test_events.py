"""Events, written to an API server over HTTP."""

import json

from structlog.testing import capture_logs

from apisix_ingress.model.condition import synced
from tests.fakes.kube.apiserver import Fault
from tests.flow.kube.status.harness import WEB, StatusHarness


async def test_an_equal_event_raises_the_count(harness: StatusHarness) -> None:
    meta = harness.stores["ApisixRoute"].get(WEB).meta  # type: ignore[union-attr]
    for _ in range(3):
        harness.recorder.record(meta, "Warning", "Conflicted", "lost to default/other")
    await harness.until(lambda: [each[3] for each in harness.events()] == [3], "a count of 3")
    harness.recorder.record(meta, "Warning", "Conflicted", "lost to default/other")
    await harness.until(lambda: [each[3] for each in harness.events()] == [4], "a count of 4")
    involved = harness.server.all("events")[0]["involvedObject"]
    assert involved == {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixRoute",
        "namespace": "default",
        "name": "web",
        "uid": meta.uid,
    }


async def test_an_event_that_expired_is_created_again(harness: StatusHarness) -> None:
    meta = harness.stores["ApisixRoute"].get(WEB).meta  # type: ignore[union-attr]
    harness.recorder.record(meta, "Normal", "Seen", "hello")
    await harness.until(lambda: len(harness.events()) == 1, "an Event")
    harness.server.remove("events", harness.server.all("events")[0]["metadata"]["name"])
    harness.recorder.record(meta, "Normal", "Seen", "hello")
    await harness.until(lambda: [each[3] for each in harness.events()] == [1], "a new Event")


async def test_too_many_events_and_forbidden_ones_are_dropped(harness: StatusHarness) -> None:
    meta = harness.stores["ApisixRoute"].get(WEB).meta  # type: ignore[union-attr]
    for number in range(1003):
        harness.recorder.record(meta, "Normal", "Seen", f"hello {number}")
    assert (len(harness.recorder), harness.dropped) == (1000, 3)
    harness.server.faults.append(Fault("create", "events", status=403))
    await harness.until(lambda: harness.dropped > 5, "drops")
    assert harness.events() == []


async def test_an_event_for_a_terminating_namespace_is_dropped_silently(harness: StatusHarness) -> None:
    text = "events is forbidden: unable to create new content in namespace default because it is being terminated"
    body = json.dumps({"kind": "Status", "code": 403, "message": text})
    harness.server.faults.append(Fault("create", "events", status=403, body=body))
    with capture_logs() as logs:
        harness.want(WEB, synced(1))
        await harness.until(lambda: harness.dropped == 1, "the drop")
    assert [line["log_level"] for line in logs if line["event"] == "event.dropped"] == ["debug"]


async def test_warnings_precede_successes_and_are_not_dropped_for_them(harness: StatusHarness) -> None:
    meta = harness.stores["ApisixRoute"].get(WEB).meta  # type: ignore[union-attr]
    harness.recorder.record(meta, "Warning", "Failed", "broken")
    for number in range(1001):
        harness.recorder.record(meta, "Normal", "Seen", f"hello {number}")
    harness.recorder.record(meta, "Warning", "Failed", "broken as well")
    await harness.until(lambda: len(harness.events()) > 2, "some Events")
    got = [message for _, _, message, _ in harness.events()[:3]]
    assert got == ["broken", "broken as well", "hello 3"]
