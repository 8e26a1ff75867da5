"""Planting defects: functions of the product are replaced by others with the same parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

from tests.simulation.runner import play

Plant = Callable[[], AbstractContextManager[Any]]
DEFECTS: dict[str, Plant] = {}
"""Name → the defect, a context manager: it is active inside its context."""


def defect(name: str) -> Callable[[Plant], Plant]:
    """Register a defect."""

    def register(plant: Plant) -> Plant:
        assert name not in DEFECTS
        DEFECTS[name] = plant
        return plant

    return register


def instead(owner: Any, name: str, new: Any) -> AbstractContextManager[Any]:
    """Replace an attribute of the product.

    Raises:
        TypeError: The function does not accept the calls of the replaced one: every story would fail, whatever the
            defect.
    """
    old = getattr(owner, name)
    if callable(old):
        _check_calls(inspect.signature(old), inspect.signature(new), f"{owner.__name__}.{name}")
    return patch.object(owner, name, new)


def catch(name: str, seeds: int) -> tuple[str, int | None, str]:
    """Plant a defect and play; return its name, the first failing seed, if any, and the failure."""
    with DEFECTS[name]():
        for seed in range(seeds):
            outcome = play(seed)
            if outcome.problem:
                reported = outcome.problem.splitlines()
                # The first violated rule is more informative than the final error.
                return name, seed, reported[1] if len(reported) > 1 else reported[0]
    return name, None, ""


def _check_calls(old: inspect.Signature, new: inspect.Signature, name: str) -> None:
    takes_any = any(each.kind is each.VAR_POSITIONAL for each in new.parameters.values())
    found = [each for each in old.parameters.values() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    for given in (found, [each for each in found if each.default is each.empty]):
        keywords = {each.name: None for each in given if each.kind is each.KEYWORD_ONLY}
        positional = [each.name for each in given if each.name not in keywords]
        try:
            new.bind(*positional, **keywords)
            if not takes_any:
                new.bind(**keywords, **dict.fromkeys(positional))
        except TypeError as error:
            raise TypeError(f"the replacement of {name} does not accept its calls: {error}") from None
