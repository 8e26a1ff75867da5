"""Health checks of Argo CD, run by its own Lua engine: built once with Go, like the cluster's programs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from e2e.cluster.gobuild import Recipe, cache_root, cached, say_on_stderr

MODULE = Path(__file__).parent
TIMEOUT = 30.0
RECIPE = Recipe(
    MODULE,
    (".",),
    ("-s", "-w"),
    title="a runner of Argo CD's health checks (some seconds)",
    without_go="Go is needed once to build the runner of health checks: install Go 1.24 or newer",
)


def locate(environ: Mapping[str, str] | None = None) -> Path:
    """Return the program; build it on first use.

    Raises:
        BinariesError: It cannot be built.
    """
    key = hashlib.sha256(b"".join((MODULE / name).read_bytes() for name in ("go.mod", "main.go"))).hexdigest()[:12]
    folder = cache_root(os.environ if environ is None else environ) / f"argocd-{key}"
    return cached(folder, RECIPE, say_on_stderr) / "argocd"


def health(script: str, objects: Sequence[Any]) -> list[str]:
    """Return the result of a health check for each object, as `Status: message`."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(script)
        file.flush()
        lines = "".join(f"{json.dumps(each)}\n" for each in objects)
        command = [str(locate()), file.name]
        done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    if done.returncode:
        raise ValueError(done.stderr)
    return done.stdout.splitlines()
