"""The configuration files of a node's processes, as pure functions. Nothing is started here."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NODE = "rehearsal"
ADDRESS = "10.77.0.1"
POD_RANGE = "10.88.0.0/16"
CGROUPS = Path("/sys/fs/cgroup")
CGROUP = "apisix-ingress-rehearsal"
PAUSE = "localhost/pause:rehearsal"
REGISTRY = f"{ADDRESS}:5000"


@dataclass(frozen=True, slots=True)
class Files:
    """The paths of a node below its folder, which must be short: a socket's path has at most 107 characters."""

    root: Path

    @property
    def socket(self) -> Path:
        return self.root / "containerd.sock"

    @property
    def containerd(self) -> Path:
        return self.root / "containerd.toml"

    @property
    def hosts(self) -> Path:
        """The registries' addresses for containerd."""
        return self.root / "registries"

    @property
    def network(self) -> Path:
        """The CNI configuration."""
        return self.root / "net.d"

    @property
    def kubelet(self) -> Path:
        return self.root / "kubelet.yaml"


def containerd(files: Files) -> str:
    """Return containerd's configuration: its own folders, runc with cgroupfs, CNI plugins of Debian."""
    return f"""\
version = 2
root = "{files.root}/containerd"
state = "{files.root}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{files.socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{files.network}"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{files.hosts}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""


def mirror() -> str:
    """Return hosts.toml for a registry that a process on the node stands in for."""
    return f'server = "http://{REGISTRY}"\n[host."http://{REGISTRY}"]\n  capabilities = ["pull", "resolve"]\n'


def network() -> str:
    """Return the CNI configuration: a bridge, addresses from the Pod range."""
    bridge: dict[str, Any] = {
        "type": "bridge",
        "bridge": "pods0",
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": POD_RANGE}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return json.dumps({"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]})


def kubelet(files: Files) -> str:
    """Return kubelet's configuration: this machine's cgroup v1 and swap are accepted, and Pods are never evicted."""
    document = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{CGROUP}",
        "containerRuntimeEndpoint": f"unix://{files.socket}",
        "evictionHard": {"memory.available": "50Mi"},
        "failCgroupV1": False,
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": f"{files.root}/pod-logs",
        "volumePluginDir": f"{files.root}/volume-plugins",
    }
    return json.dumps(document)
