"""Files that are read while processes write them."""

from pathlib import Path

from e2e.cluster.process import whole_lines


def test_half_written_last_line_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    got = []
    for content in (b"", b"one", b"one\n", b"one\ntw\xff\n{"):
        path.write_bytes(content)
        got.append(whole_lines(path))
    assert got == [[], [], ["one"], ["one", "tw\ufffd"]]
