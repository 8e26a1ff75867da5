"""What a step is and returns, and how steps run one after the other. The modules beside this one have the steps."""

import re
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from e2e.release.shell import CommandError, Shell

Facts = Mapping[str, str]
"""What a step saw: a name and a figure or a sentence. An empty mapping is a step without figures."""

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"


class NotRunError(Exception):
    """A step cannot run on this machine; the message contains the exact error."""


@dataclass
class Rehearsal:
    """The state that steps share.

    Attributes:
        checkout: The files of the commit that is released, without anything that is not committed.
        work: Folder for what the steps write; the report is there as well.
        commit: The commit. previous: The commit that users upgrade from.
        epoch: The time of the commit, in seconds.
    """

    checkout: Path
    work: Path
    commit: str
    previous: str
    epoch: int
    shell: Shell
    made: dict[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The version of the package."""
        text = (self.checkout / "apisix_ingress/__init__.py").read_text()
        return str(re.search(r'^__version__ = "(.+)"', text, re.MULTILINE)[1])  # type: ignore[index]

    def need(self, name: str) -> str:
        """Return what an earlier step made.

        Raises:
            NotRunError: if that step did not make it.
        """
        if name not in self.made:
            raise NotRunError(f"an earlier step did not make {name}")
        return self.made[name]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: a sentence as its name, and the function that runs it."""

    part: str
    name: str
    run: Callable[[Rehearsal], Facts]


@dataclass(frozen=True, slots=True)
class Result:
    """How a step ended."""

    part: str
    name: str
    outcome: str
    seconds: float
    facts: Facts
    error: str = ""


def run_steps(steps: Iterable[Step], rehearsal: Rehearsal, say: Callable[[str], None]) -> list[Result]:
    """Run every step and return the results; a failed step does not end the rehearsal."""
    results = []
    for step in steps:
        say(f"{step.part}: {step.name} ...")
        results.append(result := run_step(step, rehearsal))
        say(f"  {result.outcome} in {result.seconds:.0f} s{': ' + result.error if result.error else ''}")
    return results


def run_step(step: Step, rehearsal: Rehearsal) -> Result:
    """Run one step; every error becomes a result with the error's text."""
    started = time.monotonic()
    facts: Facts = {}
    outcome, error = PASSED, ""
    try:
        facts = step.run(rehearsal)
    except NotRunError as e:
        outcome, error = NOT_RUN, str(e)
    except (CommandError, AssertionError) as e:
        outcome, error = FAILED, str(e)
    except Exception:  # a defect in a step must not hide the results of the others
        outcome, error = FAILED, traceback.format_exc()
    return Result(step.part, step.name, outcome, time.monotonic() - started, facts, error)
