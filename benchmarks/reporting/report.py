"""Renders results as Markdown tables, with a ratio wherever another controller was measured, and optional plots."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.machine import QUIET, describe
from benchmarks.reporting.results import read
from benchmarks.reporting.table import OURS, Row, Table, Where, ceiling, medians


class Column(NamedTuple):
    """A figure and its format."""

    figure: str
    head: str
    digits: int = 1


_LATENCY = (
    Column("p50_ms", "p50 ms"),
    Column("p95_ms", "p95 ms"),
    Column("max_ms", "max ms"),
    Column("lost", "lost", 0),
)
_EACH = (
    Column("writes_each", "writes each", 2),
    Column("reads_each", "reads each", 2),
    Column("cpu_ms_each", "CPU ms each"),
)
_TRAFFIC = (Column("writes", "writes", 0), Column("noops", "no-op writes", 0), Column("reads", "reads", 0))

COLUMNS: Mapping[str, Sequence[Column]] = {
    "cold": (
        Column("seconds", "seconds", 2),
        Column("first_write_seconds", "first write s", 2),
        Column("cpu_seconds", "CPU s", 2),
        Column("settled_cpu_seconds", "CPU s with statuses", 2),
        Column("peak_mb", "peak MB", 0),
        *_TRAFFIC,
    ),
    "change": (*_LATENCY, *_EACH),
    "edit": (*_LATENCY, *_EACH),
    "storm": (
        Column("seconds", "seconds", 2),
        Column("burst_seconds", "burst sent in s", 2),
        *_LATENCY,
        Column("cpu_seconds", "CPU s", 2),
        *_TRAFFIC,
    ),
    "idle": (Column("cpu_seconds_per_minute", "CPU s per minute", 2), Column("memory_mb", "MB", 0), *_TRAFFIC),
    "restart": (
        Column("caught_up_seconds", "caught up after s", 2),
        Column("stop_seconds", "stopped after s", 2),
        Column("cpu_seconds", "CPU s", 2),
        *_TRAFFIC,
    ),
    "wipe": (
        Column("healed_seconds", "restored after s"),
        Column("waited_seconds", "not restored within s", 0),
        Column("pending", "still missing", 0),
        *_TRAFFIC,
    ),
    "deletion": (*_LATENCY, Column("requests", "requests", 0), Column("failed", "failed", 0)),
    "ahead": (*_LATENCY, Column("samples", "changes", 0)),
}


def report(path: Path, plots: Path | None) -> None:
    """Print the tables for a file of results; write the plots to a folder if one is given."""
    table = medians(read(path))
    print("\n".join(lines(table)))
    if plots is not None:
        try:
            from benchmarks.reporting.plots import draw
        except ModuleNotFoundError as error:
            raise SystemExit(f"error: plots need {error.name}: install the dependency group `bench`") from None
        for file in draw(table, plots):
            print(f"drawn: {file}", file=sys.stderr)


def lines(table: Table) -> Iterable[str]:
    """Yield the lines of the report."""
    yield f"Medians on {describe()}. In parentheses: the interval that contains the median with a probability of 95 %"
    yield "(five runs: 94 %, four: 88 %, three: 75 %, two: 50 %)."
    busiest = max((row.busy for rows in table.values() for row in rows.values()), default=0.0)
    if busiest > QUIET:
        yield f"**Not reliable: other programs used up to {busiest:.0%} of the processors.**"
    for scenario, columns in COLUMNS.items():
        places = sorted((where for where in table if where.scenario == scenario), key=_order)
        if not places:
            continue
        yield from ("", f"### {scenario}", "")
        heads = [
            "routes",
            "controller",
            *(column.head for column in columns),
            "runs",
            "load",
            f"{columns[0].head}: ratio",
        ]
        yield _row(heads)
        yield _row(["---"] * len(heads))
        for where in places:
            for adapter in sorted(table[where], key=lambda name: (name != OURS, name)):
                yield _row(_cells(table, where, adapter, columns))
    yield from _ceilings(table)


def _ceilings(table: Table) -> Iterable[str]:
    """Yield a table that compares cold syncs with the gateway's own limit."""
    places = sorted((where for where in table if where.scenario == "cold"), key=_order)
    if not places:
        return
    yield from ("", "### cold sync compared with the gateway's write rate", "")
    rate_heads = ("gateway's writes/s, 16 in flight", "minimum s", "multiple of the minimum", "from the first write")
    yield _row(["routes", "controller", *rate_heads])
    yield _row(["---"] * 6)
    for where in places:
        rate = ceiling(table, where)
        for row in table[where].values():
            if rate and "seconds" in row.figures:
                least = row.figures["writes"] / rate
                total, first = row.figures["seconds"], row.figures["first_write_seconds"]
                shown = (f"{rate:,.0f}", f"{least:.2f}", f"{total / least:.1f}", f"{(total - first) / least:.1f}")
                yield _row([_place(where), row.title, *shown])


def _cells(table: Table, where: Where, adapter: str, columns: Sequence[Column]) -> list[str]:
    row, ours = table[where][adapter], table[where].get(OURS)
    main = columns[0].figure
    ratio = ""
    if adapter != OURS and ours is not None and main in row.figures and ours.figures.get(main):
        ratio = f"{row.figures[main] / ours.figures[main]:.2f}x"
    return [
        _place(where),
        row.title,
        *(_shown(row, column) for column in columns),
        str(row.runs),
        f"{row.load:.1f}",
        ratio,
    ]


def _shown(row: Row, column: Column) -> str:
    if column.figure not in row.figures:
        return ""
    shown = f"{row.figures[column.figure]:,.{column.digits}f}"
    low, high = (f"{each:,.{column.digits}f}" for each in row.intervals.get(column.figure, (0.0, 0.0)))
    return f"{shown} ({low} to {high})" if low != high else shown


def _place(where: Where) -> str:
    shape = where.shape
    kind = "" if shape.kind == "ApisixRoute" else f" {shape.kind}"
    backends = "" if shape.backends == 1 else f", {shape.backends} backends"
    class_ = "" if shape.ingress_class == "apisix" else f" of class {shape.ingress_class}"
    hosts = "" if shape.hosts == 1 else f", {shape.hosts:,} hosts"
    spread = f"{shape.namespaces:,} ns{hosts}{backends}"
    return f"{shape.size:,}{kind}{class_} in {spread}, {where.write_latency} a write"


def _order(where: Where) -> tuple[str, int, str, int, int, int, str]:
    shape = where.shape
    spread = (shape.namespaces, shape.backends, shape.hosts)
    return (shape.kind, shape.size, where.write_latency, *spread, shape.ingress_class)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
