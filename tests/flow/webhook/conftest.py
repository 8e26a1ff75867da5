"""The webhook that most tests here send requests to."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.flow.webhook.harness import PATIENT, Client, Gateway, serving


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with serving(tmp_path, Gateway(), PATIENT, lambda: True) as serves:
        yield serves
