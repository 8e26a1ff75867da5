"""When a reflector lists again: the transitions of its state."""

from apisix_ingress.kube.informer.watch_state import MALFORMED_LIMIT, UNANSWERED_LIMIT, WatchState


def watching() -> WatchState:
    state = WatchState()
    state.listed("7")
    return state


def test_an_unusual_list_is_confirmed_after_each_number_of_watches() -> None:
    state, relists = WatchState(), []
    state.listed("7", confirm_after=(1, 3))
    for number in range(1, 7):
        state.watch_ended()
        if state.version is None:
            relists.append(number)
            state.listed("7")
    assert relists == [1, 4]


def test_malformed_watches_in_a_row_cause_a_list() -> None:
    state = watching()
    for _ in range(MALFORMED_LIMIT - 1):
        state.watch_malformed()
    state.event_received()
    for _ in range(MALFORMED_LIMIT - 1):
        state.watch_malformed()
    assert state.version == "7"
    state.watch_malformed()
    assert state.version is None


def test_unanswered_watches_cause_a_check_and_checks_without_rollback_a_list() -> None:
    state, relists = watching(), []
    for _ in range(UNANSWERED_LIMIT):
        for _ in range(UNANSWERED_LIMIT):
            assert not state.needs_check
            state.watch_unanswered()
        assert state.needs_check
        state.version_checked()
        relists.append(state.check_passed())
    assert relists == [False, True]


def test_a_watch_with_a_response_resets_the_count() -> None:
    state = watching()
    state.watch_unanswered()
    state.watch_opened(1.0)
    state.watch_unanswered()
    assert not state.needs_check


def test_silent_watches_in_a_row_cause_a_check() -> None:
    state = watching()
    got = [state.watch_silent(3) for _ in range(2)]
    state.event_received()
    got += [state.watch_silent(3) for _ in range(4)]
    assert got == [False, False, False, False, True, False]


def test_a_kind_is_absent_since_the_first_time() -> None:
    state = watching()
    got = [state.kind_absent(1.0), state.kind_absent(2.0)]
    state.kind_served()
    assert [*got, state.kind_absent(3.0)] == [1.0, 1.0, 3.0]
