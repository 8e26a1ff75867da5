"""The history: its revision, and what it keeps."""

from collections.abc import Callable

import pytest

from apisix_ingress.gateway.sync.observer import APPLIED, RecordState
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.problem import Problem
from apisix_ingress.state.world import Report
from apisix_ingress.statuspage import history
from apisix_ingress.statuspage.history import MOST_CHANGES, REMEMBERED, History
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


def test_since_is_the_first_of_several_reports_until_the_problem_ends() -> None:
    reports: dict[ObjectKey, Report] = {}
    clock = FakeClock()
    journal, owner, began = History(clock, reports), make_key(), clock.now()
    for problems, want in (((Problem("X", "no"),), began), ((Problem("Y", "no"),), began), ((), None)):
        reports[owner] = Report(1, problems)
        journal.reported(owner)
        assert journal.since(owner) == want


def test_the_since_of_a_record_ends_when_the_gateway_accepts_it() -> None:
    clock = FakeClock()
    journal, began = History(clock), clock.now()
    journal.outcome("a", KEY, RecordState("rejected", "no"))
    assert journal.since(("a", KEY)) == began
    journal.outcome("a", KEY, APPLIED)
    assert journal.since(("a", KEY)) is None


def test_number_of_remembered_beginnings_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_SINCE", 2)
    journal = History(FakeClock())
    keys = [RecordKey("routes", str(number)) for number in range(3)]
    for key in keys:
        journal.outcome("a", key, RecordState("rejected", "no"))
    assert [journal.since(("a", key)) is not None for key in keys] == [False, True, True]
