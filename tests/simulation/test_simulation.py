"""Despite all faults, two replicas sync two gateway clusters with the objects, and never delete by mistake.

The error of a failing story contains its seed and the command to replay it. `make simulate` runs more of them.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.runner import play

SEEDS = 500
SEEDS_PER_TEST = 10


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_every_story_converges_without_violations(first: int) -> None:
    failed = [outcome for outcome in map(play, range(first, first + SEEDS_PER_TEST)) if outcome.problem]
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
