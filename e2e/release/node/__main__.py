"""`python -m e2e.release.node STATE RESULTS`: run the stories; only `part.run_on_node` calls this."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from e2e.release.node.stories import run_stories
from e2e.release.rehearsal import Rehearsal
from e2e.release.shell import Shell


def main(state: Path, results: Path) -> int:
    """Run every story on one node and write the results."""
    given = json.loads(state.read_text())
    paths = {name: Path(given[name]) for name in ("checkout", "work")}
    log = Path(given["shell"]).with_name("node-commands.log")
    log.write_text("")
    rehearsal = Rehearsal(**(given | paths | {"shell": Shell(log)}))
    done = run_stories(rehearsal)
    results.write_text(json.dumps([asdict(result) for result in done]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), Path(sys.argv[2])))
