"""`python -m e2e.nginx.pack DIR`: packs a recording of ingress-nginx, one folder per case, into the file to replay."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from e2e.nginx.corpus import CASES

_ABOUT = ("tags", "backends", "services", "certs", "dns", "config", "flags", "ordered")
_ANSWER = ("status", "headers", "backend", "seen", "statuses", "backends", "error")
_LEFT_OUT = frozenset({"content-type", "content-length", "transfer-encoding", "server", "x-request-id"})
"""Response headers that the backend or the server adds."""


def packed(folder: Path) -> str:
    """Return every case of a recording, one per line."""
    unstable = json.loads((folder / "unstable.json").read_text()) if (folder / "unstable.json").exists() else {}
    found = sorted(path for path in folder.iterdir() if (path / "case.json").exists())
    return "\n".join(json.dumps(_case(path, unstable.get(path.name, [])), separators=(",", ":")) for path in found)


def _case(path: Path, unstable: list[Any]) -> dict[str, Any]:
    about = json.loads((path / "case.json").read_text())
    applied = json.loads((path / "applied.json").read_text())["ingresses"] if (path / "applied.json").exists() else []
    asked, answered = (
        [json.loads(line) for line in (path / f"{name}.jsonl").read_text().splitlines()]
        for name in ("requests", "answers")
    )
    return {
        "name": path.name,
        **{key: about[key] for key in _ABOUT if key in about},
        "objects": [item for item in yaml.safe_load_all((path / "objects.yaml").read_text()) if item],
        "refused": [[item["namespace"], item["name"]] for item in applied if item["api_server"] != "accepted"],
        "steps": [[request, _answer(answer)] for request, answer in zip(asked, answered, strict=True)],
        "unstable": unstable,
    }


def _answer(answer: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in answer.items() if key in _ANSWER}
    if "headers" in kept:
        kept["headers"] = [pair for pair in kept["headers"] if pair[0].lower() not in _LEFT_OUT]
    return kept


if __name__ == "__main__":
    CASES.write_bytes(gzip.compress(packed(Path(sys.argv[1])).encode(), 9, mtime=0))
