"""`python -m e2e.release`: run the steps, write the report, exit 1 if a step failed."""

import argparse
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

from e2e.release import image, packaging, tools, workflow
from e2e.release.node import part
from e2e.release.rehearsal import FAILED, Rehearsal, Step, run_steps
from e2e.release.report import write_report
from e2e.release.shell import Shell

ROOT = Path(__file__).resolve().parents[2]
STEPS: tuple[Step, ...] = (*tools.STEPS, *image.STEPS, *workflow.STEPS, *packaging.STEPS, *part.STEPS)


def main(argv: Sequence[str]) -> int:
    """Run the rehearsal of a commit."""
    parser = argparse.ArgumentParser(prog="python -m e2e.release", description=__doc__)
    parser.add_argument("--commit", default="HEAD", help="the commit to release")
    parser.add_argument("--previous", default="", help="users upgrade from this commit; default: the latest release")
    parser.add_argument("--part", action="append", default=[], help="run only these parts (tools always run)")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "release-rehearsal", help="folder of the report")
    args = parser.parse_args(argv)
    started = time.monotonic()
    rehearsal = prepare(args.commit, args.previous, args.out.resolve())
    steps = [step for step in STEPS if not args.part or step.part in ("tools", *args.part)]
    results = run_steps(steps, rehearsal, lambda line: print(line, flush=True))
    if {"node", "upgrade"} & set(args.part or ["node"]):
        results += part.run_on_node(rehearsal)
    report = write_report(rehearsal, results, time.monotonic() - started)
    print(report.read_text())
    return int(any(result.outcome == FAILED for result in results))


def prepare(commit: str, previous: str, out: Path) -> Rehearsal:
    """Extract the files of the commit, so that nothing else is a part of what is built."""
    out.mkdir(parents=True, exist_ok=True)
    shell = Shell(out / "commands.log")
    shell.log.write_text("")
    sha = _git("rev-parse", f"{commit}^{{commit}}")
    rehearsal = Rehearsal(
        checkout=export(sha, out / "checkout"),
        work=out,
        commit=sha,
        previous=_git("rev-parse", f"{previous or latest_release(sha)}^{{commit}}"),
        epoch=int(_git("show", "-s", "--format=%ct", sha)),
        shell=shell,
    )
    export(rehearsal.previous, out / "previous")
    return rehearsal


def latest_release(commit: str) -> str:
    """Return the latest tag before a commit, or the last commit of an earlier day if there is no tag yet."""
    tags = _git("tag", "--merged", f"{commit}~1", "--sort=-version:refname", "v*").splitlines()
    return tags[0] if tags else _git("log", "-1", "--before=1 day ago", "--format=%H", commit)


def export(commit: str, folder: Path) -> Path:
    """Extract the files of a commit into a folder and return it; a folder of an earlier rehearsal is replaced."""
    subprocess.run(["rm", "-rf", folder], check=True)
    with subprocess.Popen(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE) as archive:
        assert archive.stdout is not None
        with tarfile.open(fileobj=archive.stdout, mode="r|") as tar:
            tar.extractall(folder, filter="data")
    return folder


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
