"""Where the lines of the log go: a stream whose failures end nothing, and which holds nothing up.

A full disk, a closed pipe or a reader that stands still costs lines, never the work: a write that blocks would stop the
whole program, its lease and its answer to SIGTERM included. What a line says is not known here.
"""

import os
import select
import stat
import threading
import time
from collections.abc import Callable
from typing import IO

PIECE = select.PIPE_BUF
"""So many bytes a pipe takes at once when it takes any."""

_PATIENCE_SECONDS = 0.1
"""So long a line waits for a reader that is merely slow."""
_EVERY_SECONDS = 1.0
"""Lines wait once in so many seconds only."""


class LogStream:
    """A binary stream to which lines are written whole, or not at all where that can be helped.

    Args:
        stream: What is written to; the file under it, where there is one.
        tell: Makes a line of the number of lines that were lost; it goes ahead of the next one.

    Attributes:
        dropped: Lines that were lost since the last one that was not.
    """

    def __init__(self, stream: IO[bytes], *, tell: Callable[[int], bytes] = lambda count: b"") -> None:
        self.dropped = 0
        self._stream = stream
        self._tell = tell
        self._file = _file_of(stream)
        self._poll = select.poll()
        self._piece = 0
        self._torn = False
        self._waited_at = -_EVERY_SECONDS
        self._lock = threading.Lock()
        if self._file is not None:
            self._poll.register(self._file, select.POLLOUT)
            # A plain file takes any length, and lines of several writers don't mix if each comes at once.
            self._piece = PIECE if not stat.S_ISREG(os.fstat(self._file).st_mode) else 1 << 30

    def write(self, data: bytes) -> int:
        """Write a line, if it is taken soon."""
        with self._lock:
            try:
                taken = self._put(self._missing() + data)
            except (OSError, ValueError):
                taken = False
            self.dropped = 0 if taken else self.dropped + 1
            return len(data) if taken else 0

    def flush(self) -> None:
        """Do nothing: a line goes out as it is written."""

    def _missing(self) -> bytes:
        """Return what goes ahead of a line: the end of one that was cut off, and how many were lost."""
        return (b"\n" if self._torn else b"") + (self._tell(self.dropped) if self.dropped else b"")

    def _put(self, data: bytes) -> bool:
        """Write, and return whether all was taken."""
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
                self._torn = done < len(data)

    def _has_room(self) -> bool:
        if self._poll.poll(0):
            return True
        now = time.monotonic()
        if now - self._waited_at < _EVERY_SECONDS:
            return False
        found = self._poll.poll(_PATIENCE_SECONDS * 1000)
        self._waited_at = time.monotonic()
        return bool(found)


def _file_of(stream: IO[bytes]) -> int | None:
    """Return the number of the open file under a stream, None: it has none."""
    try:
        stream.flush()
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return None
