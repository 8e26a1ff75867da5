"""Conditions of objects, written to an API server over HTTP."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.model.condition import aborted, synced
from tests.fakes.kube.apiserver import Fault, Kind
from tests.flow.kube.status.harness import WEB, StatusHarness, route
from tests.waiting import WAIT_SECONDS


async def test_a_condition_is_written_once_with_its_event(harness: StatusHarness) -> None:
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)
    [got] = harness.conditions()
    assert got.pop("lastTransitionTime") != ""
    assert got == {
        "type": "ResourcesAvailable",
        "status": "True",
        "reason": "ResourcesSynced",
        "message": "Sync Successfully",
        "observedGeneration": 1,
    }
    await harness.until(lambda: len(harness.events()) == 1, "an Event")
    assert harness.events() == [("Normal", "ResourcesSynced", "ApisixIngress synced successfully", 1)]
    for _ in range(3):
        harness.writer.wake(WEB)
        assert await harness.writer.flush(WAIT_SECONDS)
    await harness.until_stored(WEB)
    harness.writer.wake(WEB)
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.writes() == 1


async def test_conditions_and_fields_of_others_are_kept(harness: StatusHarness) -> None:
    foreign = {"type": "Checked", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    harness.server.put({**route(), "status": {"conditions": [foreign], "note": "theirs"}})
    await harness.until_stored(WEB)
    harness.want(WEB, aborted(1, "no Service"))
    await harness.until_said("False", 1)
    assert harness.conditions()[0] == foreign
    assert (harness.server.get("apisixroutes", "web") or {})["status"]["note"] == "theirs"
    await harness.until(lambda: len(harness.events()) == 1, "an Event")
    want = ("Warning", "ResourceSyncAborted", "ApisixIngress synced failed, with error: no Service", 1)
    assert harness.events() == [want]


def put_conditions(harness: StatusHarness, *conditions: dict[str, Any]) -> None:
    """Write the status as another client."""
    item = harness.server.get("apisixroutes", "web") or {}
    harness.server.put({**item, "status": {**item["status"], "conditions": list(conditions)}})


@pytest.mark.parametrize("others", [[], [{"type": "ResourcesAvailable", "status": "Unknown"}]], ids=["gone", "changed"])
async def test_an_overwritten_condition_is_repaired(harness: StatusHarness, others: list[dict[str, Any]]) -> None:
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)
    await harness.until_stored(WEB)
    put_conditions(harness, *others)
    await harness.until_said("True", 1)
    await harness.until(lambda: harness.outcomes == [("ApisixRoute", "ok")] * 2, "the answers to two writes")


async def test_foreign_conditions_wake_no_owner(harness: StatusHarness) -> None:
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)
    await harness.until_stored(WEB)
    await harness.until(lambda: harness.writer.queue.is_idle, "nothing to do")
    put_conditions(harness, *harness.conditions(), {"type": "Theirs", "status": "True"})
    await harness.until_stored(WEB)
    assert (harness.writer.queue.is_idle, harness.writer.queue.delayed) == (True, 0)


async def test_the_transition_time_changes_with_the_status_only(harness: StatusHarness) -> None:
    old = {
        "type": "ResourcesAvailable",
        "status": "True",
        "reason": "ResourcesSynced",
        "message": "Sync Successfully",
        "observedGeneration": 1,
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    harness.server.put({**route(), "status": {"conditions": [old]}})
    await harness.until_generation(2)
    harness.want(WEB, synced(2))
    await harness.until_said("True", 2)
    assert harness.conditions() == [{**old, "observedGeneration": 2}]
    harness.want(WEB, aborted(2, "broken"))
    await harness.until_said("False", 2)
    assert harness.conditions()[0]["lastTransitionTime"] > "2025"
    await harness.until(lambda: len(harness.events()) == 1, "an Event for the change of words only")


async def test_a_conflict_is_resolved_with_a_new_read(harness: StatusHarness) -> None:
    harness.server.bookmarks = False
    harness.server.order("apisixroutes", "stall")
    harness.server.put({**route(), "status": {"conditions": [{"type": "Checked", "status": "True"}]}})
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)
    assert [each["type"] for each in harness.conditions()] == ["Checked", "ResourcesAvailable"]
    harness.want(WEB, aborted(1, "no more"))
    await harness.until_said("False", 1)
    assert harness.server.count("patch", "apisixroutes") == 3


async def test_a_lost_reply_does_not_lead_to_a_second_write(harness: StatusHarness) -> None:
    harness.server.faults.append(Fault("patch", "apisixroutes", apply=True, cut=True, times=1))
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)
    await harness.until(lambda: harness.server.count("get", "apisixroutes") == 1, "a fresh read")
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.writes() == 1


async def test_an_older_generation_never_overwrites_a_newer_one(harness: StatusHarness) -> None:
    await harness.until_generation(5)
    harness.want(WEB, synced(5))
    await harness.until_said("True", 5)
    harness.want(WEB, aborted(4, "late"))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.conditions()[0]["observedGeneration"], harness.writes()) == (5, 1)


async def test_a_long_message_is_cut_with_a_hash_of_the_whole(harness: StatusHarness) -> None:
    harness.want(WEB, aborted(1, "x" * 5000))
    await harness.until_said("False", 1)
    message = harness.conditions()[0]["message"]
    assert len(message) == 1024
    assert message.startswith("xxx")
    harness.writer.wake(WEB)
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.writes() == 1
    await harness.until(lambda: len(harness.events()) == 1, "an Event")
    assert len(harness.events()[0][2]) == 1024


async def test_failures_that_do_not_last_are_never_reported(harness: StatusHarness) -> None:
    harness.want(WEB, aborted(1, "its Service is not known yet"))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), harness.writer.queue.delayed) == (0, 1)
    harness.want(WEB, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert [condition["status"] for condition in harness.conditions()] == ["True"]
    await harness.until(lambda: bool(harness.events()), "an Event")
    assert [event[0] for event in harness.events()] == ["Normal"]


async def test_rewording_in_a_burst_is_written_at_most_once_at_a_time(harness: StatusHarness) -> None:
    harness.want(WEB, aborted(1, "attempt 0 failed"))
    await harness.until_said("False", 1)
    for number in range(1, 5):
        harness.want(WEB, aborted(1, f"attempt {number} failed"))
        assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), harness.writer.queue.delayed) == (1, 1)


async def test_a_deleted_object_is_forgotten(harness: StatusHarness) -> None:
    harness.server.faults.append(Fault("watch", status=500))
    harness.server.order("apisixroutes", "cut")
    harness.server.remove("apisixroutes", "web")
    harness.want(WEB, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), harness.writer.queue.delayed) == (1, 0)


async def test_a_kind_without_status_subresource_is_tried_once(harness: StatusHarness) -> None:
    harness.server.install(Kind("ApisixRoute", "apisix.apache.org/v2", "apisixroutes", status=False))
    for _ in range(3):
        harness.want(WEB, synced(1))
        assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), harness.writer.queue.delayed) == (1, 0)


@pytest.mark.parametrize("status", [404, 409])
async def test_a_recreated_object_gets_only_its_own_status(harness: StatusHarness, status: int) -> None:
    unseen = Fault("watch", status=500)
    harness.server.faults.append(unseen)
    harness.server.order("apisixroutes", "cut")
    harness.server.remove("apisixroutes", "web")
    harness.server.put(route())
    harness.server.faults.append(Fault("patch", "apisixroutes", status=status, times=1))
    harness.want(WEB, synced(1))
    await harness.until(lambda: harness.server.count("get", "apisixroutes") > 0, "a look at the object")
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.conditions(), harness.writes(), harness.writer.queue.delayed) == ([], 1, 0)
    harness.server.faults.remove(unseen)
    await harness.until_stored(WEB)
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)


@pytest.mark.parametrize("status", [403, 422])
async def test_a_rejected_write_is_retried_slowly(harness: StatusHarness, status: int) -> None:
    harness.server.faults.append(Fault("patch", "apisixroutes", status=status))
    harness.want(WEB, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), harness.writer.queue.delayed) == (1, 1)


async def test_a_permission_that_is_lost_again_is_reported_again(harness: StatusHarness) -> None:
    forbidden = Fault("patch", "apisixroutes", status=403)
    with capture_logs() as logs:
        for generation in (1, 2):
            await harness.until_generation(generation)
            harness.server.faults.append(forbidden)
            harness.want(WEB, synced(generation))
            assert await harness.writer.flush(WAIT_SECONDS)
            harness.writer.wake(WEB)
            assert await harness.writer.flush(WAIT_SECONDS)
            harness.server.faults.remove(forbidden)
            harness.writer.wake(WEB)
            await harness.until_said("True", generation)
            assert await harness.writer.flush(WAIT_SECONDS)
    got = [line["remedy"] for line in logs if line["event"] == "status.rejected"]
    assert got == ["grant patch on apisixroutes/status"] * 2


async def test_an_unavailable_api_server_is_retried(harness: StatusHarness) -> None:
    harness.server.faults.append(Fault("patch", "apisixroutes", status=500, times=2))
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)
    assert harness.writes() == 3


async def test_nothing_is_written_after_the_term(harness: StatusHarness) -> None:
    harness.term.end()
    harness.want(WEB, synced(1))
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(harness.writing, WAIT_SECONDS)
    assert caught.value.subgroup(LeadershipLost) is not None
    assert harness.writes() == 0
