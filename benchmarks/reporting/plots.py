"""The plots of a report, one PNG per question. Only this module needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.reporting.table import RAW, Table, ceiling
from benchmarks.world import Shape

mpl.use("Agg")

SIZE = (7.0, 4.2)
DPI = 110
_STYLES = ("o-", "s--", "^:", "d-.")

Series = dict[str, list[tuple[int, float]]]


def draw(table: Table, folder: Path) -> Iterator[Path]:
    """Draw every plot for which there are figures; yield the files."""
    folder.mkdir(parents=True, exist_ok=True)
    yield _lines(folder / "cold.png", "Cold sync: from exec to the last route", "seconds", _cold(table), log=True)
    for scenario, title in (
        ("change", "Endpoint change, one at a time"),
        ("storm", "Up to 200 endpoint changes at once"),
    ):
        middle, late = _series(table, scenario, "p50_ms"), _series(table, scenario, "p95_ms")
        named = {f"{title}, p50": values for title, values in middle.items()}
        named |= {f"{title}, p95": values for title, values in late.items()}
        yield _lines(folder / f"{scenario}.png", f"{title}: PATCH to gateway", "milliseconds", named, log=True)
    yield _lines(
        folder / "cpu.png", "CPU time of a cold sync", "CPU seconds", _series(table, "cold", "cpu_seconds"), log=True
    )
    yield _lines(folder / "memory.png", "Peak memory of a cold sync", "MB", _series(table, "cold", "peak_mb"))


def _series(table: Table, scenario: str, figure: str) -> Series:
    found: Series = {}
    for where, rows in sorted(table.items(), key=lambda item: item[0].shape.size):
        if where.scenario == scenario and _is_usual(where.shape):
            for adapter, row in rows.items():
                if adapter != RAW and figure in row.figures:
                    found.setdefault(row.title, []).append((where.shape.size, row.figures[figure]))
    return found


def _cold(table: Table) -> Series:
    """Return the seconds of cold syncs, and the minimum at the gateway's own throughput."""
    found = _series(table, "cold", "seconds")
    least = []
    for where, rows in sorted(table.items(), key=lambda item: item[0].shape.size):
        rate = ceiling(table, where)
        if where.scenario == "cold" and _is_usual(where.shape) and rate:
            least.append((where.shape.size, min(row.figures["writes"] for row in rows.values()) / rate))
    return {**found, "limit of the gateway, 16 in flight": least}


def _is_usual(shape: Shape) -> bool:
    return shape.kind == "ApisixRoute" and shape.backends == 1 and shape.hosts == 1 and shape.namespaces <= 50


def _lines(path: Path, title: str, unit: str, series: Series, *, log: bool = False) -> Path:
    figure = Figure(figsize=SIZE, dpi=DPI, layout="constrained")
    axes: Axes = figure.subplots()
    for number, (name, points) in enumerate(series.items()):
        sizes, values = zip(*points, strict=True)
        axes.plot(sizes, values, _STYLES[number % len(_STYLES)], label=name)
    axes.set(title=title, xlabel="routes", ylabel=unit, xscale="log", yscale="log" if log else "linear")
    plain: Callable[[float, int], str] = lambda value, _place: f"{value:,g}"  # noqa: E731
    axes.xaxis.set_major_formatter(plain)
    axes.yaxis.set_major_formatter(plain)
    if not log:
        axes.set_ylim(bottom=0)
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.legend(fontsize="small")
    figure.savefig(path)
    return path
