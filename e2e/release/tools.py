"""Installs the programs of the rehearsal: Debian packages, and programs that Go builds once into the cache."""

import platform
import shutil
import tempfile
from dataclasses import dataclass
from os import environ
from pathlib import Path

from e2e.cluster.gobuild import cache_root
from e2e.release.rehearsal import Facts, NotRunError, Rehearsal, Step
from e2e.release.shell import CommandError

PACKAGES = (
    "apache2-utils",
    "buildah",
    "ca-certificates",
    "conntrack",
    "containerd",
    "containernetworking-plugins",
    "debootstrap",
    "iproute2",
    "ipset",
    "iptables",
    "openssl",
    "podman",
    "runc",
)


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that `go install` builds."""

    name: str
    package: str
    version: str


REGISTRY = Tool("registry", "github.com/distribution/distribution/v3/cmd/registry", "v3.0.0")
COSIGN = Tool("cosign", "github.com/sigstore/cosign/v2/cmd/cosign", "v2.5.0")
KIND = Tool("kind", "sigs.k8s.io/kind", "v0.30.0")


def install_packages(rehearsal: Rehearsal) -> Facts:
    """Install what is missing with apt-get, which needs root."""
    missing = [name for name in PACKAGES if not _installed(rehearsal, name)]
    if missing:
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        rehearsal.shell.run("apt-get", "update", "-q", env=quiet)
        rehearsal.shell.run("apt-get", "install", "-y", "-q", "--no-install-recommends", *missing, env=quiet)
    versions = rehearsal.shell.run("dpkg-query", "-W", "-f", "${Package} ${Version}\n", *PACKAGES)
    return {"installed now": ", ".join(missing) or "nothing", "versions": "; ".join(versions.splitlines())}


def locate_tool(rehearsal: Rehearsal, tool: Tool) -> Path:
    """Return a program of a Go module; build it on first use.

    Raises:
        NotRunError: if it cannot be built.
    """
    folder = cache_root(environ) / f"{tool.name}-{tool.version}-{platform.machine()}"
    if not (folder / tool.name).is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=folder.name + ".", dir=folder.parent) as work:
            try:
                env = {"CGO_ENABLED": "0", "GOBIN": work, "GOFLAGS": "-trimpath", "GOWORK": "off"}
                rehearsal.shell.run("go", "install", f"{tool.package}@{tool.version}", env=env, timeout=1200)
            except CommandError as e:
                raise NotRunError(f"{tool.name} {tool.version} cannot be built: {e}") from e
            shutil.copytree(work, folder, dirs_exist_ok=True)
    return folder / tool.name


def go() -> str:
    """Return the path of Go.

    Raises:
        NotRunError: if it is not installed.
    """
    if path := shutil.which("go"):
        return path
    raise NotRunError("Go is not installed: install Go 1.24 or newer")


def _installed(rehearsal: Rehearsal, package: str) -> bool:
    try:
        return rehearsal.shell.run("dpkg-query", "-W", "-f", "${db:Status-Status}", package) == "installed"
    except CommandError:
        return False


STEPS = (Step("tools", "Debian packages are installed", install_packages),)
