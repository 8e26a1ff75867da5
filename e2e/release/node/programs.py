"""The programs of a node: Go builds kubelet, kube-proxy and their neighbours once, a C compiler builds pause."""

import hashlib
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from e2e.cluster.binaries import cache_name, kubernetes_version, link_flags
from e2e.cluster.gobuild import Recipe, cache_root, cached, say_on_stderr
from e2e.release.shell import Shell

MODULE = Path(__file__).parent / "programs"
KIND_MODULE = Path(__file__).parents[2] / "kind" / "programs"
PROGRAMS = ("kubelet", "kube-proxy", "kube-scheduler", "kubeadm")


def node_programs(environ: Mapping[str, str]) -> Path:
    """Return the folder with the programs of a node; build them if it does not exist."""
    version = kubernetes_version((MODULE / "go.mod").read_text())
    recipe = Recipe(
        MODULE,
        tuple(f"k8s.io/kubernetes/cmd/{program}" for program in PROGRAMS),
        link_flags(version),
        title=f"{', '.join(PROGRAMS)} {version} (some minutes)",
        without_go="Go is needed once to build kubelet: install Go 1.24 or newer",
    )
    return cached(cache_root(environ) / f"node-{cache_name(MODULE)}", recipe, say_on_stderr)


def kind_programs(environ: Mapping[str, str]) -> Path:
    """Return the folder with etcd, CoreDNS and the policy controller; build them if it does not exist."""
    go_mod = (KIND_MODULE / "go.mod").read_text()
    sources = "".join(path.read_text() for path in sorted(KIND_MODULE.glob("*/main.go")))
    key = hashlib.sha256(f"{go_mod}{sources}{platform.machine()}".encode()).hexdigest()[:12]
    recipe = Recipe(
        KIND_MODULE,
        tuple(f"./{path.parent.name}" for path in sorted(KIND_MODULE.glob("*/main.go"))),
        ("-s", "-w"),
        title="etcd, coredns and policies (some minutes)",
        without_go="Go is needed once to build etcd and CoreDNS: install Go 1.24 or newer",
    )
    return cached(cache_root(environ) / f"kind-programs-{key}", recipe, say_on_stderr)


def pause_image(shell: Shell, folder: Path) -> Path:
    """Compile pause from the Kubernetes module, and return a folder with a Containerfile for its image."""
    module = shell.run("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes", cwd=MODULE)
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "pause.c"
    shutil.copy(Path(module) / "build/pause/linux/pause.c", source)
    shell.run("cc", "-Os", "-static", "-DVERSION=rehearsal", "-o", folder / "pause", source)
    (folder / "Containerfile").write_text('FROM scratch\nCOPY pause /pause\nUSER 65535:65535\nENTRYPOINT ["/pause"]\n')
    return folder
