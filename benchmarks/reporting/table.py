"""The table of a report as data: medians over the runs, by measurement and adapter. `report` renders it."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.reporting.results import Result
from benchmarks.world import Shape

OURS = "ours"
RAW = "raw"
CEILING = "writes_per_second_16"
CONFIDENCE = 0.95


class Where(NamedTuple):
    """The conditions that must be equal for two results to be comparable."""

    scenario: str
    shape: Shape
    write_latency: str


class Row(NamedTuple):
    """Medians of one adapter."""

    title: str
    runs: int
    load: float
    """Median of the machine's one-minute load average."""
    figures: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    """Of each figure with several runs: where its median lies with a probability of `CONFIDENCE` (see `interval`)."""
    busy: float
    """The largest share of the processors that other programs used before a run."""


Table = dict[Where, dict[str, Row]]


def medians(results: Iterable[Result]) -> Table:
    """Return the median of each figure, by measurement and adapter."""
    found: dict[tuple[Where, str], list[Result]] = defaultdict(list)
    for result in results:
        found[Where(result.scenario, result.shape, result.write_latency), result.adapter].append(result)
    table: Table = defaultdict(dict)
    for (where, adapter), group in found.items():
        names = {name for result in group for name in result.figures}
        values = {name: [result.figures[name] for result in group if name in result.figures] for name in names}
        figures = {name: statistics.median(each) for name, each in values.items()}
        intervals = {name: interval(each) for name, each in values.items() if len(each) > 1}
        load = statistics.median(result.load for result in group)
        busy = max(result.busy for result in group)
        table[where][adapter] = Row(group[-1].title, len(group), load, figures, intervals, busy)
    return dict(table)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the narrowest pair of samples that encloses the median of the distribution with the wanted confidence.

    It assumes nothing about the distribution: the median lies outside the k-th smallest and k-th largest of n samples
    with the probability of fewer than k heads, or tails, in n tosses of a coin. Fewer than six samples are too few for
    95 %; their smallest and largest enclose it with a probability of 1 - 2^(1 - n).
    """
    ordered, count, inner = sorted(values), len(values), 0
    outside = 2.0 ** (1 - count)
    while inner < (count - 1) // 2:
        outside += math.comb(count, inner + 1) * 2.0 ** (1 - count)
        if 1 - outside < CONFIDENCE:
            break
        inner += 1
    return ordered[inner], ordered[-1 - inner]


def ceiling(table: Table, where: Where) -> float | None:
    """Return the gateway's own writes per second in these runs, with 16 in flight."""
    row = table.get(where._replace(scenario=RAW), {}).get(RAW)
    return row.figures[CEILING] if row else None
