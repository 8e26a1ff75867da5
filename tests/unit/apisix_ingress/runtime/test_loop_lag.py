"""The watch of the event loop: the lags that it detects and keeps, and for how long."""

import asyncio
import selectors
import time
from contextlib import closing

import pytest

from apisix_ingress.runtime import loop_lag
from apisix_ingress.runtime.loop_lag import WINDOW, LoopLagWatch, WatchedLoop, watch_running_loop

STALL = 0.05


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the watch sees."""
    now = [1000.0]
    monkeypatch.setattr("apisix_ingress.runtime.loop_lag.time.monotonic", lambda: now[0])
    return now


def test_the_longest_stall_is_remembered_for_a_while(seconds: list[float]) -> None:
    watch = LoopLagWatch()
    for stall in (0.1, 2.0, 0.2):
        watch.record(seconds[0], stall)
    assert watch.longest() == 2.0
    seconds[0] += WINDOW
    watch.record(seconds[0], 0.3)
    assert watch.longest() == 2.0
    seconds[0] += WINDOW
    assert watch.longest() == 0.3
    seconds[0] += 2 * WINDOW
    assert watch.longest() == 0.0


def test_a_blocked_loop_is_detected() -> None:
    async def work() -> float:
        watch = watch_running_loop()
        asyncio.get_running_loop().call_soon(time.sleep, STALL)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return watch.longest()

    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        assert runner.run(work()) >= STALL


@pytest.mark.parametrize(("waits", "lag"), [(1.0, 0.0), (3.0, 2.0)])
def test_a_wait_is_a_stall_only_if_it_ends_late(seconds: list[float], waits: float, lag: float) -> None:
    def wait(self: selectors.DefaultSelector, timeout: float | None = None) -> list[object]:
        seconds[0] += waits
        return []

    with closing(loop_lag._WatchedSelector()) as selector, pytest.MonkeyPatch.context() as patch:
        patch.setattr(selectors.DefaultSelector, "select", wait)
        watch = LoopLagWatch()
        selector.report_to(watch)
        selector.select(1.0)
    assert watch.longest() == lag


async def test_another_loop_reports_nothing() -> None:
    assert watch_running_loop().longest() == 0.0
