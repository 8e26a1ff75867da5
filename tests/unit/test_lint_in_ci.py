"""The pre-commit hook and the GitHub action of the repository: their declarations and commands."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.flow.commandline import WEB

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


def test_hook_runs_lint_once_with_every_yaml_file() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert (hook["entry"], hook["language"], hook["types"]) == ("apisix-ingress lint", "python", ["yaml"])
    assert hook["require_serial"] is True
    assert hook["args"] == ["--"]  # the name of a file is not an option


def test_every_input_of_the_action_reaches_the_script_as_a_variable() -> None:
    (step,) = [each for each in ACTION["runs"]["steps"] if each.get("name") == "lint"]
    assert sorted(step["env"].values()) == sorted(f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"])
    assert "${{" not in step["run"]


def test_action_installs_only_what_is_locked() -> None:
    (step,) = [each for each in ACTION["runs"]["steps"] if each.get("name") == "install"]
    script = step["run"]
    assert "--require-hashes --only-binary :all:" in script
    assert "--no-deps --no-build-isolation" in script
    assert [name for name in ("deploy/build.txt", "requirements/run.txt") if name not in script] == []


def test_action_runs_no_code_of_the_checked_repository(tmp_path: Path) -> None:
    modules = [*sys.stdlib_module_names - set(sys.builtin_module_names), "pip", "ensurepip"]
    for name in modules:
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')")
    (step,) = [each for each in ACTION["runs"]["steps"] if each.get("name") == "install"]
    script = step["run"].replace("-m venv ", "-m venv --without-pip ")  # it ends before pip installs anything
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {"PATH": path, "RUNNER_TEMP": str(tmp_path / "runner"), "GITHUB_ACTION_PATH": str(ROOT)}

    got = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=env, capture_output=True, check=False)

    assert b"bin/pip: No such file or directory" in got.stderr
    assert not (tmp_path / "ran").exists()


def run_action(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the script of the action with some inputs, the others at their defaults."""
    program = folder / "runner" / "apisix-ingress" / "bin" / "apisix-ingress"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m apisix_ingress "$@"\n')
    program.chmod(0o755)
    (step,) = [each for each in ACTION["runs"]["steps"] if each.get("name") == "lint"]
    given = {name.upper().partition("-")[0]: each["default"] for name, each in ACTION["inputs"].items()}
    variables = {"FAILURE": "THRESHOLD"}
    env = {variables.get(name, name): value for name, value in {**given, **inputs}.items()}
    return subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "RUNNER_TEMP": str(folder / "runner"), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_action_annotates_lines_and_fails_for_findings(tmp_path: Path) -> None:
    (tmp_path / "my app.yaml").write_text("kind: [")
    (tmp_path / "web.yaml").write_text(WEB.replace("serviceName: web", "serviceName: gone"))
    got = run_action(tmp_path, PATHS="web.yaml", SARIF="lint.sarif")
    assert got.returncode == 1, got.stderr
    assert got.stdout.startswith("::error file=web.yaml,line=")
    assert '"version": "2.1.0"' in (tmp_path / "lint.sarif").read_text()


@pytest.mark.parametrize(("allow", "status"), [("false", 3), ("true", 0)])
def test_action_fails_for_what_was_not_checked_unless_it_is_allowed(tmp_path: Path, allow: str, status: int) -> None:
    (tmp_path / "web.yaml").write_text(f"apiVersion: {WEB.rpartition('apiVersion: ')[2]}")
    got = run_action(tmp_path, PATHS="web.yaml", ALLOW=allow)
    assert (got.returncode, got.stdout.startswith("::notice file=web.yaml,line=")) == (status, True), got.stderr


def test_action_takes_no_name_of_a_file_for_an_option(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(WEB.replace("serviceName: web", "serviceName: gone"))
    hostile = "--suppress=AIX0101"
    (tmp_path / hostile).write_text("")
    got = run_action(tmp_path, PATHS=f"{hostile} web.yaml")
    assert (got.returncode, got.stdout.startswith("::error file=web.yaml,line=")) == (1, True), got.stderr


@pytest.mark.parametrize("suppress", ["AIX0101", "AIX0101 AIX0802"])
def test_action_passes_options_on(tmp_path: Path, suppress: str) -> None:
    (tmp_path / "web.yaml").write_text(WEB.replace("serviceName: web", "serviceName: gone"))
    got = run_action(tmp_path, PATHS="web.yaml", SUPPRESS=suppress, APISIX="3.18")
    assert (got.returncode, got.stdout) == (0, ""), got.stderr
