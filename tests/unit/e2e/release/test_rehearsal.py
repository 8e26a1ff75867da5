"""How steps of a rehearsal end, and what the report contains."""

from pathlib import Path

import pytest

from e2e.release.image import UNWANTED, has_secret
from e2e.release.rehearsal import Facts, NotRunError, Rehearsal, Step, run_step, run_steps
from e2e.release.report import markdown
from e2e.release.sbom import write_sbom
from e2e.release.shell import Shell


@pytest.fixture
def rehearsal(tmp_path: Path) -> Rehearsal:
    return Rehearsal(tmp_path, tmp_path, commit="c", previous="p", epoch=0, shell=Shell(tmp_path / "log"))


def test_a_step_that_succeeds_has_passed_with_its_facts(rehearsal: Rehearsal) -> None:
    got = run_step(Step("image", "is built", lambda _: {"size": "1 MB"}), rehearsal)
    assert (got.outcome, got.facts, got.error) == ("passed", {"size": "1 MB"}, "")


def test_a_step_without_the_result_of_an_earlier_one_is_not_run(rehearsal: Rehearsal) -> None:
    def needs(it: Rehearsal) -> Facts:
        return {"image": it.need("image")}

    got = run_step(Step("image", "runs", needs), rehearsal)
    assert (got.outcome, got.error) == ("not run", "an earlier step did not make image")


def test_a_failed_command_fails_its_step_with_the_exact_error_and_the_next_step_runs(rehearsal: Rehearsal) -> None:
    def fails(it: Rehearsal) -> Facts:
        return {"never": it.shell.run("sh", "-c", "echo no such thing >&2; exit 3")}

    steps = [Step("a", "fails", fails), Step("b", "passes", lambda _: {})]
    got = run_steps(steps, rehearsal, lambda _: None)
    assert [result.outcome for result in got] == ["failed", "passed"]
    assert got[0].error == "sh -c 'echo no such thing >&2; exit 3': exit status 3: no such thing"


def test_a_defect_of_a_step_is_a_failure(rehearsal: Rehearsal) -> None:
    def broken(_: Rehearsal) -> Facts:
        raise KeyError("digest")

    got = run_step(Step("a", "is broken", broken), rehearsal)
    assert got.outcome == "failed"
    assert got.error.endswith("KeyError: 'digest'\n")


def test_the_report_counts_outcomes_and_gives_the_reason_of_what_was_not_run(rehearsal: Rehearsal) -> None:
    def cannot(_: Rehearsal) -> Facts:
        raise NotRunError("no cc: install gcc")

    results = run_steps([Step("a", "one", lambda _: {"n": "1"}), Step("a", "two", cannot)], rehearsal, lambda _: None)
    got = markdown({"commit": "c"}, results)
    assert "* 1 passed, 0 failed, 1 not run" in got
    assert "    * n: 1" in got
    assert "      no cc: install gcc" in got


@pytest.mark.parametrize("name", ["/usr/bin/apt-get", "/usr/bin/dpkg", "/usr/local/bin/pip3.11", "/usr/bin/gcc"])
def test_programs_that_install_or_compile_are_found(name: str) -> None:
    assert UNWANTED.search(name)


@pytest.mark.parametrize("name", ["/usr/bin/sh", "/usr/bin/python3.11", "/opt/apisix-ingress/bin/apisix-ingress"])
def test_what_the_controller_needs_is_permitted(name: str) -> None:
    assert not UNWANTED.search(name)


def test_a_private_key_is_found_in_a_file_but_not_its_pattern_in_a_library() -> None:
    key = b"-----BEGIN PRIVATE KEY-----\n" + b"A" * 64
    assert has_secret(key)
    assert not has_secret(b"-----BEGIN PRIVATE KEY-----")
    assert not has_secret(b"\x7fELF" + key)


def test_the_sbom_lists_python_and_debian_packages_in_order(tmp_path: Path) -> None:
    info = tmp_path / "opt/apisix-ingress/lib/python3.11/site-packages/Jinja2-3.1.6.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: Jinja2\nVersion: 3.1.6\n")
    status = tmp_path / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text("Package: libc6\nVersion: 2.36-9\n\nPackage: bash\nVersion: 5.2\n")
    path, counts = write_sbom(tmp_path, tmp_path / "sbom.json")
    assert counts == {"Python packages": 1, "Debian packages": 2}
    purls = ["pkg:pypi/jinja2@3.1.6", "pkg:deb/debian/bash@5.2", "pkg:deb/debian/libc6@2.36-9"]
    positions = [path.read_text().index(purl) for purl in purls]
    assert positions == sorted(positions)
