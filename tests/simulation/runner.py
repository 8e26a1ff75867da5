"""Plays seeds: one, or many in several processes; a failure is reported with the command to replay it."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial

from apisix_ingress.model.target import Mode
from tests.simulation.loop import SimulationLoop
from tests.simulation.replica import replaced
from tests.simulation.story import Story


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one seed.

    Attributes:
        problem: The violated expectation; empty if there is none.
        digest: Of the trace.
        trace: Its text; kept only for failures.
        settled_after: Virtual seconds from the last fault until the expected state was reached.
    """

    seed: int
    mode: Mode
    problem: str
    digest: str
    trace: str
    settled_after: float
    turns: int

    @property
    def command(self) -> str:
        """The command that replays it with a full trace."""
        return f"python -m tests.simulation --seed {self.seed} --mode {self.mode}"


def play(seed: int, *, mode: Mode = "apisix", keep_trace: bool = False) -> Outcome:
    """Play one seed."""
    _freeze()
    # A library uses this randomness for the pauses between attempts of a request.
    random.seed(seed)
    loop = SimulationLoop(random.Random(seed))
    story = loop.run_until_complete(_made(seed, mode))
    problem = ""
    try:
        with replaced(story.seams, story.checks.log):
            try:
                loop.run_until_complete(story.play())
            finally:
                end_all(loop)
    except AssertionError as error:
        problem = str(error) or "an assertion failed"
    except (Exception, asyncio.CancelledError) as error:
        problem = f"{type(error).__name__}: {error}"
    problem = "\n".join([problem, *story.trace.violations]) if problem else ""
    trace = story.trace.text() if problem or keep_trace else ""
    return Outcome(seed, mode, problem, story.trace.digest(), trace, story.settled_after, loop.turns)


def play_many(seeds: Sequence[int], *, mode: Mode, workers: int) -> Iterator[Outcome]:
    """Play many seeds in several processes; yield the results in order."""
    # Fresh interpreters: the state of the parent must not affect the results.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        yield from pool.map(partial(play, mode=mode), seeds, chunksize=10)


@cache
def _freeze() -> None:
    """Exempt the program itself from garbage collection, once: each story collects its own garbage."""
    gc.freeze()


async def _made(seed: int, mode: Mode) -> Story:
    return Story(seed, mode)


def end_all(loop: SimulationLoop) -> None:
    """End the remaining tasks of a failed story."""
    for process in loop.processes:
        process.is_gone, process.is_frozen = True, False
    loop.run_until_complete(_cancel_all())
    loop.close()


async def _cancel_all() -> None:
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=1.0)
