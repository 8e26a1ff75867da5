"""Waiting for conditions, for tests that run the real loop."""

import asyncio
from collections.abc import Callable

import pytest

WAIT_SECONDS = 40.0
"""Only ends a test that would never end."""


async def until(condition: Callable[[], object], what: str, *, state: Callable[[], object] = str) -> None:
    """Wait for a condition; if it never holds, the test fails and shows the state."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():  # noqa: ASYNC110  # servers, threads and processes make it true, without an event
                await asyncio.sleep(0.002)
    except TimeoutError:
        pytest.fail(f"never came: {what}; {state()}")
