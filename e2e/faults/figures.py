"""Measurements that tests record but do not assert: one JSON line each, in the file `$FIGURES`, if it is set."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import quantiles
from typing import Any


def note(row: str, **figures: Any) -> None:
    """Record a measurement for a row of docs/reliability.md; it is also in the test's captured output."""
    line = json.dumps({"row": row, **figures})
    print(line)
    if file := os.environ.get("FIGURES"):
        with Path(file).open("a") as opened:
            opened.write(line + "\n")


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Return count, median, 95th percentile and maximum."""
    if len(seconds) < 2:
        return {"count": len(seconds), **({"max": round(seconds[0], 3)} if seconds else {})}
    cuts = quantiles(seconds, n=20, method="inclusive")
    found = {"count": len(seconds), "p50": cuts[9], "p95": cuts[18], "max": max(seconds)}
    return {name: round(value, 3) for name, value in found.items()}
