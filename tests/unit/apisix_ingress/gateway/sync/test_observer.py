"""Observers of sync engines: several of them see the same calls, in their order."""

import asyncio
from typing import Any

from apisix_ingress.errors import GatewayRejected
from apisix_ingress.gateway.sync.observer import APPLIED, SyncObserver, SyncObservers
from apisix_ingress.model.keys import RecordKey
from tests.factories import make_record
from tests.unit.apisix_ingress.gateway.sync.stage import FailingBackend, Stage, on_stage

KEY = RecordKey("routes", "1")
CALLS: dict[str, tuple[Any, ...]] = {
    "marked": ("a", [KEY], 1.0),
    "outcome": ("a", KEY, APPLIED),
    "written": ("a", KEY, "created", "web", "ok"),
    "replaced": ("a", KEY, None, None),
    "inherited": ("a", {}),
    "compared": ("a", True),
    "drifted": ("a", KEY),
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


@on_stage
async def test_only_writes_that_the_gateway_took_are_changes() -> None:
    old, new, bad = (make_record(name, id=name) for name in ("old", "new", "bad"))
    stage = Stage([new, bad], stored=[old])
    FailingBackend(stage, bad.key, GatewayRejected(400, "no"))
    async with stage.running():
        await asyncio.sleep(5)
        stage.want(make_record("new", id="new", body={"uri": "/b"}), bad)
        await asyncio.sleep(5)
        stage.want(bad)
        await asyncio.sleep(5)
    assert stage.notes.changes == [
        ("routes/new", "created", "new"),
        ("routes/new", "updated", "new"),
        ("routes/new", "deleted", "new"),
    ]
