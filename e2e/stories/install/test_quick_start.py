"""The quick start of the documentation, run unchanged: every command, and the output shown on the page.

It uses the ports on the page, which are free in the network namespace of these tests.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[3]
PAGE = PROJECT / "docs" / "tutorial" / "quick-start.md"
BOUND = 180.0
"""Maximum number of seconds stated on the page."""
MARK = "--- end of command"
CLEAN_UP = "trap 'jobs -p | xargs --no-run-if-empty kill 2>/dev/null || :' EXIT"


@dataclass(frozen=True)
class Command:
    """A command of the page and its output on the page; empty if the page does not show any."""

    text: str
    prints: str


def commands(page: str) -> Iterator[Command]:
    """Yield the commands of the console blocks in order."""
    for block in page.split("```console\n")[1:]:
        lines: list[str] = []
        for part in ("\n" + block.partition("```")[0]).split("\n$ ")[1:]:
            lines = part.rstrip("\n").split("\n")
            length = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\"))
            yield Command("\n".join(lines[:length]), "\n".join(lines[length:]))


def script(steps: list[Command]) -> str:
    """Return a script that stops at the first failing command; background processes end with it."""
    parts = ["set -e", CLEAN_UP]
    for step in steps:
        parts += [step.text, f"echo '{MARK}'"]
    return "\n".join(parts) + "\n"


def test_the_quick_start_works_as_it_is_written() -> None:
    steps = list(commands(PAGE.read_text()))
    done = subprocess.run(
        ["bash", "-c", script(steps)], cwd=PROJECT, capture_output=True, text=True, timeout=BOUND, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
    printed = done.stdout.split(f"{MARK}\n")[:-1]
    assert len(printed) == len(steps)
    for step, got in zip(steps, printed, strict=True):
        assert not step.prints or step.prints in got, f"{step.text}\nprinted:\n{got}"


def test_commands_are_found_with_their_continuation_and_what_they_print() -> None:
    page = "Text\n\n```console\n$ a \\\n    b\n$ c\nd\ne\n```\n\n```yaml\n$ no\n```\n\n```console\n$ f &\n```\n"
    assert list(commands(page)) == [Command("a \\\n    b", ""), Command("c", "d\ne"), Command("f &", "")]
