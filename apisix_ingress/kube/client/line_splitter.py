"""Cuts a stream of chunks into lines of any length. What a line means is the reader's business.

The line limits of stream readers (64 KiB to 4 MiB) do not hold for watch events: an object of 1.5 MB is several times
as large once its text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator


class LineSplitter:
    """Collects chunks; a line that spans many of them is joined once."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that this chunk completes, without their line end; empty lines are left out."""
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            self._parts.append(piece)
            line = b"".join(self._parts).rstrip(b"\r")
            self._parts.clear()
            if line:
                yield line
        if rest:
            self._parts.append(rest)

    @property
    def pending(self) -> bool:
        """Whether a line has begun and not ended: at the end of a stream it was cut off."""
        return bool(self._parts)
