"""`python -m tests.simulation`: play one seed and show its trace, or many and show the failures."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import get_args

from apisix_ingress.model.target import Mode
from tests.simulation.runner import Outcome, play, play_many


def main() -> int:
    """Play the seeds of the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="play only this seed and print its trace")
    parser.add_argument("--seeds", type=int, default=500, help="number of stories to play")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--mode", choices=get_args(Mode), default="apisix", help="where the gateways keep records")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.seed is not None:
        outcome = play(options.seed, mode=options.mode, keep_trace=True)
        print(outcome.trace)
        _tell(outcome)
        return bool(outcome.problem)
    return _play_many(options)


def _play_many(options: argparse.Namespace) -> int:
    began, failed, settled = time.monotonic(), 0, []
    seeds = range(options.start, options.start + options.seeds)
    for outcome in play_many(seeds, mode=options.mode, workers=options.workers):
        settled.append(outcome.settled_after)
        if outcome.problem:
            failed += 1
            _tell(outcome)
    settled.sort()
    middle, worst = settled[len(settled) // 2], settled[-1]
    print(f"{options.seeds} seeds in {time.monotonic() - began:.0f} s: {failed} failed;")
    print(f"settled after {middle:g} s (median),")
    print(f"{worst:g} s (longest) of virtual time")
    return bool(failed)


def _tell(outcome: Outcome) -> None:
    print(f"seed {outcome.seed}: {outcome.problem or 'all is well'} (trace {outcome.digest})")
    if outcome.problem:
        print(f"  again, with what happened: {outcome.command}")


if __name__ == "__main__":
    sys.exit(main())
