"""Starts and stops a node: API server, scheduler, containerd, kubelet, kube-proxy, policies. The stories are elsewhere.

The process must be the first one of a PID namespace, with network and mount namespaces of its own (`enter` in
`e2e.release.node.part`): when it ends, nothing of the node is left but its folder and its cgroups.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from e2e.cluster.binaries import Binaries, locate_helm
from e2e.cluster.client import KubeClient, Manifest, wait_until
from e2e.cluster.local import LocalCluster
from e2e.cluster.process import Process
from e2e.release.node import settings
from e2e.release.shell import CommandError, Shell

READY_TIMEOUT = 120.0


class PodCluster(LocalCluster):
    """The local API server, as Pods need it: reachable from them, with every controller, without pretended nodes."""

    def _make_processes(self, binaries: Binaries) -> dict[str, Process]:
        processes = super()._make_processes(binaries)
        # The last flag of a name counts.
        processes["kube-apiserver"].command += [
            "--bind-address=0.0.0.0",
            f"--advertise-address={settings.ADDRESS}",
            "--endpoint-reconciler-type=lease",
        ]
        processes["kube-controller-manager"].command.append("--controllers=*")
        return processes

    def _add_nodes(self, api: KubeClient) -> None:
        """Add none: kubelet registers its own."""


class Node:
    """One node with its control plane. As a context manager, it starts and stops."""

    def __init__(self, shell: Shell, folder: Path, programs: Path, policies: Path, images: Mapping[str, Path]) -> None:
        """Prepare a node with images that are loaded from files."""
        self.shell = shell
        self._programs = programs
        self._policies = policies
        self._images = images
        self.files = settings.Files(folder)
        self.cluster = PodCluster(root=self.files.root / "cluster")
        self._helm = locate_helm()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._prepare_network()
            self._write_files()
            stack.enter_context(self.cluster)
            for name, command in self._commands().items():
                self._start(stack, name, command)
                if name == "containerd":
                    self._load_images()
            self._wait_ready()
            kubeconfig = ("--kubeconfig", self.cluster.kubeconfig, "--hostname-override", settings.NODE)
            self._start(stack, "policies", [self._policies / "policies", *kubeconfig])
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self, stack: ExitStack, name: str, command: list[str | Path]) -> None:
        process = Process(name, command, log=self.files.root / f"{name}.log")
        process.start()
        stack.callback(process.stop, 5.0)

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl(*words, stdin=stdin)

    def helm(self, *words: str | Path) -> str:
        return self.shell.run(self._helm, "--kubeconfig", self.cluster.kubeconfig, *words, timeout=300)

    def ctr(self, *words: str | Path) -> str:
        return self.shell.run("ctr", "--address", self.files.socket, "--namespace", "k8s.io", *words, timeout=300)

    def pods(self, api: KubeClient, namespace: str, labels: str) -> list[Manifest]:
        """Return the Pods that are not terminating."""
        found = api.objects("v1/Pod", namespace=namespace, labels=labels)
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def _commands(self) -> dict[str, list[str | Path]]:
        kubeconfig = self.cluster.kubeconfig
        kubelet = ("--node-ip", settings.ADDRESS, "--root-dir", self.files.root / "kubelet")
        return {
            "containerd": ["containerd", "--config", self.files.containerd],
            "kubelet": [
                self._programs / "kubelet",
                *("--config", self.files.kubelet, "--kubeconfig", kubeconfig, "--hostname-override", settings.NODE),
                *kubelet,
            ],
            "kube-scheduler": [self._programs / "kube-scheduler", "--kubeconfig", kubeconfig, "--leader-elect=false"],
            "kube-proxy": [
                *(self._programs / "kube-proxy", "--kubeconfig", kubeconfig, "--hostname-override", settings.NODE),
                *("--cluster-cidr", settings.POD_RANGE, "--conntrack-max-per-core=0", "--proxy-mode=iptables"),
            ],
        }

    def _prepare_network(self) -> None:
        commands = (
            "ip link set lo up",
            "ip link add node0 type veth peer name node0p",
            "ip link set node0p up",
            f"ip addr add {settings.ADDRESS}/24 dev node0",
            "ip link set node0 up",
            "ip route add default dev node0",
            "sysctl -q -w net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1",
            "mount --make-rshared /",
        )
        for command in commands:
            self.shell.run(*command.split())
        for controller in settings.CGROUPS.iterdir():
            if controller.is_dir() and not controller.is_symlink():
                (controller / settings.CGROUP).mkdir(exist_ok=True)
        cpuset = settings.CGROUPS / "cpuset"
        for name in ("cpuset.cpus", "cpuset.mems") if cpuset.is_dir() else ():
            (cpuset / settings.CGROUP / name).write_text((cpuset / name).read_text())

    def _write_files(self) -> None:
        files = self.files
        for folder in (files.network, files.hosts / "ghcr.io"):
            folder.mkdir(parents=True)
        (files.network / "10-pods.conflist").write_text(settings.network())
        (files.hosts / "ghcr.io" / "hosts.toml").write_text(settings.mirror())
        files.containerd.write_text(settings.containerd(files))
        files.kubelet.write_text(settings.kubelet(files))

    def _load_images(self) -> None:
        wait_until(self._containerd_answers, bool, "containerd to answer")
        for tag, path in self._images.items():
            self.ctr("images", "import", "--index-name", tag, path)

    def _containerd_answers(self) -> bool:
        try:
            return bool(self.ctr("version"))
        except CommandError:
            return False

    def _wait_ready(self) -> None:
        with self.cluster.client() as api:
            api.wait("Node", settings.NODE, _is_ready, "to be ready", timeout=READY_TIMEOUT)


def _is_ready(node: Manifest | None) -> bool:
    conditions = (node or {}).get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
