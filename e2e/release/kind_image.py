"""Builds a node image for kind without Docker Hub: kind's own files, Debian packages, and programs of Go modules.

The image has what kind's image has: systemd, containerd, kubelet, kubeadm, kubectl and the images of the control plane.
containerd, runc and the CNI plugins are Debian's. The default CNI is for one node, and the StorageClass provisions
nothing; both are in `e2e/kind/node/manifests`.
"""

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from e2e.charts.kinds import ROOT
from e2e.cluster.binaries import kubernetes_version, locate
from e2e.release import base, tools
from e2e.release.containers import Containers
from e2e.release.node.programs import MODULE, kind_programs, node_programs, pause_image
from e2e.release.rehearsal import Facts, Rehearsal

TAG = "localhost/kind-node:rehearsal"
BASE = "localhost/kind-base:rehearsal"
POLICIES = "localhost/policies:kind"
RECIPE = ROOT / "e2e/kind/node"
PACKAGES = (
    "ca-certificates,conntrack,containerd,containernetworking-plugins,ethtool,iproute2,ipset,iptables,jq,kmod,mount,"
    "nftables,procps,runc,systemd,util-linux"
)


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the programs of a node and of its control plane are."""

    cluster: Path
    node: Path
    kind: Path

    def of_image(self, tag: str) -> tuple[Path, str]:
        """Return the program of an image that kubeadm or a manifest names, and the base of the image."""
        name = tag.rpartition("/")[2].partition(":")[0]
        folder = next(each for each in (self.cluster, self.node, self.kind) if (each / name).is_file())
        return folder / name, BASE if name in ("kube-proxy", "policies") else "scratch"


def build(rehearsal: Rehearsal) -> Facts:
    """Build the node image and the images that it contains."""
    containers = Containers(rehearsal)
    work = rehearsal.work / "kind"
    programs = Programs(locate().kube_apiserver.parent, node_programs(os.environ), kind_programs(os.environ))
    version = kubernetes_version((MODULE / "go.mod").read_text())
    base.build_debian(rehearsal, work / "base", BASE, PACKAGES)
    root = work / "node" / "root"
    rehearsal.shell.run("rm", "-rf", root)
    _copy_files(_module_of_kind(rehearsal) / "images/base/files", root)
    (root / "usr/bin").mkdir()
    for program in (programs.node / "kubelet", programs.node / "kubeadm", programs.cluster / "kubectl"):
        shutil.copy(program, root / "usr/bin")
    (root / "kind/version").write_text(version)
    tags = _control_plane(rehearsal, programs, version, root)
    archive = ("--multi-image-archive", "--format", "docker-archive", "--output", str(root / "kind/images.tar"))
    containers.podman("save", *archive, *tags, timeout=900)
    image = containers.build(root.parent, TAG, "--build-arg", f"BASE={BASE}", "--file", str(RECIPE / "Containerfile"))
    rehearsal.made["node image"] = TAG
    return {"image": image, "Kubernetes": version, "images in it": ", ".join(tags)}


def _control_plane(rehearsal: Rehearsal, programs: Programs, version: str, root: Path) -> list[str]:
    """Build the images that kubeadm lists, the one of containerd's sandboxes, and the one of the default CNI."""
    containers = Containers(rehearsal)
    listed = rehearsal.shell.run(programs.node / "kubeadm", "config", "images", "list", "--kubernetes-version", version)
    tags = [tag for tag in (*listed.split(), POLICIES) if "/pause:" not in tag]
    for tag in tags:
        program, image = programs.of_image(tag)
        folder = rehearsal.work / "kind" / program.name
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(program, folder)
        (folder / "Containerfile").write_text(containerfile(program.name, image))
        containers.build(folder, tag, "--file", str(folder / "Containerfile"))
    (pause,) = re.findall(r'sandbox_image = "(.+)"', (root / "etc/containerd/config.toml").read_text())
    folder = pause_image(rehearsal.shell, rehearsal.work / "pause")
    containers.build(folder, pause, "--file", str(folder / "Containerfile"))
    return [*tags, pause]


def containerfile(program: str, image: str) -> str:
    """Return how an image with one program is built."""
    path = f"/usr/local/bin/{program}"
    return f'FROM {image}\nCOPY {program} {path}\nENTRYPOINT ["{path}"]\nCMD []\n'


def _module_of_kind(rehearsal: Rehearsal) -> Path:
    module = f"{tools.KIND.package}@{tools.KIND.version}"
    return Path(json.loads(rehearsal.shell.run("go", "mod", "download", "-json", module))["Dir"])


def _copy_files(kind: Path, root: Path) -> None:
    """Copy the files of kind's base image and those of the recipe, with the modes of kind's Dockerfile."""
    shutil.copytree(kind, root)
    for path in (root, *root.rglob("*")):
        executable = path.is_dir() or path.parent.name == "bin"
        path.chmod(0o755 if executable else 0o644)
    shutil.copy(RECIPE / "load-images.service", root / "etc/systemd/system")
    shutil.copytree(RECIPE / "manifests", root / "kind/manifests")
