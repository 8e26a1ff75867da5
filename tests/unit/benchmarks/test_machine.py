"""Whether other programs use the machine."""

from pathlib import Path

import pytest

from benchmarks import machine


def test_the_busy_share_excludes_idle_time(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter(["cpu 100 0 100 700 100 0 0 0 0 0\ncpu0 1 2 3", "cpu 150 0 150 1300 200 0 0 0 0 0\ncpu0 1 2 3"])
    monkeypatch.setattr(Path, "read_text", lambda _path: next(readings))
    monkeypatch.setattr(machine, "SAMPLE_SECONDS", 0.0)
    assert machine.busy_share() == pytest.approx(100 / 800)
