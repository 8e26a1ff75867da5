"""Stand-ins for programs of GitHub: `gh` copies files to a folder, `go run cosign` signs with a key."""

from pathlib import Path

from e2e.release import tools
from e2e.release.rehearsal import Rehearsal

GH = """\
#!/bin/bash
# gh release create|upload TAG [options] FILES: keeps the files, which must exist.
set -euo pipefail
test "$1" = release && test -n "$GH_TOKEN"
shift 3
for file in "$@"; do case $file in --*) ;; *) cp -- "$file" "ASSETS/" ;; esac; done
"""
GO = """\
#!/bin/bash
# go run COSIGN sign …: the same program, with a key instead of an identity of GitHub, and without the public log.
set -euo pipefail
if [ "$1" = run ] && [ "$2" = "PACKAGE" ]; then
  shift 3
  exec "COSIGN" sign --key "KEY" --tlog-upload=false "$@"
fi
exec "REAL" "$@"
"""


def write_stand_ins(rehearsal: Rehearsal, folder: Path) -> Path:
    """Write the programs and return their folder."""
    assets = rehearsal.work / "workflow" / "assets"
    for each in (folder, assets):
        each.mkdir(parents=True, exist_ok=True)
    package = f"{tools.COSIGN.package}@{tools.COSIGN.version}"
    cosign = str(tools.locate_tool(rehearsal, tools.COSIGN))
    names = {"PACKAGE": package, "COSIGN": cosign, "KEY": rehearsal.need("key"), "REAL": tools.go()}
    _write(folder / "gh", GH, {"ASSETS": str(assets)})
    _write(folder / "go", GO, names)
    return folder


def _write(path: Path, text: str, names: dict[str, str]) -> None:
    for name, value in names.items():
        text = text.replace(name, value)
    path.write_text(text)
    path.chmod(0o755)
