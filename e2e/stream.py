"""Repeats a call in a thread while a story runs; an error in the thread fails the story."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

LAST_CALL = 30.0
"""Time limit in seconds for the last call after `stop`."""


class Stream:
    """Calls a function repeatedly with an increasing number, in a thread, until it is stopped. A context manager."""

    def __init__(self, work: Callable[[int], None], *, pause: float = 0.02) -> None:
        self._work, self._pause = work, pause
        self._stopped = threading.Event()
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, name="e2e-stream", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join(LAST_CALL)
        if error is None:
            assert not self._thread.is_alive(), "the stream did not end"
            if self._errors:
                raise self._errors[0]

    def _run(self) -> None:
        number = 0
        while not self._stopped.wait(self._pause):
            number += 1
            try:
                self._work(number)
            except BaseException as error:  # raised when the stream is stopped
                self._errors.append(error)
                return
