"""Programs that are built from a Go module once and kept in the cache. Callers specify the programs."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.netns import in_namespace

PROGRESS_INTERVAL = 15.0
BUILD_TIMEOUT = 3600.0

Say = Callable[[str], None]


class BinariesError(Exception):
    """A program is missing and cannot be built; the message is one line with the remedy."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to build.

    Attributes:
        module: Folder of the go.mod and go.sum, which pin every version.
        packages: The commands.
        link_flags: For the linker.
        title: What is built and the time it takes, as text. without_go: The message if Go is missing.
    """

    module: Path
    packages: tuple[str, ...]
    link_flags: tuple[str, ...]
    title: str
    without_go: str

    def command(self, go: str, out: Path) -> list[str]:
        """Return the command that builds every program into `out`, naming each package as it is compiled."""
        flags = ("-v", "-mod=readonly", "-trimpath", "-buildvcs=false", f"-ldflags={' '.join(self.link_flags)}")
        return [go, "build", *flags, f"-o={out}/", *self.packages]


def cache_root(environ: Mapping[str, str]) -> Path:
    """Return the cache folder: $APISIX_INGRESS_CACHE or the user's cache folder."""
    if named := environ.get("APISIX_INGRESS_CACHE"):
        return Path(named)
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or Path.home()) / ".cache")
    return Path(base) / "apisix-ingress"


def cached(folder: Path, recipe: Recipe, say: Say) -> Path:
    """Return the folder with the programs; build them if it does not exist.

    Raises:
        BinariesError: when they cannot be built.
    """
    if folder.is_dir():
        return folder
    with _lock(folder.with_name(folder.name + ".lock"), say):
        if not folder.is_dir():
            _build_into(folder, recipe, say)
    return folder


def progress(output: str, elapsed: float) -> str:
    """Return a progress line from the output of `go build -v` so far and the elapsed seconds."""
    lines = output.splitlines()
    downloads = sum(line.startswith("go: downloading ") for line in lines)
    compiled = sum(not line.startswith("go: ") for line in lines)
    return f"  {elapsed:4.0f} s: {downloads} modules downloaded, {compiled} packages compiled"


def say_on_stderr(line: str) -> None:
    """Show progress on stderr, separate from the output."""
    print(line, file=sys.stderr, flush=True)


def _build_into(folder: Path, recipe: Recipe, say: Say) -> None:
    go = shutil.which("go")
    if go is None:
        raise BinariesError(recipe.without_go)
    say(f"building {recipe.title} once, into {folder}")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=folder.name + ".", dir=folder.parent) as work:
        out = Path(work, "out")
        out.mkdir()
        _run_go(recipe.command(go, out), recipe.module, log=Path(work, "go.log"), say=say)
        # A rename is atomic: if the folder is visible, it is complete.
        out.rename(folder)
    say(f"built in {time.monotonic() - started:.0f} s")


def _run_go(command: list[str], module: Path, *, log: Path, say: Say) -> None:
    # Without cgo no C compiler is needed, and the programs run on any libc.
    env = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    started = time.monotonic()
    with log.open("wb") as output:
        child = subprocess.Popen(command, cwd=module, env=env, stdout=output, stderr=output)
    try:
        while (waited := time.monotonic() - started) < BUILD_TIMEOUT:
            try:
                child.wait(PROGRESS_INTERVAL - waited % PROGRESS_INTERVAL)
                break
            except subprocess.TimeoutExpired:
                say(progress(log.read_text(errors="replace"), time.monotonic() - started))
    finally:
        if child.poll() is None:
            child.terminate()
            child.wait()
    if child.returncode != 0:
        say("\n".join(log.read_text(errors="replace").splitlines()[-15:]))
        raise BinariesError(_build_failed(child.returncode))


def _build_failed(code: int) -> str:
    if in_namespace():
        return "go build failed, there is no network here: run `python -m e2e.cluster.binaries` before `e2e.netns`"
    return f"go build failed with exit status {code}: see above; Go 1.24 or newer and access to Go modules are needed"


@contextmanager
def _lock(path: Path, say: Say) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process builds the programs: waiting for {path}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
