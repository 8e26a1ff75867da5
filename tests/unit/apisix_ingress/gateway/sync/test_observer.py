"""Observers of sync engines: several of them see the same calls, in their order."""

from typing import Any

from apisix_ingress.gateway.sync.observer import APPLIED, SyncObserver, SyncObservers
from apisix_ingress.model.keys import RecordKey

KEY = RecordKey("routes", "1")
CALLS: dict[str, tuple[Any, ...]] = {
    "marked": ("a", [KEY], 1.0),
    "outcome": ("a", KEY, APPLIED),
    "written": ("a", "routes", "put", 0.1, "ok"),
    "compared": ("a", True),
    "drift": ("a", 1),
    "held": ("a", 1),
    "breaker": ("a", True),
}


class Recording(SyncObserver):
    """Keeps every call."""

    def __init__(self, name: str, calls: list[tuple[Any, ...]]) -> None:
        for method in CALLS:
            setattr(self, method, lambda *arguments, method=method: calls.append((name, method, arguments)))


def test_every_observer_sees_every_call_in_order() -> None:
    calls: list[tuple[Any, ...]] = []
    observers = SyncObservers(Recording("one", calls), SyncObserver(), Recording("two", calls))
    for method, arguments in CALLS.items():
        getattr(observers, method)(*arguments)
    assert calls == [(name, method, arguments) for method, arguments in CALLS.items() for name in ("one", "two")]


def test_calls_cover_every_method() -> None:
    assert set(CALLS) == {name for name in vars(SyncObserver) if not name.startswith("_")}
