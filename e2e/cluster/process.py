"""One child process with a log file: start it, monitor it, end it by its id. Callers specify the command."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

TAIL_LINES = 20


def whole_lines(path: Path) -> list[str]:
    """Return the lines of a file that is being written, without an incomplete last line."""
    return path.read_text(errors="replace").split("\n")[:-1]


class Process:
    """A program that runs in the background, its output in one file (appended over restarts)."""

    def __init__(
        self, name: str, command: Sequence[str | Path], *, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.command = [str(part) for part in command]
        self.log = log
        self._env = dict(os.environ) | dict(env or {})
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        return self._child.pid if self._child and self._child.poll() is None else None

    @property
    def returncode(self) -> int | None:
        """The exit status; None while it runs or before it was started."""
        return self._child.poll() if self._child else None

    def start(self) -> None:
        """Start the program; it is not ready yet when this returns."""
        if self.pid is not None:
            raise RuntimeError(f"{self.name} runs already")
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            # In its own session: Ctrl-C at the terminal must only reach this process, which stops the others in order.
            self._child = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._env,
                start_new_session=True,
            )

    def stop(self, grace: float = 1.0) -> None:
        """Terminate it, and kill it after `grace` seconds if it has not exited. Does nothing if it is not running."""
        if self._child is None:
            return
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(grace)
            except subprocess.TimeoutExpired:
                self._child.kill()
        self._child.wait()

    def kill(self) -> None:
        """Kill it immediately, like a crash or a lost machine."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def pause(self) -> None:
        """Freeze it (SIGSTOP): its sockets stay open, but it does not respond."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue after `pause` (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def tail(self, lines: int = TAIL_LINES) -> str:
        """Return the last lines of its output."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _signal(self, number: int) -> None:
        if self._child is None or self._child.poll() is not None:
            raise RuntimeError(f"{self.name} does not run")
        self._child.send_signal(number)
