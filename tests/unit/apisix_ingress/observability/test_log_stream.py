"""Log lines without a reader: they block nothing, and the number of dropped lines is reported."""

import io
import os
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from apisix_ingress.observability.log_stream import PIECE, LogStream

LINE = b"x" * 99 + b"\n"


@pytest.fixture
def ends() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Return the two ends of a pipe: for reading, for writing."""
    read, write = os.pipe()
    with os.fdopen(read, "rb", buffering=0) as reader, os.fdopen(write, "wb") as writer:
        yield reader, writer


def fill(outlet: LogStream) -> int:
    """Write lines until one is dropped; return the number of lines before it."""
    taken = 0
    while not outlet.dropped:
        outlet.write(LINE)
        taken += 1
    return taken - 1


def read_lines(reader: BinaryIO) -> list[bytes]:
    os.set_blocking(reader.fileno(), False)
    text = b""
    while piece := reader.read(1 << 16):
        text += piece
    return text.splitlines(keepends=True)


def test_lines_go_out_unchanged(ends: tuple[BinaryIO, BinaryIO]) -> None:
    reader, writer = ends
    outlet = LogStream(writer)
    long = b"y" * 3 * PIECE + b"\n"
    for line in (LINE, long, LINE):
        outlet.write(line)
        outlet.flush()
    assert (read_lines(reader), outlet.dropped) == ([LINE, long, LINE], 0)


def test_an_unread_pipe_does_not_block(ends: tuple[BinaryIO, BinaryIO]) -> None:
    reader, writer = ends
    outlet = LogStream(writer)
    taken = fill(outlet)
    for _ in range(1_000):
        outlet.write(LINE)
    assert outlet.dropped == 1_001
    assert read_lines(reader) == [LINE] * taken


def test_a_resumed_reader_learns_the_number_of_missing_lines(ends: tuple[BinaryIO, BinaryIO]) -> None:
    reader, writer = ends
    outlet = LogStream(writer, render_dropped=lambda count: b"%d lines are missing\n" % count)
    fill(outlet)
    outlet.write(LINE)
    read_lines(reader)
    outlet.write(LINE)
    assert (read_lines(reader), outlet.dropped) == ([b"2 lines are missing\n", LINE], 0)


def test_a_line_that_was_taken_in_part_gets_its_end(ends: tuple[BinaryIO, BinaryIO]) -> None:
    reader, writer = ends
    outlet = LogStream(writer)
    long = b"y" * 40 * PIECE + b"\n"
    outlet.write(long)
    assert outlet.dropped == 1
    part = b"".join(read_lines(reader))
    assert 0 < len(part) < len(long)
    outlet.write(LINE)
    assert read_lines(reader) == [b"\n", LINE]


def test_a_closed_pipe_does_not_end_the_program(ends: tuple[BinaryIO, BinaryIO]) -> None:
    reader, writer = ends
    outlet = LogStream(writer)
    reader.close()
    for _ in range(3):
        outlet.write(LINE)
        outlet.flush()
    assert outlet.dropped == 3


def test_a_full_disk_does_not_end_the_program() -> None:
    with open("/dev/full", "wb", buffering=0) as full:
        outlet = LogStream(full)
        outlet.write(LINE)
        assert outlet.dropped == 1


def test_a_stream_without_a_file_accepts_everything() -> None:
    stream = io.BytesIO()
    outlet = LogStream(stream)
    outlet.write(LINE)
    outlet.flush()
    assert stream.getvalue() == LINE


def test_a_closed_stream_does_not_end_the_program() -> None:
    stream = io.BytesIO()
    outlet = LogStream(stream)
    stream.close()
    outlet.write(LINE)
    outlet.flush()
    assert outlet.dropped == 1
