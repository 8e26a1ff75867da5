"""buildah and podman, with images and containers in a folder of the rehearsal instead of the machine's own."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from e2e.release.rehearsal import Rehearsal

# crun rejects machines that have cgroup v1 and v2 at the same time; runc supports both.
RUNTIME = ("--cgroup-manager", "cgroupfs", "--runtime", "runc")
# The hard limits of this process may be below podman's defaults.
LIMITS = ("--ulimit", "nofile=1024:4096", "--ulimit", "nproc=4096:4096")
CERTIFICATES = "/etc/ssl/certs:/etc/ssl/certs:ro"


class Containers:
    """The images and containers of one rehearsal."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._shell = rehearsal.shell
        self._storage = ("--root", str(rehearsal.work / "storage"), "--runroot", str(rehearsal.work / "run"))

    def build(self, context: Path, tag: str, *arguments: str) -> str:
        """Build an image without a cache, with the certificates of this machine, and return its id."""
        options = ("--no-cache", "--isolation", "chroot", "--network", "host", "--volume", CERTIFICATES)
        self.buildah("bud", *options, *arguments, "--tag", tag, str(context))
        return str(self.inspect(tag)["FromImageID"])

    def buildah(self, *words: str) -> str:
        return self._shell.run("buildah", *self._storage, *words, timeout=1200)

    def podman(self, *words: str, timeout: float = 120.0) -> str:
        return self._shell.run("podman", *self._storage, *RUNTIME, *words, timeout=timeout)

    def inspect(self, tag: str) -> Any:
        """Return what buildah knows about an image."""
        return json.loads(self.buildah("inspect", "--type", "image", tag))

    def save(self, tag: str, path: Path, form: str = "oci-archive") -> Path:
        """Write an image into one file."""
        path.unlink(missing_ok=True)
        self.buildah("push", tag, f"{form}:{path}:{tag}")
        return path

    def unpack(self, tag: str, folder: Path) -> Path:
        """Copy the files of an image into an empty folder and return it."""
        self._shell.run("rm", "-rf", folder)
        folder.mkdir(parents=True)
        container = self.buildah("from", tag)
        try:
            self._shell.run("cp", "-a", f"{self.buildah('mount', container)}/.", folder)
        finally:
            self.buildah("umount", container)
            self.buildah("rm", container)
        return folder


def as_the_chart_does(context: dict[str, Any], memory: str) -> Sequence[str]:
    """Return podman's options for the security contexts of the chart: {"pod": …, "container": …}."""
    pod, container = context["pod"], context["container"]
    assert pod["runAsNonRoot"], pod
    assert container["readOnlyRootFilesystem"], container
    assert not container["allowPrivilegeEscalation"], container
    drop = [word for capability in container["capabilities"]["drop"] for word in ("--cap-drop", capability)]
    user = f"{pod['runAsUser']}:{pod['runAsGroup']}"
    return (*LIMITS, "--user", user, "--read-only", "--read-only-tmpfs=false", "--security-opt", "no-new-privileges",
            "--memory", memory, *drop)  # fmt: skip
