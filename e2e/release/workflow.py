"""The release workflow, step by step: each `run:` block of the file as it is, actions by a stand-in.

What GitHub keeps between steps is in files here as well: GITHUB_ENV for a job, GITHUB_OUTPUT for a step.
"""

import os
import shutil
from collections.abc import Mapping
from functools import partial
from typing import Any

import yaml

from e2e.charts.kinds import ROOT
from e2e.cluster.binaries import locate_helm
from e2e.release import actions
from e2e.release.actions import Block
from e2e.release.programs import write_stand_ins
from e2e.release.registry import USER, Registry
from e2e.release.rehearsal import Facts, NotRunError, Rehearsal, Step

FILE = ".github/workflows/release.yml"
REPOSITORY = "Example/apisix-ingress"
# Not steps of a release of their own: CI runs them for each change, and they take longer than all the others.
LEFT_TO_CI = {"make check", "make test"}


def run_block(job: str, number: int, rehearsal: Rehearsal) -> Facts:
    """Run one step of a job.

    Raises:
        NotRunError: if it is left to CI, or has no stand-in.
    """
    step = jobs()[job]["steps"][number]
    block = _block(job, step, rehearsal)
    if step.get("run") in LEFT_TO_CI:
        raise NotRunError(f"CI runs `{step['run']}` for every change, in up to 90 minutes")
    if "uses" in step:
        action = step["uses"].partition("@")[0]
        return actions.STAND_INS[action](block, {k: block.fill(str(v)) for k, v in step.get("with", {}).items()})
    with Registry(rehearsal).serving():
        return _run(block, step)


def jobs() -> Any:
    """Return the jobs of the workflow by name, in the order of the file, which is that of their `needs`."""
    return yaml.safe_load((ROOT / FILE).read_text())["jobs"]


def _run(block: Block, step: Mapping[str, Any]) -> Facts:
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    env = block.environment() | {name: block.fill(str(value)) for name, value in step.get("env", {}).items()}
    cwd = block.folder / str(step.get("working-directory", ""))
    printed = block.rehearsal.shell.run(*block.registry.wrap(*shell), cwd=cwd, env=env, timeout=1200)
    return {"last line": printed.splitlines()[-1][:160]} if printed else {}


def _block(job: str, step: Mapping[str, Any], rehearsal: Rehearsal) -> Block:
    state = rehearsal.work / "workflow" / job
    (state / "outputs").mkdir(parents=True, exist_ok=True)
    programs = write_stand_ins(rehearsal, rehearsal.work / "workflow" / "bin")
    helm = locate_helm().parent
    github = {
        "GITHUB_ACTOR": USER,
        "GITHUB_ENV": str(state / "env"),
        "GITHUB_OUTPUT": str(state / "outputs" / str(step.get("id", "none"))),
        "GITHUB_REF_NAME": f"v{rehearsal.version}",
        "GITHUB_REPOSITORY": REPOSITORY,
        "GITHUB_REPOSITORY_OWNER": REPOSITORY.partition("/")[0],
        "PATH": f"{programs}:{helm}:{os.environ['PATH']}",
    }
    return Block(rehearsal, Registry(rehearsal), state, github, str(step.get("id", "")))


def clean(rehearsal: Rehearsal) -> Facts:
    """Remove what an earlier rehearsal published, and make a key to sign with."""
    for name in ("workflow", "registry"):
        shutil.rmtree(rehearsal.work / name, ignore_errors=True)
    actions.make_key(rehearsal)
    return {"registry": f"{Registry(rehearsal).folder.name}, as ghcr.io", "tag": f"v{rehearsal.version}"}


def _title(job: str, step: Mapping[str, Any]) -> str:
    text = str(step.get("name") or step.get("uses", "").partition("@")[0] or step["run"].strip().splitlines()[0])
    return f"{job}: {text}"


def _steps() -> tuple[Step, ...]:
    return tuple(
        Step("workflow", _title(job, step), partial(run_block, job, number))
        for job, content in jobs().items()
        for number, step in enumerate(content["steps"])
    )


STEPS = (
    Step("workflow", "a registry, and a key to sign with", clean),
    *_steps(),
    Step("workflow", "the signatures and attestations verify with the key", actions.verify),
    Step("workflow", "the published chart refers to the published image", actions.pull_chart),
)
