"""The report of a rehearsal: Markdown, and the same as JSON, in one folder."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from e2e.release.rehearsal import FAILED, NOT_RUN, PASSED, Rehearsal, Result


def write_report(rehearsal: Rehearsal, results: Sequence[Result], seconds: float) -> Path:
    """Write report.json and report.md; return the path of the latter."""
    head = {"commit": rehearsal.commit, "previous": rehearsal.previous, "seconds": round(seconds)}
    document = {**head, "steps": [asdict(result) for result in results]}
    (rehearsal.work / "report.json").write_text(json.dumps(document, indent=1) + "\n")
    path = rehearsal.work / "report.md"
    path.write_text(markdown(head, results))
    return path


def markdown(head: dict[str, object], results: Sequence[Result]) -> str:
    """Return the report as Markdown: a line for each step, then what each one saw."""
    counts = ", ".join(
        f"{sum(result.outcome == outcome for result in results)} {outcome}" for outcome in (PASSED, FAILED, NOT_RUN)
    )
    lines = ["# Rehearsal of a release", "", *(f"* {name}: {value}" for name, value in head.items()), f"* {counts}", ""]
    for part, group in groupby(results, key=lambda result: result.part):
        lines += [f"## {part}", ""]
        for result in group:
            lines += _step(result)
        lines.append("")
    return "\n".join(lines)


def _step(result: Result) -> list[str]:
    lines = [f"* **{result.outcome}** ({result.seconds:.1f} s): {result.name}"]
    lines += [f"    * {name}: {value}" for name, value in result.facts.items()]
    if result.error:
        lines += ["", *(f"      {line}" for line in result.error.splitlines()), ""]
    return lines
