"""The table of transitions: every phase with every event."""

import pytest

from apisix_ingress.gateway.sync.config import SyncConfig
from apisix_ingress.gateway.sync.driver import RecordDriver
from apisix_ingress.gateway.sync.records.slot import RecordSlot
from apisix_ingress.gateway.sync.records.transitions import TRANSITIONS, Effect, Event, InvalidTransition, Phase
from apisix_ingress.model.keys import RecordKey
from tests.fakes.clock import FakeClock
from tests.fakes.gateway import FakeWanted

AT_REST = (Phase.IDLE, Phase.REJECTED, Phase.READY, Phase.RETRYING, Phase.BLOCKED)

# Event → the phase that follows, by phase: idle, rejected, ready, retrying, blocked, in flight, changed.
# "-": the event cannot happen then; "=": the phase stays as it is.
WANT = """
wanted         ready    ready    ready    ready    ready    changed  =
unwanted       ready    ready    ready    ready    ready    changed  =
started        in-flight in-flight in-flight in-flight in-flight -   -
succeeded      -        -        -        -        -        idle     ready
closed         -        -        -        -        -        ready    ready
write-rejected -        -        -        -        -        ready    ready
failed         -        -        -        -        -        ready    ready
unknown        -        -        -        -        -        ready    ready
retry-later    retrying retrying retrying =        retrying -        -
retry-now      ready    ready    =        ready    ready    -        -
gave-up        -        -        -        =        -        -        -
block          blocked  blocked  blocked  blocked  =        -        -
unblock        =        =        =        =        ready    =        =
handed-over    =        =        =        ready    =        =        =
as-wanted      =        idle     idle     idle     idle     -        -
left           =        idle     idle     idle     idle     -        -
still-rejected rejected =        rejected rejected rejected -        -
found          =        =        =        =        =        -        -
confirmed      =        =        =        =        =        -        -
missing        =        =        =        =        =        -        -
foreign        =        =        =        =        =        -        -
reported-missing =        =        =        =        =        =        =
"""
PHASES = (*AT_REST, Phase.IN_FLIGHT, Phase.CHANGED)
ROWS = {Event(row.split()[0]): row.split()[1:] for row in WANT.strip().splitlines()}


def test_every_pair_is_listed_here() -> None:
    assert (set(ROWS), set(PHASES)) == (set(Event), set(Phase))
    assert {len(row) for row in ROWS.values()} == {len(PHASES)}


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("phase", PHASES)
def test_each_pair_leads_to_one_phase_or_is_a_bug(phase: Phase, event: Event) -> None:
    want = ROWS[event][PHASES.index(phase)]
    outcome = TRANSITIONS[phase].get(event)
    assert (outcome[0] if outcome else "-") == (phase if want == "=" else want)


def test_event_that_can_not_happen_is_a_bug() -> None:
    driver = RecordDriver(SyncConfig("c", FakeWanted(), clock=FakeClock()), set())
    with pytest.raises(InvalidTransition, match="succeeded while idle"):
        driver.post(RecordSlot(RecordKey("routes", "r1")), Event.SUCCEEDED)


PAIRS = [(phase, event, *outcome) for phase, row in TRANSITIONS.items() for event, outcome in row.items()]


def test_every_effect_is_used() -> None:
    assert {effect for *_, effects in PAIRS for effect in effects} == set(Effect)


def test_what_ends_is_reported_and_unblocks_others() -> None:
    """A record that comes to rest, or is given up, must never leave others waiting or its status outdated."""
    for phase, event, after, effects in PAIRS:
        if after != phase and after in (Phase.IDLE, Phase.REJECTED):
            assert effects[-1] == Effect.SETTLE, (phase, event)


def test_what_is_outstanding_is_queued_or_waits_for_something_that_queues_it() -> None:
    """No record may be ready without a place in the queue: it would never be written."""
    for phase, event, after, effects in PAIRS:
        if after != Phase.READY or phase in (Phase.READY, Phase.CHANGED) or event in (Event.FAILED, Event.UNKNOWN):
            # What was changed in flight is in the queue already; what failed is followed by a retry event.
            continue
        assert Effect.ENQUEUE in effects, (phase, event)


def test_a_write_ends_with_exactly_one_statement_of_the_gateways_record() -> None:
    accounts = {Effect.KEEP_WRITTEN, Effect.KEEP_UNWRITTEN, Effect.KEEP_REJECTED, Effect.KEEP_UNKNOWN}
    for phase, event, after, effects in PAIRS:
        is_end = phase in (Phase.IN_FLIGHT, Phase.CHANGED) and after not in (Phase.IN_FLIGHT, Phase.CHANGED)
        assert len(accounts.intersection(effects)) == is_end, (phase, event)


def test_what_was_ordered_in_flight_is_never_dropped() -> None:
    for event, (_, effects) in TRANSITIONS[Phase.CHANGED].items():
        assert Effect.DROP_ORDER not in effects, event
        if TRANSITIONS[Phase.CHANGED][event][0] != Phase.CHANGED:
            assert {Effect.TAKE_NEXT, Effect.TAKE_NEXT_IN_PLACE}.intersection(effects), event
