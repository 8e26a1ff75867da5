"""Despite all faults, two replicas sync two gateway clusters with the objects, and never delete by mistake.

The error of a failing story contains its seed and the command to replay it. `make simulate` runs more of them.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from apisix_ingress.model.target import STANDALONE, Mode
from tests.simulation.runner import play

SEEDS = 500
SEEDS_PER_TEST = 10
STANDALONE_SEEDS = 40


STORIES: list[tuple[Mode, int]] = [
    *(("apisix", first) for first in range(0, SEEDS, SEEDS_PER_TEST)),
    *((STANDALONE, first) for first in range(0, STANDALONE_SEEDS, SEEDS_PER_TEST)),
]


@pytest.mark.parametrize(("mode", "first"), STORIES)
def test_every_story_converges_without_violations(mode: Mode, first: int) -> None:
    played = [play(seed, mode=mode) for seed in range(first, first + SEEDS_PER_TEST)]
    failed = [outcome for outcome in played if outcome.problem]
    assert not failed, "\n\n".join(f"{outcome.command}\n{outcome.problem}" for outcome in failed)


@pytest.mark.parametrize("seed", [3, 11])
def test_a_seed_determines_the_whole_story(seed: int) -> None:
    want, got = play(seed, keep_trace=True), play(seed, keep_trace=True)
    assert got.trace == want.trace


@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_story_does_not_depend_on_the_order_of_sets(hash_seed: str) -> None:
    code = "from tests.simulation.runner import play; print(*[play(seed).digest for seed in range(6)])"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    shown = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert shown.stdout.split() == [play(seed).digest for seed in range(6)]
