"""Waiting for conditions, for tests that run the real loop."""

import asyncio
from collections.abc import Callable

import pytest

WAIT_SECONDS = 15.0
"""Only ends a test that would never end."""


async def until(condition: Callable[[], bool], what: str, *, state: Callable[[], object]) -> None:
    """Wait for a condition; if it never holds, the test fails and shows the state."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():  # noqa: ASYNC110  # what is waited for has no event to wait on
                await asyncio.sleep(0.002)
    except TimeoutError:
        pytest.fail(f"never came: {what}; {state()}")
