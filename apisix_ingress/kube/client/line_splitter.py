"""Splits a stream of chunks into lines of any length.

The line limits of common stream readers (64 KiB to 4 MiB) are too low for watch events: an object of 1.5 MB grows
several times when its text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator


class LineSplitter:
    """Collects chunks and joins each line once, even if it spans many chunks."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.pending = 0
        """Bytes of the incomplete line. At the end of a stream, a line was cut off unless this is 0."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that this chunk completes, without line ends; skip empty lines."""
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._parts.append(piece)
            line = b"".join(self._parts).rstrip(b"\r")
            self._parts.clear()
            self.pending = 0
            if line:
                yield line
        if rest:
            self._parts.append(rest)
            self.pending += len(rest)
