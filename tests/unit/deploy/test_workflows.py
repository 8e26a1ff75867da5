"""The workflows: pinned actions, small permissions, bounded time, and commands that exist."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hatchling.cli.build import build_command

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def jobs() -> list[Any]:
    return [
        pytest.param(job, id=f"{path.stem} {name}")
        for path in WORKFLOWS
        for name, job in yaml.safe_load(path.read_text())["jobs"].items()
    ]


def test_there_are_workflows_for_changes_and_releases() -> None:
    assert [path.stem for path in WORKFLOWS] == ["ci", "release"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_commit_with_its_version(path: Path) -> None:
    used = re.findall(r"uses: (.+)", path.read_text())
    assert used
    assert [line for line in used if not PINNED.fullmatch(line)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_may_only_read_unless_a_job_says_more(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("job", jobs())
def test_job_is_bounded_and_leaves_no_credentials(job: dict[str, Any]) -> None:
    assert 0 < job["timeout-minutes"] <= 90
    checkouts = [step for step in job["steps"] if str(step.get("uses", "")).startswith("actions/checkout@")]
    assert [step["with"]["persist-credentials"] for step in checkouts] == [False] * len(checkouts)


@pytest.mark.parametrize("job", jobs())
def test_tasks_of_a_job_exist(job: dict[str, Any]) -> None:
    makefile = (ROOT / "Makefile").read_text()
    commands = [str(step.get("run", "")) for step in job["steps"]]
    tasks = {found for command in commands for found in re.findall(r"^make ([\w-]+)", command, re.MULTILINE)}
    assert {task for task in tasks if not re.search(rf"^{task}:", makefile, re.MULTILINE)} == set()


def test_dockerfile_loads_no_frontend_by_tag() -> None:
    """A frontend is a program that builds the image; a tag may be moved."""
    assert "syntax=" not in (ROOT / "deploy" / "Dockerfile").read_text()


def test_text_of_a_pull_request_is_never_part_of_a_command() -> None:
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            assert [step["run"] for step in job["steps"] if "${{" in str(step.get("run", ""))] == []


@pytest.mark.parametrize("name", ["bug", "idea"])
def test_issue_form_has_fields_with_labels(name: str) -> None:
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text())
    assert all(field["attributes"]["label"] for field in form["body"])


def test_bug_report_asks_for_the_bundle() -> None:
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml").read_text())
    (bundle,) = (field for field in form["body"] if field["id"] == "bundle")
    assert bundle["validations"]["required"]


def test_locked_packages_get_updates() -> None:
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())["updates"]
    (pip,) = (entry for entry in updates if entry["package-ecosystem"] == "pip")
    files = (*ROOT.glob("requirements/*.txt"), *ROOT.glob("deploy/*.txt"))
    locked = {f"/{path.parent.relative_to(ROOT)}" for path in files}
    assert locked <= set(pip["directories"])


def test_released_image_is_built_from_a_base_that_is_pinned_by_digest() -> None:
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]["image"]["steps"]
    (check,) = (step for step in steps if "PYTHON_IMAGE" in step.get("env", {}))
    (build,) = (step for step in steps if step.get("id") == "build")
    assert steps.index(check) < steps.index(build)
    assert build["with"]["build-args"] == "PYTHON_IMAGE=${{ vars.PYTHON_IMAGE }}"

    def passes(image: str) -> bool:
        bash = ["bash", "-e", "-c", check["run"]]
        return subprocess.run(bash, cwd=ROOT, env={**os.environ, "PYTHON_IMAGE": image}, check=False).returncode == 0

    (base,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", (ROOT / "deploy" / "Dockerfile").read_text(), re.MULTILINE)
    assert passes(f"{base}@sha256:{'0' * 64}")
    assert not any(map(passes, ("", base, f"{base}@sha256:0", f"python:3.0@sha256:{'0' * 64}")))


def release_job(name: str) -> list[Any]:
    steps: list[Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"][name][
        "steps"
    ]
    return steps


@pytest.mark.parametrize("job", ["image", "chart"])
def test_what_is_pushed_is_signed_and_attested_by_digest(job: str) -> None:
    commands = " ".join(str(step.get("run", "")) for step in release_job(job))
    assert 'go run "${COSIGN}" sign --yes' in commands
    assert "@${DIGEST}" in commands
    (proof,) = [step for step in release_job(job) if "attest-build-provenance" in str(step.get("uses"))]
    assert proof["with"]["push-to-registry"]
    assert proof["with"]["subject-digest"].endswith(".outputs.digest }}")


def test_image_carries_an_sbom_and_its_provenance() -> None:
    (build,) = [step for step in release_job("image") if step.get("id") == "build"]
    assert (build["with"]["sbom"], build["with"]["provenance"]) == (True, "mode=max")


def test_a_release_has_the_crds_and_a_chart_that_installs_its_image(tmp_path: Path) -> None:
    crds = " ".join(str(step.get("run", "")) for step in release_job("wheel"))
    assert "deploy/kustomize/crds/crds.yaml" in crds
    chart = tmp_path / "deploy" / "charts" / "apisix-ingress"
    chart.mkdir(parents=True)
    (chart / "Chart.yaml").write_text((ROOT / chart.relative_to(tmp_path) / "Chart.yaml").read_text())
    (step,) = [
        each for each in release_job("chart") if each.get("name") == "the published chart installs the published image"
    ]
    github = {"GITHUB_REPOSITORY_OWNER": "Some", "GITHUB_REPOSITORY": "Some/Where", "GITHUB_ENV": str(tmp_path / "env")}
    env = {"PATH": os.environ["PATH"], **github}
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=env, timeout=10, check=True)
    annotations = yaml.safe_load((chart / "Chart.yaml").read_text())["annotations"]
    assert annotations["apisix-ingress/image"] == "ghcr.io/some/where"
    assert (tmp_path / "env").read_text() == "CHART=ghcr.io/some/charts/apisix-ingress\n"


def test_the_command_that_builds_the_wheel_has_only_options_that_exist() -> None:
    (command,) = [step["run"] for step in release_job("wheel") if "hatchling" in str(step.get("run"))]
    parser = argparse.ArgumentParser()
    build_command(parser.add_subparsers(), {})
    _, arguments = command.split(" -m hatchling ")
    assert parser.parse_args(arguments.split()).directory == "dist"


def test_a_released_image_has_the_times_of_its_commit() -> None:
    (build,) = [step for step in release_job("image") if step.get("id") == "build"]
    commands = " ".join(str(step.get("run", "")) for step in release_job("image"))
    assert 'echo "SOURCE_DATE_EPOCH=$(git show --no-patch --format=%ct)" >> "$GITHUB_ENV"' in commands
    assert build["with"]["outputs"] == "type=registry,rewrite-timestamp=true"
