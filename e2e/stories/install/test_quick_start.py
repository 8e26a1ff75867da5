"""The quick start of the documents, run as it stands: every command, and what the page says it prints.

It uses the ports that the page names, which are free in the network namespace of these tests.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[3]
PAGE = PROJECT / "docs" / "tutorial" / "quick-start.md"
BOUND = 180.0
"""Seconds that the page promises at most."""
MARK = "--- end of command"
CLEAN_UP = "trap 'jobs -p | xargs --no-run-if-empty kill 2>/dev/null || :' EXIT"


@dataclass(frozen=True)
class Command:
    """A command of the page and what it prints, by the page; empty: the page does not say."""

    text: str
    prints: str


def commands(page: str) -> Iterator[Command]:
    """Yield the commands of the console blocks in their order."""
    for block in page.split("```console\n")[1:]:
        lines: list[str] = []
        for part in ("\n" + block.partition("```")[0]).split("\n$ ")[1:]:
            lines = part.rstrip("\n").split("\n")
            length = next(number for number, line in enumerate(lines, 1) if not line.endswith("\\"))
            yield Command("\n".join(lines[:length]), "\n".join(lines[length:]))


def script(steps: list[Command]) -> str:
    """Return a script that stops at the first command that fails; what is left in the background ends with it."""
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
