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
from e2e.explained.corpus import comparable, compare_corpus
from e2e.explained.objects import PROVIDERS

SETS = 6
EACH = 24
"""Of the ingress-nginx corpus, each n-th case is compared here."""

UNLIKE_APISIX = ("edge-methods", "path-encoded")
"""Cases in which the development gateway differs from APISIX."""


@pytest.fixture(scope="module")
def gateway() -> Iterator[DevGateway]:
    with DevGateway(stream=False, faults=False) as found:
        yield found


@pytest.mark.parametrize("provider", PROVIDERS)
def test_predictions_are_right_or_say_what_they_depend_on(gateway: DevGateway, provider: str) -> None:
    found = asyncio.run(compare_sets(target_of(gateway), provider, range(SETS)))

    assert [each.text for each in found if each.verdict == "wrong"] == []
    assert shares(found)["right"] > len(found) / 2


def test_predictions_for_the_corpus_of_ingress_nginx_are_right_or_say_what_they_depend_on(gateway: DevGateway) -> None:
    wanted = [case for case in comparable(EACH) if not case.name.startswith(UNLIKE_APISIX)]

    found = asyncio.run(compare_corpus(target_of(gateway), wanted))

    assert [each.text for each in found if each.verdict == "wrong"] == []
    assert shares(found)["right"] > len(found) / 2
