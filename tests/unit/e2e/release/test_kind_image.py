"""What the node image of kind contains."""

from pathlib import Path

import pytest
import yaml

from e2e.release.kind_image import BASE, POLICIES, RECIPE, Programs, containerfile


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    made = Programs(tmp_path / "cluster", tmp_path / "node", tmp_path / "kind")
    for folder, name in ((made.cluster, "kube-apiserver"), (made.node, "kube-proxy"), (made.kind, "coredns")):
        folder.mkdir()
        (folder / name).touch()
    return made


def test_an_image_of_kubeadm_has_the_program_of_its_name(programs: Programs) -> None:
    assert programs.of_image("registry.k8s.io/kube-apiserver:v1") == (programs.cluster / "kube-apiserver", "scratch")
    assert programs.of_image("registry.k8s.io/coredns/coredns:v1") == (programs.kind / "coredns", "scratch")


def test_programs_that_call_iptables_have_a_base_with_it(programs: Programs) -> None:
    assert programs.of_image("registry.k8s.io/kube-proxy:v1") == (programs.node / "kube-proxy", BASE)


def test_an_image_runs_its_program_from_the_search_path() -> None:
    got = containerfile("etcd", "scratch").splitlines()
    assert got == ["FROM scratch", "COPY etcd /usr/local/bin/etcd", 'ENTRYPOINT ["/usr/local/bin/etcd"]', "CMD []"]


def test_kind_fills_in_the_pod_range_of_the_default_cni_which_uses_an_image_of_the_node() -> None:
    text = (RECIPE / "manifests/default-cni.yaml").read_text()
    assert "would you kindly template this file" in text
    assert '"subnet": "{{ .PodSubnet }}"' in text
    (daemon,) = [each for each in yaml.safe_load_all(text) if each["kind"] == "DaemonSet"]
    pod = daemon["spec"]["template"]["spec"]
    assert {each["image"] for each in (*pod["initContainers"], *pod["containers"])} == {POLICIES}
