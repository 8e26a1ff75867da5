"""What the event loop reports: each kind a few times a minute."""

import asyncio
from typing import Any

import pytest
import structlog

from apisix_ingress.runtime.loop_errors import MOST, WINDOW, LoopErrors
from tests.fakes.clock import FakeClock


@pytest.fixture
def reports() -> list[str]:
    return []


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def loop_log(reports: list[str], clock: FakeClock) -> LoopErrors:
    return LoopErrors(clock, lambda loop, context: reports.append(str(context["exception"])))


def flood(loop_log: LoopErrors, kind: str = "socket.accept() out of system resource", count: int = 26_000) -> None:
    loop: Any = None
    for number in range(count):
        loop_log(loop, {"message": kind, "exception": OSError(24, f"number {number}")})


def test_a_flood_of_one_kind_is_reported_a_few_times(
    loop_log: LoopErrors, reports: list[str], clock: FakeClock
) -> None:
    flood(loop_log)
    assert len(reports) == MOST
    flood(loop_log, "another")
    assert len(reports) == 2 * MOST
    clock.shift(WINDOW)
    with structlog.testing.capture_logs() as logs:
        flood(loop_log, count=1)
    assert [(entry["event"], entry["count"]) for entry in logs] == [("loop.errors_left_out", 26_000 - MOST)]
    assert len(reports) == 2 * MOST + 1


def test_endlessly_many_kinds_take_no_more_memory(loop_log: LoopErrors, reports: list[str]) -> None:
    for number in range(1000):
        flood(loop_log, f"kind {number}", count=1)
    assert len(reports) == 1000
    assert len(loop_log._tallies) <= 64


async def test_by_default_a_report_is_delivered_through_the_event_loop(caplog: pytest.LogCaptureFixture) -> None:
    LoopErrors(FakeClock())(asyncio.get_running_loop(), {"message": "odd", "exception": ValueError("what it was")})
    assert "odd" in caplog.text
