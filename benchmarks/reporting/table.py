"""The table of a report as data: medians over the runs, by measurement and adapter. `report` renders it."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from benchmarks.reporting.results import Result
from benchmarks.world import Shape

OURS = "ours"
RAW = "raw"
CEILING = "writes_per_second_16"


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
        load = statistics.median(result.load for result in group)
        table[where][adapter] = Row(group[-1].title, len(group), load, figures)
    return dict(table)


def ceiling(table: Table, where: Where) -> float | None:
    """Return the gateway's own writes per second in these runs, with 16 in flight."""
    row = table.get(where._replace(scenario=RAW), {}).get(RAW)
    return row.figures[CEILING] if row else None
