"""Commands of the rehearsal: each one is logged with its output, bounded in time, and fails with the exact error."""

import os
import shlex
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TAIL = 12
NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
"""Prefix of a command that gets a network, mounts and processes of its own, which end with it."""


class CommandError(Exception):
    """A command failed; the message is the command, its status and the end of its output."""


class Shell:
    """Runs commands and appends them, with their output, to one log file."""

    def __init__(self, log: Path) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)

    def run(
        self,
        *command: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        timeout: float = 900.0,
    ) -> str:
        """Run a command and return its standard output, without the last line break.

        Raises:
            CommandError: if it fails, does not exist or takes too long.
        """
        words = [str(word) for word in command]
        started = time.monotonic()
        try:
            done = subprocess.run(
                words,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                input=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as e:
            raise CommandError(f"{_short(words)}: {e}") from e
        self._write(words, done, time.monotonic() - started)
        if done.returncode:
            raise CommandError(f"{_short(words)}: exit status {done.returncode}: {_tail(done.stdout + done.stderr)}")
        return done.stdout.rstrip("\n")

    def bash(self, script: str, *, cwd: Path, env: Mapping[str, str], timeout: float = 900.0) -> str:
        """Run a script as a workflow runs it: bash, ended by the first error."""
        options = ["--noprofile", "--norc", "-eo", "pipefail"]
        return self.run("bash", *options, "-c", script, cwd=cwd, env=env, timeout=timeout)

    def _write(self, words: Sequence[str], done: subprocess.CompletedProcess[str], seconds: float) -> None:
        with self.log.open("a") as log:
            log.write(f"$ {shlex.join(words)}\n{done.stdout}{done.stderr}[{done.returncode}, {seconds:.1f} s]\n\n")


def _short(words: Sequence[str]) -> str:
    line = shlex.join(words)
    return line if len(line) <= 160 else line[:157] + "..."


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-TAIL:])
