"""`python -m tests.simulation.defects`: plant each defect in turn and play seeds until a story fails."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from tests.simulation.defects import DEFECTS
from tests.simulation.defects.planting import catch

SEEDS = 400


def main() -> int:
    """Plant all defects, or those whose names contain one of some words; return 1 if any is not found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.defects", description=__doc__)
    parser.add_argument("words", nargs="*", default=[""])
    parser.add_argument("--seeds", type=int, default=SEEDS, help="maximum number of stories to play for each defect")
    options = parser.parse_args()
    names, escaped = [name for name in DEFECTS if any(word in name for word in options.words)], 0
    with ProcessPoolExecutor(os.cpu_count() or 1, mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(catch, name, options.seeds) for name in names]):
            name, seed, problem = done.result()
            escaped += seed is None
            found = f"seed {seed}" if seed is not None else f"not within {options.seeds} seeds"
            print(f"{name:<58} {found:<12} {problem[:110].strip()}", flush=True)
    return bool(escaped)


if __name__ == "__main__":
    sys.exit(main())
