"""The table of a benchmark: medians, and ratios of what was measured alike."""

from dataclasses import replace

from benchmarks.reporting.report import lines
from benchmarks.reporting.results import Result
from benchmarks.reporting.table import medians


def result(adapter: str, scenario: str = "cold", *, size: int = 100, **figures: float) -> Result:
    return Result("run", adapter, adapter.upper(), scenario, size, "ApisixRoute", 50, 1, "1ms", 0.5, figures)


def table_lines(*results: Result) -> list[str]:
    return [line for line in lines(medians(results)) if line.startswith("| 1")]


def test_the_median_of_the_runs_is_shown() -> None:
    got = table_lines(*(result("ours", "wipe", healed_seconds=seconds) for seconds in (3.0, 1.0, 2.0)))
    assert got == ["| 100 in 50 ns, 1ms a write | OURS | 2.0 (1.0 to 3.0) |  |  |  |  |  | 3 | 0.5 |  |"]


def test_a_peer_is_shown_as_a_ratio() -> None:
    got = table_lines(result("peer", "wipe", healed_seconds=3.0), result("ours", "wipe", healed_seconds=2.0))
    assert [line.split(" | ")[1] for line in got] == ["OURS", "PEER"]
    assert got[1].endswith("| 1.50x |")


def test_another_size_is_not_compared() -> None:
    got = table_lines(result("ours", "wipe", healed_seconds=2.0), result("peer", "wipe", size=1000, healed_seconds=3.0))
    assert all("x |" not in line for line in got)


def test_a_cold_sync_is_held_against_what_the_gateway_takes() -> None:
    raw = result("raw", "raw", writes_per_second_16=100.0)
    cold = result("ours", seconds=6.0, first_write_seconds=2.0, writes=200.0)
    assert table_lines(raw, cold)[-1] == "| 100 in 50 ns, 1ms a write | OURS | 100 | 2.00 | 3.0 | 2.0 |"


def test_a_busy_machine_is_reported() -> None:
    busy = replace(result("ours", "wipe", healed_seconds=2.0), busy=0.25)
    assert any("other programs used up to 25%" in line for line in lines(medians([busy])))
    assert not any("other programs" in line for line in lines(medians([replace(busy, busy=0.05)])))
