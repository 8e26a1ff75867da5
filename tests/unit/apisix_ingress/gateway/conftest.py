"""Fixtures of the engine's tests."""

import asyncio
import logging
from collections.abc import Iterator

import pytest
import structlog

from tests.fakes.gateway import VirtualLoop
from tests.unit.apisix_ingress.gateway.sync.stage import Play


@pytest.fixture
def play() -> Iterator[Play]:
    """Run a coroutine on a loop with virtual time."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    loop = VirtualLoop()
    yield lambda story: loop.run_until_complete(asyncio.wait_for(story, 100_000))
    loop.close()
    structlog.reset_defaults()
