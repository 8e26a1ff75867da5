"""Writes log lines to a stream without ever failing or blocking for long.

A full disk, a closed pipe or a stalled reader costs log lines, never work: a write that blocks would stop the whole
program, including lease renewal and the handling of SIGTERM.
"""

import os
import select
import stat
import threading
import time
from collections.abc import Callable
from typing import IO

PIECE = select.PIPE_BUF
"""A pipe that is ready accepts at least this many bytes at once."""

_WAIT_SECONDS = 0.1
"""How long a line waits for a slow reader."""
_WAIT_INTERVAL = 1.0
"""Minimum time in seconds between two such waits."""


class LogStream:
    """A binary stream that writes whole lines, or drops them if possible.

    Args:
        stream: The destination; lines bypass it and go to its open file, if it has one.
        render_dropped: Renders a line with the number of dropped lines, which precedes the next line.

    Attributes:
        dropped: Number of lines dropped since the last line that was written.
    """

    def __init__(self, stream: IO[bytes], *, render_dropped: Callable[[int], bytes] = lambda count: b"") -> None:
        self.dropped = 0
        self._stream = stream
        self._render_dropped = render_dropped
        self._file = _file_of(stream)
        self._poll = select.poll()
        self._piece = 0
        self._is_truncated = False
        self._waited_at = -_WAIT_INTERVAL
        self._lock = threading.Lock()
        if self._file is not None:
            self._poll.register(self._file, select.POLLOUT)
            # A regular file accepts any length, and one write per line keeps the lines of several writers apart.
            self._piece = PIECE if not stat.S_ISREG(os.fstat(self._file).st_mode) else 1 << 30

    def write(self, data: bytes) -> int:
        """Write a line, or drop it if the stream does not accept it soon."""
        with self._lock:
            try:
                written = self._put(self._prefix() + data)
            except (OSError, ValueError):
                written = False
            self.dropped = 0 if written else self.dropped + 1
            return len(data) if written else 0

    def flush(self) -> None:
        """Do nothing: lines are not buffered."""

    def _prefix(self) -> bytes:
        """Return what precedes a line: the line end of a truncated line, and the number of dropped lines."""
        return (b"\n" if self._is_truncated else b"") + (self._render_dropped(self.dropped) if self.dropped else b"")

    def _put(self, data: bytes) -> bool:
        """Write data; return whether all of it was accepted."""
        if self._file is None:
            self._stream.write(data)
            self._stream.flush()
            return True
        done = 0
        try:
            while done < len(data):
                if not self._has_room():
                    return False
                done += os.write(self._file, data[done : done + self._piece])
            return True
        finally:
            if done:
                self._is_truncated = done < len(data)

    def _has_room(self) -> bool:
        if self._poll.poll(0):
            return True
        now = time.monotonic()
        if now - self._waited_at < _WAIT_INTERVAL:
            return False
        found = self._poll.poll(_WAIT_SECONDS * 1000)
        self._waited_at = time.monotonic()
        return bool(found)


def _file_of(stream: IO[bytes]) -> int | None:
    """Return the file descriptor of a stream; None if it has none."""
    try:
        stream.flush()
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None
