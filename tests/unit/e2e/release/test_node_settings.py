"""The configuration of a node's processes."""

import json
import tomllib
from pathlib import Path

from e2e.release.node import settings

FILES = settings.Files(Path("/tmp/node-12345678"))


def test_containerd_uses_only_the_folders_of_the_node() -> None:
    got = tomllib.loads(settings.containerd(FILES))
    assert {got["root"], got["state"], got["grpc"]["address"]} == {
        "/tmp/node-12345678/containerd",
        "/tmp/node-12345678/state",
        "/tmp/node-12345678/containerd.sock",
    }


def test_kubelet_talks_to_the_containerd_of_the_node_and_accepts_cgroup_v1() -> None:
    got = json.loads(settings.kubelet(FILES))
    assert got["containerRuntimeEndpoint"] == f"unix://{FILES.socket}"
    assert (got["failCgroupV1"], got["cgroupDriver"], got["cgroupRoot"]) == (False, "cgroupfs", f"/{settings.CGROUP}")


def test_pods_get_addresses_outside_the_range_of_the_other_stories() -> None:
    (bridge,) = json.loads(settings.network())["plugins"]
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.88.0.0/16"}]]


def test_the_registry_of_the_rehearsal_is_asked_instead_of_the_real_one() -> None:
    got = tomllib.loads(settings.mirror())
    assert (got["server"], list(got["host"])) == ("http://10.77.0.1:5000", ["http://10.77.0.1:5000"])
