"""Controllers as files: an adapter says how one is built, which files it wants and which command starts it.

In its texts `{kubeconfig}`, `{admin_url}`, `{admin_key}`, `{folder}` (of the run), `{root}` (of this checkout),
`{python}`, `{program}` (what was built) and `{port0}` … `{port3}` (free ports) are filled in. A program is built from a
Go module, by Go's own means, into the cache folder; nothing of it comes into the checkout.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e.cluster.gobuild import cache_root

ADAPTERS = Path(__file__).parent / "adapters"
ROOT = Path(__file__).parent.parent
BUILD_SECONDS = 1800


@dataclass(frozen=True, slots=True)
class Adapter:
    """How to start one controller."""

    name: str
    title: str
    command: tuple[str, ...]
    prepare: tuple[str, ...] = ()
    build: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)

    def ready(self) -> dict[str, str]:
        """Build and prepare what is needed once; return what is to be filled in that comes from it."""
        known = {"python": sys.executable, "root": str(ROOT)}
        if self.build:
            known["program"] = str(built(self.build["module"], self.build["version"]))
        if self.prepare:
            command = [fill(word, known) for word in self.prepare]
            # Compiled code has to be kept, whatever the developer's environment says about it.
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
            subprocess.run(command, check=True, env=environment)
        return known


def load(name: str) -> Adapter:
    """Read an adapter, by its name among ours or by the path of its file."""
    path = Path(name) if name.endswith(".json") else ADAPTERS / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in ADAPTERS.glob("*.json")))
        raise SystemExit(f"error: no adapter {name}: give one of {known}, or a path")
    content = json.loads(path.read_text())
    content["command"] = tuple(content["command"])
    content["prepare"] = tuple(content.get("prepare", ()))
    return Adapter(name=path.stem, **content)


def fill(value: Any, known: dict[str, str]) -> Any:
    """Fill in what is in braces, in every text of a value."""
    if isinstance(value, str):
        for name, text in known.items():
            value = value.replace(f"{{{name}}}", text)
        return value
    if isinstance(value, list):
        return [fill(each, known) for each in value]
    if isinstance(value, dict):
        return {name: fill(each, known) for name, each in value.items()}
    return value


def built(module: str, version: str) -> Path:
    """Return the program of a Go module, built on first use."""
    folder = cache_root(os.environ) / "peers" / f"{Path(module).name}-{version}"
    program = folder / "program"
    if program.exists():
        return program
    if shutil.which("go") is None:
        raise SystemExit(f"error: {module} is built with Go: install it and put `go` on the PATH")
    print(f"building {module} {version}, once; this takes some minutes ...", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as work:
        # Its own module names replacements, so that it has to be the main one.
        command = ["go", "mod", "download", "-json", f"{module}@{version}"]
        said = subprocess.run(command, cwd=work, check=True, capture_output=True, text=True).stdout
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / "partial"
        build = ["go", "build", "-C", json.loads(said)["Dir"], "-mod=mod", "-trimpath", "-o", str(partial), "."]
        subprocess.run(build, check=True, timeout=BUILD_SECONDS)
    partial.rename(program)
    return program
