"""Whether two samples of backends come from the same distribution: Fisher's exact test, one backend at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import exp, lgamma

SIGNIFICANCE = 1e-4
"""Probability of treating equal weights as different, over all backends of one request. Small, since thousands of
requests are compared: one false alarm in 10,000."""


def shifted(old: Iterable[str], new: Iterable[str]) -> list[str]:
    """Return the values whose share differs significantly between two samples, sorted.

    The significance is divided by the number of values (Bonferroni).
    """
    before, after = Counter(old), Counter(new)
    values = sorted({*before, *after})
    limit = SIGNIFICANCE / max(1, len(values))
    return [
        value
        for value in values
        if fisher(before[value], before.total() - before[value], after[value], after.total() - after[value]) < limit
    ]


def fisher(a: int, b: int, c: int, d: int) -> float:
    """Return the two-sided p-value of the table `[[a, b], [c, d]]`, linear in its sum."""
    row, column, total = a + b, a + c, a + b + c + d
    least, most = max(0, row + column - total), min(row, column)
    observed = _log_probability(a, row, column, total)
    # Tables as likely as the observed one count; the tolerance is for rounding.
    found = (_log_probability(x, row, column, total) for x in range(least, most + 1))
    return min(1.0, sum(exp(each) for each in found if each <= observed + 1e-7))


def _log_probability(x: int, row: int, column: int, total: int) -> float:
    return _log_choose(column, x) + _log_choose(total - column, row - x) - _log_choose(total, row)


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
