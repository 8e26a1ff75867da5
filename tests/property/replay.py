"""Stories from seeds on a virtual clock, without a log; a failure names its seed."""

import logging
from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from tests.fakes.gateway import VirtualLoop


class Playable(Protocol):
    """The story of a seed."""

    async def play(self) -> None:
        """Run it; raise AssertionError if an invariant is violated."""


def play_each(seeds: Iterable[int], story: Callable[[int], Playable]) -> None:
    """Run the story of each seed."""
    # A log would take longer than the stories.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    for seed in seeds:
        loop = VirtualLoop()
        try:
            loop.run_until_complete(story(seed).play())
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        finally:
            loop.close()
