"""Delayed keys, without a queue."""

from apisix_ingress.runtime.queue.delaying import DelayingHeap


def ripe(delays: DelayingHeap[str], now: float) -> list[tuple[str, bool]]:
    """Return the keys whose time has come, as a queue takes them, with their urgency."""
    found = []
    while (key := delays.ripe(now)) is not None:
        delayed = delays.pop(key)
        assert delayed is not None
        found.append((key, delayed.urgent))
    return found


def test_keys_are_returned_in_the_order_of_their_times() -> None:
    delays = DelayingHeap[str]()
    for key, due in (("c", 3), ("a", 1), ("b", 2)):
        assert delays.put(key, due, urgent=False)
    assert (ripe(delays, 0.9), ripe(delays, 2), ripe(delays, 9)) == ([], [("a", False), ("b", False)], [("c", False)])
    assert len(delays) == 0


def test_the_earliest_time_is_used_and_urgency_is_kept() -> None:
    delays = DelayingHeap[str]()
    assert delays.put("a", 5, urgent=False)
    assert not delays.put("a", 9, urgent=True)
    assert delays.put("a", 2, urgent=False)
    assert delays.look_at() == 2
    assert (ripe(delays, 2), ripe(delays, 9)) == ([("a", True)], [])


def test_a_removed_key_is_not_handed_out_when_it_is_due() -> None:
    delays = DelayingHeap[str]()
    delays.put("a", 1, urgent=False)
    assert delays.pop("a") is not None
    assert delays.pop("a") is None
    assert ripe(delays, 9) == []


def test_a_flapping_key_with_long_delays_takes_no_memory() -> None:
    delays = DelayingHeap[str]()
    for _ in range(10_000):
        delays.put("a", 1e6, urgent=False)
        delays.pop("a")
    assert len(delays) == 0
    assert len(delays._heap) < 100
