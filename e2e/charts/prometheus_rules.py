"""Prometheus' own parser as a program, for alert rules and dashboards: built once with Go, like the cluster's programs.

`python -m e2e.charts.prometheus_rules` builds it. The module in `promql/` pins its version; promtool contains the same
parser, but also the clients of all clouds.
"""

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from e2e.cluster.gobuild import BinariesError, Recipe, cache_root, cached, say_on_stderr

MODULE = Path(__file__).parents[1] / "promql"
TIMEOUT = 30.0
RECIPE = Recipe(
    MODULE,
    (".",),
    ("-s", "-w"),
    title="a checker of alert rules (half a minute)",
    without_go="Go is needed once to build the checker of alert rules: install Go 1.24 or newer",
)


def locate(environ: Mapping[str, str] | None = None) -> Path:
    """Return the program; build it on first use.

    Raises:
        BinariesError: It cannot be built.
    """
    key = hashlib.sha256(b"".join((MODULE / name).read_bytes() for name in ("go.mod", "main.go"))).hexdigest()[:12]
    folder = cache_root(os.environ if environ is None else environ) / f"promql-{key}"
    return cached(folder, RECIPE, say_on_stderr) / "promql"


def check(rules: Path, dashboards: Sequence[Path]) -> tuple[list[int], str]:
    """Return the number of rules and expressions of each file, and their errors; empty if there are none."""
    command = [str(locate()), str(rules), *map(str, dashboards)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    return [int(line.rpartition(" ")[2]) for line in done.stdout.splitlines()], done.stderr


def main() -> int:
    """Build the program and print its path."""
    try:
        print(locate())
    except BinariesError as error:
        print(f"e2e.charts.prometheus_rules: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
