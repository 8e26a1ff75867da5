"""One gateway and two upstreams for each module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.devgateway.process import DevGateway
from tests.unit.e2e.devgateway.backends import upstreams


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    with upstreams("u1", "u2") as running:
        yield running


@pytest.fixture(scope="module")
def running() -> Iterator[DevGateway]:
    with DevGateway() as gateway:
        yield gateway


@pytest.fixture
def gateway(running: DevGateway) -> DevGateway:
    running.wipe()
    return running
