"""The requirements of an adapter besides its command: programs, kinds and objects in the cluster, a sidecar."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.adapter import ROOT, Given, Sidecar, given, installed, load
from benchmarks.subject import Beside, Usage, total

PROGRAMS = {"controller": Given("BENCH_ONE", "the one"), "adc": Given("BENCH_TWO", "the other")}


def test_programs_that_are_missing_are_named_at_once() -> None:
    with pytest.raises(SystemExit) as raised:
        given("peer", PROGRAMS, {"BENCH_TWO": "/nowhere/adc"})
    want = "error: peer is not built here: set the paths of its programs:"
    assert str(raised.value).splitlines() == [want, "  BENCH_ONE: the one", "  BENCH_TWO: the other"]


def test_an_installed_program_is_not_requested() -> None:
    with pytest.raises(SystemExit) as raised:
        given("peer", PROGRAMS, {"BENCH_ONE": sys.executable})
    assert str(raised.value).splitlines()[1:] == ["  BENCH_TWO: the other"]


def test_programs_are_filled_in_by_their_names() -> None:
    got = given("peer", PROGRAMS, {"BENCH_ONE": sys.executable, "BENCH_TWO": sys.executable})
    assert got == {"controller": sys.executable, "adc": sys.executable}


def test_an_adapter_without_programs_needs_no_environment() -> None:
    assert given("ours", load("ours").programs, {}) == {}


def test_kinds_come_before_the_objects_of_these_kinds() -> None:
    known = {"gateway_url": "http://gateway", "admin_key": "key"}
    got = load("aic-2.2.0").manifests(known)
    kinds = [each["kind"] for each in got]
    assert kinds == ["CustomResourceDefinition"] * 6 + ["GatewayProxy", "IngressClass"]
    assert got[0]["metadata"] == {"name": "gatewayproxies.apisix.apache.org"}
    plane = got[6]["spec"]["provider"]["controlPlane"]
    assert plane["endpoints"] == ["http://gateway"]
    assert plane["auth"]["adminKey"] == {"value": "key"}
    reference = got[7]["spec"]["parameters"]
    assert (reference["name"], reference["namespace"]) == (got[6]["metadata"]["name"], got[6]["metadata"]["namespace"])


def test_the_sidecar_listens_where_the_controller_looks() -> None:
    adapter = load("aic-2.2.0")
    assert adapter.sidecar is not None
    assert adapter.environment["ADC_SERVER_URL"] in adapter.sidecar.command


def test_what_several_processes_use_is_added_up() -> None:
    assert total([Usage(1.0, 20.0, 10.0), Usage(0.5, 5.0, 4.0)]) == Usage(1.5, 25.0, 14.0)


def test_cpu_time_of_a_sidecar_is_measured_from_each_start_of_the_controller(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    beside = Beside(Sidecar(("sidecar",), "http://nowhere"), {}, tmp_path)
    monkeypatch.setattr(beside, "process", SimpleNamespace(pid=1))
    clock = iter([5.0, 7.5])
    monkeypatch.setattr("benchmarks.subject.used", lambda _process: Usage(next(clock), 3.0, 2.0))
    beside.begin()
    assert beside.usage() == Usage(2.5, 3.0, 2.0)


def test_requirements_are_installed_once_and_separately(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    requirements = tmp_path / "requirements.txt"
    requirements.touch()
    python = installed(requirements)
    marker = python.parent / "marker"
    marker.touch()
    assert installed(requirements) == python
    assert marker.exists()
    assert subprocess.run([python, "-c", "import structlog"], capture_output=True, check=False).returncode == 1


def test_an_adapter_of_another_checkout_uses_its_code() -> None:
    here, there = load("ours"), load(f"ours@{ROOT}")
    assert (there.name, there.root) == (f"ours@{ROOT.name}", ROOT)
    assert there.title == f"{here.title} in {ROOT.name}"
    with pytest.raises(SystemExit, match="unknown adapter ours"):
        load("ours@/nowhere")
