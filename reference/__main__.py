"""`python -m reference --write | --check`: the generated pages of the documents, and the dashboards."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from reference.pages import ROOT, stale, write


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the command and return its exit status; `--check` gives 1 when a file is stale."""
    parser = argparse.ArgumentParser(prog="python -m reference", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="write the files")
    what.add_argument("--check", action="store_true", help="exit 1 when a file is stale")
    options = parser.parse_args(arguments)
    if options.write:
        write(root)
        return 0
    names = stale(root)
    for name in names:
        print(f"{name} is stale: run python -m reference --write", file=sys.stderr)
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main())
