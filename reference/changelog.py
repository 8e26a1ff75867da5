"""`python -m reference.changelog VERSION`: renders the fragments of `changes/` as the section of a release.

Without `--write` it prints the section. With it, it adds the section at the top of CHANGELOG.md and removes the
fragments.
"""

import argparse
import datetime
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from reference.pages import ROOT

KINDS: Mapping[str, str] = {
    "security": "Security",
    "added": "Added",
    "changed": "Changed",
    "fixed": "Fixed",
    "removed": "Removed",
}
TITLE = "# Changelog\n"


class FragmentError(ValueError):
    """The name of a fragment is not `<slug>.<kind>.md`, or it is empty."""


def fragments(folder: Path) -> dict[str, list[str]]:
    """Return kind → sentences, each by the order of the file names.

    Raises:
        FragmentError: A file is not a fragment.
    """
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for path in sorted(folder.glob("*")):
        kind = path.name.removesuffix(".md").rpartition(".")[2]
        text = " ".join(path.read_text(encoding="utf-8").split())
        if not path.name.endswith(".md") or kind not in KINDS or not text:
            raise FragmentError(f"{path.name}: name it <slug>.<{'|'.join(KINDS)}>.md, with a sentence in it")
        found[kind].append(text)
    return found


def section(version: str, day: datetime.date, found: Mapping[str, Sequence[str]]) -> str:
    """Return the section of a release."""
    parts = [f"## {version} ({day.isoformat()})"]
    for kind, texts in found.items():
        if texts:
            parts += [f"### {KINDS[kind]}", "\n".join(f"* {text}" for text in texts)]
    return "\n\n".join(parts) + "\n"


def release(root: Path, text: str) -> None:
    """Add a section at the top of the changelog and remove the fragments."""
    file = root / "CHANGELOG.md"
    before = file.read_text(encoding="utf-8").removeprefix(TITLE) if file.exists() else ""
    file.write_text(f"{TITLE}\n{text}{before}", encoding="utf-8")
    for path in (root / "changes").glob("*"):
        path.unlink()


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m reference.changelog", description=__doc__)
    parser.add_argument("version", help="version of the release, e.g. 0.2.0")
    parser.add_argument("--write", action="store_true", help="write CHANGELOG.md and remove the fragments")
    options = parser.parse_args(arguments)
    try:
        text = section(options.version, datetime.datetime.now(datetime.UTC).date(), fragments(root / "changes"))
    except FragmentError as error:
        print(f"error: changes/{error}", file=sys.stderr)
        return 1
    if options.write:
        release(root, text)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
