"""`python -m e2e.release`: run the steps, write the report, exit 1 if a step failed."""

import argparse
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from e2e.release import image, kind, packaging, tools, workflow
from e2e.release.node import part
from e2e.release.rehearsal import FAILED, Rehearsal, Result, Step, run_steps
from e2e.release.report import write_report
from e2e.release.shell import Shell

ROOT = Path(__file__).resolve().parents[2]
BEFORE_THE_NODE: tuple[Step, ...] = (*tools.STEPS, *image.STEPS, *workflow.STEPS, *part.STEPS)
AFTER_THE_NODE: tuple[Step, ...] = (*packaging.STEPS, *kind.STEPS)


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
    parts = {"tools", *args.part} if args.part else {"tools", "image", "workflow", "node", "packaging", "kind"}
    results: list[Result] = []
    for run in (run_named(BEFORE_THE_NODE), part.run_on_node, run_named(AFTER_THE_NODE)):
        results += run(rehearsal, parts)
        # A rehearsal that is interrupted leaves the results so far.
        report = write_report(rehearsal, results, time.monotonic() - started)
    print(report.read_text())
    return int(any(result.outcome == FAILED for result in results))


def run_named(steps: Sequence[Step]) -> Callable[[Rehearsal, Collection[str]], list[Result]]:
    """Return a function that runs those of the steps that belong to the parts it is given."""

    def run(rehearsal: Rehearsal, parts: Collection[str]) -> list[Result]:
        return run_steps([step for step in steps if step.part in parts], rehearsal, say)

    return run


def say(line: str) -> None:
    """Show progress at once."""
    print(line, flush=True)


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
