"""Adapters: each file describes how to build one controller, which files it needs and which command starts it.

These placeholders are replaced in its texts: `{kubeconfig}`, `{admin_url}`, `{gateway_url}` (the same without the
path), `{admin_key}`, `{folder}` (of the run), `{root}` (of this checkout), `{python}` (with only the adapter's
requirements, if it has any), `{program}` (the built program) and `{port0}` … `{port3}` (free ports). A program is built
from a Go module into the cache folder; the checkout is not changed. If that is not possible, an environment variable
has the path of the program, and its name in the adapter's programs is a placeholder, too. Objects that a controller
needs before it starts are in the adapter's kinds and objects; a program that must run next to it is its sidecar.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.world import Manifest
from e2e.cluster.gobuild import cache_root

ROOT = Path(__file__).parent.parent
BUILD_SECONDS = 1800


class Given(NamedTuple):
    """A required program: the environment variable with its path, and a description."""

    variable: str
    what: str


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A program that runs next to a controller and starts before it; it is ready when the URL `ready` responds."""

    command: tuple[str, ...]
    ready: str
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Adapter:
    """How to start one controller.

    Attributes:
        name: Name of the adapter, from its file.
        title: For tables.
        command: Starts the controller.
        prepare: Runs once, before everything else.
        build: Name and version of a Go module to build.
        requirements: Locked requirements of a Python program, from the root of the checkout. It runs in a virtual
            environment with nothing else, as users install it: some libraries import others if they are installed.
        environment: Additional environment variables of the controller.
        files: Name in the run's folder → content, written as JSON.
        programs: Name → required program.
        kinds: `plural.group/version` → kind, for custom resources that it watches in addition to this project's.
        objects: Its own objects in the cluster.
        sidecar: A program that runs next to it.
        root: The checkout whose requirements and code are used.
    """

    name: str
    title: str
    command: tuple[str, ...]
    prepare: tuple[str, ...] = ()
    build: dict[str, str] = field(default_factory=dict)
    requirements: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    programs: dict[str, Given] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    objects: tuple[Manifest, ...] = ()
    sidecar: Sidecar | None = None
    root: Path = ROOT

    def ready(self) -> dict[str, str]:
        """Build and prepare the controller once; return the resulting placeholders."""
        known = {"python": sys.executable, "root": str(self.root), **given(self.name, self.programs, os.environ)}
        if self.requirements:
            known["python"] = str(installed(self.root / self.requirements))
        if self.build:
            known["program"] = str(built(self.build["module"], self.build["version"]))
        if self.prepare:
            command = [fill(word, known) for word in self.prepare]
            # Compiled code has to be cached, regardless of the developer's environment.
            environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
            subprocess.run(command, check=True, env=environment)
        return known

    def manifests(self, known: Mapping[str, str]) -> list[Manifest]:
        """Return the objects that must exist before it starts: definitions of its kinds, then its objects."""
        definitions = [definition(place, kind) for place, kind in self.kinds.items()]
        return [*definitions, *(fill(each, known) for each in self.objects)]


def load(name: str) -> Adapter:
    """Read an adapter by its name in this package or by the path of its file; `name@folder` is that of a checkout."""
    name, at, folder = name.partition("@")
    root = Path(folder).resolve() if at else ROOT
    adapters = root / "benchmarks" / "adapters"
    path = Path(name) if name.endswith(".json") else adapters / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in adapters.glob("*.json")))
        raise SystemExit(f"error: unknown adapter {name}: use one of {known}, or a path")
    content = json.loads(path.read_text())
    content["command"] = tuple(content["command"])
    content["prepare"] = tuple(content.get("prepare", ()))
    content["objects"] = tuple(content.get("objects", ()))
    content["programs"] = {name: Given(**each) for name, each in content.get("programs", {}).items()}
    if beside := content.get("sidecar"):
        content["sidecar"] = Sidecar(**{**beside, "command": tuple(beside["command"])})
    if at:
        content["title"] += f" in {root.name}"
    return Adapter(name=path.stem + (f"@{root.name}" if at else ""), root=root, **content)


def given(adapter: str, programs: Mapping[str, Given], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the paths of the required programs by name; exit if one is missing."""
    paths = {name: shutil.which(environ.get(program.variable, "")) for name, program in programs.items()}
    missing = [program for name, program in programs.items() if paths[name] is None]
    if missing:
        wanted = "".join(f"\n  {program.variable}: {program.what}" for program in missing)
        raise SystemExit(f"error: {adapter} is not built here: set the paths of its programs:{wanted}")
    return {name: str(Path(path).absolute()) for name, path in paths.items() if path is not None}


def definition(place: str, kind: str) -> Manifest:
    """Return a CustomResourceDefinition of a kind, which accepts any fields."""
    where, version = place.split("/")
    plural, _, group = where.partition(".")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": where},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": names,
            "versions": [{**served, "subresources": {"status": {}}}],
        },
    }


def fill(value: Any, known: Mapping[str, str]) -> Any:
    """Replace the placeholders in every text of a value."""
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
        # Go applies the replacements in its go.mod only if it is the main module.
        command = ["go", "mod", "download", "-json", f"{module}@{version}"]
        said = subprocess.run(command, cwd=work, check=True, capture_output=True, text=True).stdout
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / "partial"
        build = ["go", "build", "-C", json.loads(said)["Dir"], "-mod=mod", "-trimpath", "-o", str(partial), "."]
        subprocess.run(build, check=True, timeout=BUILD_SECONDS)
    partial.rename(program)
    return program


def installed(requirements: Path) -> Path:
    """Return the interpreter of a virtual environment with exactly these requirements, created on first use."""
    digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = cache_root(os.environ) / f"venv-{digest}"
    python, complete = folder / "bin" / "python", folder / ".complete"
    if not complete.exists():
        venv.create(folder, clear=True)
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--quiet", "install"]
        command = [*pip, "--require-hashes", "--requirement", str(requirements)]
        subprocess.run(command, check=True, timeout=BUILD_SECONDS)
        complete.touch()
    return python
