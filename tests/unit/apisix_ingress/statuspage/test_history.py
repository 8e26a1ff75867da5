"""The journal: when a page has to be looked at again, and what is remembered."""

from collections.abc import Callable

from apisix_ingress.gateway.sync.observer import APPLIED
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.statuspage.history import REMEMBERED, History
from tests.factories import make_key
from tests.fakes.clock import FakeClock

KEY = RecordKey("routes", "1")


def test_whatever_may_show_makes_a_new_revision() -> None:
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


def test_audit_without_drift_is_no_repair() -> None:
    journal = History(FakeClock())
    journal.drift("a", 0)
    assert (journal.revision, list(journal.of("a").repairs)) == (0, [])


def test_success_takes_a_failure_back() -> None:
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
