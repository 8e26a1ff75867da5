"""The API server that most tests of the whole program talk to; those that need another have their own."""

from collections.abc import AsyncIterator

import pytest

from tests.fakes.apiserver import FakeApiServer


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    async with FakeApiServer() as running:
        yield running
