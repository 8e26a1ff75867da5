"""The recorded cases: objects, requests and the answers of ingress-nginx."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

Json = dict[str, Any]

UNREPLAYED = frozenset({"h2c", "h2s", "fcgi"})
"""Kinds of backends that speak protocols which the replay has no server for."""


@dataclass(frozen=True)
class Case:
    """One case of the recording."""

    folder: Path

    @property
    def name(self) -> str:
        """Its name: that of the folder."""
        return self.folder.name

    @cached_property
    def about(self) -> Json:
        """What `case.json` says."""
        found: Json = json.loads((self.folder / "case.json").read_text())
        return found

    @cached_property
    def objects(self) -> list[Json]:
        """The manifests, with placeholders for certificates."""
        return [item for item in yaml.safe_load_all((self.folder / "objects.yaml").read_text()) if item]

    @cached_property
    def accepted(self) -> list[Json]:
        """The manifests that the API server took."""
        path = self.folder / "applied.json"
        applied = json.loads(path.read_text())["ingresses"] if path.exists() else []
        refused = {(item["namespace"], item["name"]) for item in applied if item["api_server"] != "accepted"}
        return [
            item
            for item in self.objects
            if item["kind"] != "Ingress" or (item["metadata"].get("namespace"), item["metadata"]["name"]) not in refused
        ]

    @property
    def every_ingress(self) -> list[Json]:
        """Each Ingress that the case ever has."""
        applied = (item for asked, _ in self.steps for item in asked.get("apply", []))
        return [item for item in (*self.objects, *applied) if item["kind"] == "Ingress"]

    @cached_property
    def steps(self) -> list[tuple[Json, Json]]:
        """Each request or change with what was recorded of it."""
        asked, answered = (
            [json.loads(line) for line in (self.folder / f"{name}.jsonl").read_text().splitlines()]
            for name in ("requests", "answers")
        )
        return list(zip(asked, answered, strict=True))

    @property
    def backends(self) -> Mapping[str, str]:
        """Name → kind."""
        found: Mapping[str, str] = self.about.get("backends", {})
        return found

    @property
    def why_skipped(self) -> str:
        """Why it can't be replayed; empty if it can."""
        kinds = UNREPLAYED & set(self.backends.values())
        if kinds:
            return f"backend {', '.join(sorted(kinds))}"
        return "HTTP/2" if any(asked.get("h2") for asked, _ in self.steps) and not self.partly else ""

    @property
    def partly(self) -> bool:
        """Whether requests other than HTTP/2 ones are left."""
        return any("path" in asked and not asked.get("h2") for asked, _ in self.steps)

    @property
    def flags(self) -> Mapping[str, str]:
        """The flags of the controller."""
        words = str(self.about.get("flags") or "").split()
        return {name.lstrip("-"): value or "true" for name, _, value in (word.partition("=") for word in words)}


def cases(folder: Path) -> Iterator[Case]:
    """Yield the cases of a recording, sorted by name."""
    for path in sorted(folder.iterdir()):
        if (path / "case.json").exists():
            yield Case(path)
