"""Lines of a watch: independent of chunks, with the rest at the end."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from apisix_ingress.kube.client.line_splitter import LineSplitter


def split(*chunks: bytes) -> tuple[list[bytes], int]:
    splitter = LineSplitter()
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return lines, splitter.pending


def test_lines_are_joined_over_chunks() -> None:
    assert split(b"a", b"b\nc\r\n\n", b"d") == ([b"ab", b"c"], 1)


def test_a_stream_that_ends_after_a_line_leaves_no_remainder() -> None:
    assert split(b"a\n", b"b\n") == ([b"a", b"b"], 0)


@given(st.binary(max_size=60), st.lists(st.integers(0, 60)))
def test_how_a_stream_is_cut_makes_no_difference(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(stream)]
    chunks = [stream[start:end] for start, end in pairwise(edges)]
    assert split(*chunks) == split(stream)
