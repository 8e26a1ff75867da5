"""What `explain` predicts for generated sets of objects is what the development gateway does.

"Cannot say" is a permitted prediction; a wrong one is a failure. `make explain-differential` compares more sets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from e2e.devgateway.process import DevGateway
from e2e.explained.__main__ import target_of
from e2e.explained.compare import compare_sets, shares
from e2e.explained.objects import PROVIDERS

SETS = 6


@pytest.fixture(scope="module")
def gateway() -> Iterator[DevGateway]:
    with DevGateway(stream=False, faults=False) as found:
        yield found


@pytest.mark.parametrize("provider", PROVIDERS)
def test_predictions_are_right_or_say_what_they_depend_on(gateway: DevGateway, provider: str) -> None:
    found = asyncio.run(compare_sets(target_of(gateway), provider, range(SETS)))

    assert [each.text for each in found if each.verdict == "wrong"] == []
    assert shares(found)["right"] > len(found) / 2
