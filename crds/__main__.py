"""`python -m crds`: print the CRD documents, write them into the package, or check that they are up to date."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from crds.schema import documents

FOLDER = Path(__file__).parent / "generated"


def stale(folder: Path) -> tuple[str, ...]:
    """Return the names of the files in the folder that differ from the generated ones or are superfluous."""
    want = documents()
    got = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.yaml")}
    return tuple(sorted(name for name in want.keys() | got.keys() if want.get(name) != got.get(name)))


def write(folder: Path) -> None:
    """Update the folder."""
    folder.mkdir(exist_ok=True)
    want = documents()
    for path in folder.glob("*.yaml"):
        if path.name not in want:
            path.unlink()
    for name, text in want.items():
        (folder / name).write_text(text, encoding="utf-8")


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> int:
    """Run the command and return its exit status; `--check` gives 1 when a file is stale."""
    parser = argparse.ArgumentParser(prog="python -m crds", description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="write the files of the package")
    what.add_argument("--check", action="store_true", help="exit 1 if a file of the package is stale")
    options = parser.parse_args(arguments)
    if options.write:
        write(folder)
        return 0
    if options.check:
        names = stale(folder)
        for name in names:
            print(f"{folder.name}/{name} is stale: run python -m crds --write", file=sys.stderr)
        return 1 if names else 0
    print("---\n".join(documents().values()), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
