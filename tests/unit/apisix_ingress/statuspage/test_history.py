"""The history: its revision, and what it keeps."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from apisix_ingress.gateway.adminapi.responses import found_of
from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.observer import APPLIED, RecordState
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.model.records import Record
from apisix_ingress.state.world import Report
from apisix_ingress.statuspage import history
from apisix_ingress.statuspage.history import LARGEST_BODY, MOST_CHANGES, REMEMBERED, History
from tests.factories import make_key
from tests.fakes.clock import FakeClock

KEY = RecordKey("routes", "1")


def test_every_visible_change_makes_a_new_revision() -> None:
    journal = History(FakeClock())
    steps: tuple[Callable[[], object], ...] = (
        lambda: journal.outcome("a", KEY, APPLIED),
        lambda: journal.compared("a", True),
        lambda: journal.compared("a", False),
        lambda: journal.drift("a", 1),
        lambda: journal.held("a", 2),
        lambda: journal.breaker("a", True),
        lambda: journal.reported(make_key()),
    )
    for number, step in enumerate(steps, 1):
        step()
        assert journal.revision == number


def test_audit_without_drift_is_not_a_repair() -> None:
    journal = History(FakeClock())
    journal.drift("a", 0)
    assert (journal.revision, list(journal.of("a").repairs)) == (0, [])


def test_a_success_clears_a_failure() -> None:
    journal, clock = History(FakeClock()), FakeClock()
    journal.compared("a", ok=False)
    assert journal.of("a").failed_at == clock.now()
    journal.compared("a", ok=True)
    assert (journal.of("a").failed_at, journal.of("a").compared_at) == (None, clock.now())


def test_only_the_latest_repairs_are_remembered() -> None:
    journal = History(FakeClock())
    for number in range(1, REMEMBERED + 11):
        journal.drift("a", number)
    assert [each.records for each in journal.of("a").repairs] == list(range(11, REMEMBERED + 11))


def test_latest_change_of_each_record_is_remembered_the_newest_first() -> None:
    journal = History(FakeClock())
    other = RecordKey("routes", "2")
    journal.written("a", KEY, "created", "one", "ok")
    journal.written("a", other, "created", "two", "ok")
    journal.written("b", KEY, "created", "one", "ok")
    journal.written("a", KEY, "updated", "one", "ok")
    got = [(each.cluster, each.key, each.change, each.times) for each in journal.changes()]
    assert got == [("a", KEY, "updated", 2), ("b", KEY, "created", 1), ("a", other, "created", 1)]


def test_number_of_remembered_changes_is_limited() -> None:
    journal = History(FakeClock())
    for number in range(MOST_CHANGES + 5):
        journal.written("a", RecordKey("routes", str(number)), "created", "", "ok")
    found = list(journal.changes())
    assert (len(found), found[0].key.id, found[-1].key.id) == (MOST_CHANGES, str(MOST_CHANGES + 4), "5")


async def test_each_problem_has_the_time_when_it_began_until_it_ends() -> None:
    reports: dict[ObjectKey, Report] = {}
    clock, owner = FakeClock(), make_key()
    journal, one, other = History(clock, reports), Problem("X", "no"), Problem("Y", "no")
    journal.ready()
    began = clock.now()
    for problems, want in (((one,), (0, None)), ((one, other), (0, 1)), ((other,), (None, 1)), ((), (None, None))):
        reports[owner] = Report(1, problems)
        journal.reported(owner)
        times = (journal.since(owner, "X"), journal.since(owner, "Y"))
        assert tuple(None if each is None else (each - began).total_seconds() for each in times) == want
        await clock.advance(1)


def test_a_problem_from_before_the_start_has_no_time() -> None:
    owner = make_key()
    journal = History(FakeClock(), {owner: Report(1, (Problem("X", "no"),))})
    journal.reported(owner)
    journal.ready()
    journal.reported(owner)
    assert journal.since(owner, "X") is None


def test_the_since_of_a_record_ends_when_the_gateway_accepts_it() -> None:
    clock = FakeClock()
    journal, began = History(clock), clock.now()
    journal.outcome("a", KEY, RecordState("rejected", "no"))
    assert journal.rejected("a", KEY) == began
    journal.outcome("a", KEY, APPLIED)
    assert journal.rejected("a", KEY) is None


def test_number_of_remembered_beginnings_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_SINCE", 2)
    journal = History(FakeClock())
    keys = [RecordKey("routes", str(number)) for number in range(3)]
    for key in keys:
        journal.outcome("a", key, RecordState("rejected", "no"))
    assert [journal.rejected("a", key) is not None for key in keys] == [False, True, True]


def found(**values: Any) -> ObservedRecord:
    body = {"name": "default_web_80", "nodes": [], **values}
    return found_of("upstreams", body)


def at(clock: FakeClock, seconds: int) -> int:
    return int(clock.now().timestamp()) + seconds


def test_changes_of_earlier_leaders_are_read_from_the_gateway() -> None:
    clock, upstreams = FakeClock(), [RecordKey("upstreams", str(number)) for number in range(5)]
    journal = History(clock)
    journal.inherited(
        "a",
        {
            upstreams[0]: found(create_time=at(clock, -60), update_time=at(clock, -60)),
            upstreams[1]: found(create_time=at(clock, -90_000), update_time=at(clock, -600)),
            upstreams[2]: found(create_time=at(clock, -90_000), update_time=at(clock, -4_000)),
            upstreams[3]: found(create_time="soon", update_time=2**60),
            upstreams[4]: found(create_time=at(clock, 90), update_time=at(clock, 90)),
        },
    )
    journal.written("a", KEY, "created", "own", "ok")
    now = clock.now()
    got = [(each.key, each.change, round((now - each.at).total_seconds())) for each in journal.changes()]
    assert got == [
        (KEY, "created", 0),
        (upstreams[4], "created", 0),
        (upstreams[0], "created", 60),
        (upstreams[1], "updated", 600),
    ]
    assert [each.before for each in journal.changes()] == [b""] * 4


def test_own_changes_are_not_replaced_by_what_the_gateway_lists() -> None:
    clock, key = FakeClock(), RecordKey("upstreams", "1")
    journal = History(clock)
    journal.written("a", key, "updated", "own", "ok")
    journal.inherited("a", {key: found(create_time=at(clock, -60), update_time=at(clock, 0))})
    assert [(each.change, each.name) for each in journal.changes()] == [("updated", "own")]


def test_bodies_of_a_change_are_kept_unless_they_are_large() -> None:
    journal, key = History(FakeClock()), RecordKey("routes", "1")
    before, after = Record(key, "r", {"uri": "/a"}), Record(key, "r", {"uri": "/b"})
    journal.replaced("a", key, before, after)
    journal.written("a", key, "updated", "r", "ok")
    (change,) = journal.changes()
    assert (change.before, change.after) == (before.digest, after.digest)
    journal.replaced("a", key, after, Record(key, "r", {"uri": "/" * LARGEST_BODY}))
    journal.written("a", key, "updated", "r", "ok")
    (change,) = journal.changes()
    assert (change.before, change.after) == (after.digest, b"")


def test_an_upstream_is_empty_since_its_last_node_left_also_before_a_failover() -> None:
    clock, key = FakeClock(), RecordKey("upstreams", "1")
    journal = History(clock)
    journal.inherited("a", {key: found(create_time=at(clock, -900), update_time=at(clock, -300))})
    since = journal.emptied("a", key)
    assert since is not None
    assert round((clock.now() - since).total_seconds()) == 300
    empty, full = Record(key, "u", {"nodes": []}), Record(key, "u", {"nodes": [{"host": "a", "port": 1}]})
    journal.replaced("a", key, empty, empty)
    assert journal.emptied("a", key) == since
    journal.replaced("a", key, empty, full)
    assert journal.emptied("a", key) is None
    journal.replaced("a", key, full, empty)
    assert journal.emptied("a", key) == clock.now()
    journal.replaced("a", key, empty, None)
    assert journal.emptied("a", key) is None


def test_events_of_earlier_leaders_have_the_time_when_an_object_began_to_fail() -> None:
    clock, owner = FakeClock(), make_key()
    reports: dict[ObjectKey, Report] = {}
    journal, code = History(clock, reports), "ServiceNotFound"
    earlier = clock.now() - timedelta(minutes=6)
    journal.announced({(owner, code): earlier})
    reports[owner] = Report(1, (Problem(code, "gone"),))
    journal.reported(owner)
    assert (journal.since(owner, code), journal.since(owner, "Other")) == (earlier, None)
    journal.ready()
    reports[owner] = Report(2, ())
    journal.reported(owner)
    reports[owner] = Report(3, (Problem(code, "gone"),))
    journal.reported(owner)
    assert journal.since(owner, code) == clock.now()


def test_the_repair_of_a_record_that_another_client_deleted_is_not_a_new_record() -> None:
    journal = History(FakeClock())
    journal.drifted("a", KEY)
    for change in ("created", "updated"):
        journal.written("a", KEY, change, "one", "ok")
        assert [each.change for each in journal.changes()] == ["restored" if change == "created" else "updated"]
