"""The machine that the benchmarks run on: what it is, and whether other programs use it."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

QUIET = 0.1
"""The largest share of the processors that other programs may use while figures are taken."""
SAMPLE_SECONDS = 1.0


def describe() -> str:
    """Return the processors, the system and the interpreter."""
    return f"{os.cpu_count()} processors, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def busy_share() -> float:
    """Return the share of the processors in use, from 0 to 1, over a second in which this program sleeps."""
    before, before_idle = _ticks()
    time.sleep(SAMPLE_SECONDS)
    after, after_idle = _ticks()
    return 1 - (after_idle - before_idle) / max(1, after - before)


def _ticks() -> tuple[int, int]:
    """Return the ticks of all processors since the boot, and those without work: proc(5), /proc/stat."""
    user, nice, system, idle, iowait, *others = map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9])
    return user + nice + system + idle + iowait + sum(others), idle + iowait
