"""The interval that contains the median."""

import pytest

from benchmarks.reporting.table import interval


@pytest.mark.parametrize(
    ("runs", "smallest"),
    [(2, 1), (5, 1), (6, 1), (8, 1), (9, 2), (11, 2), (12, 3), (20, 6)],
    ids=lambda value: str(value),
)
def test_the_interval_of_the_median_is_that_of_the_sign_test(runs: int, smallest: int) -> None:
    # The ranks are those of the tables for the two-sided sign test at 5 %.
    assert interval([float(each) for each in range(runs, 0, -1)]) == (smallest, runs + 1 - smallest)
