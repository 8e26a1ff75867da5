"""The recorded cases: objects, requests and the responses of ingress-nginx 1.15.1, from one packed file."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

CASES = Path(__file__).with_name("cases.jsonl.gz")
"""One case per line; `pack` generates it from a recording."""

_HOW = frozenset({"live", "wild", "edge", "combination", "merge", "invalid"})
"""Tags that do not describe the subject of a case."""

UNREPLAYED = frozenset({"fcgi"})
"""Kinds of backends for whose protocols the replay has no server."""


@dataclass(frozen=True)
class Case:
    """One case of the recording."""

    about: Json

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.about["name"])

    @property
    def group(self) -> str:
        """The first of its tags that describes its subject."""
        tags = [
            tag for tag in self.about.get("tags", ()) if tag not in ("live", "wild", "edge", "combination", "merge")
        ]
        return str(tags[0] if tags else "other")

    @property
    def objects(self) -> list[Json]:
        """The manifests that the API server accepted, with placeholders for certificates."""
        refused = {tuple(each) for each in self.about["refused"]}
        return [
            item
            for item in self.about["objects"]
            if item["kind"] != "Ingress" or (item["metadata"].get("namespace"), item["metadata"]["name"]) not in refused
        ]

    @property
    def every_ingress(self) -> list[Json]:
        """Every Ingress of the case, over all steps."""
        applied = (item for asked, _ in self.steps for item in asked.get("apply", []))
        return [item for item in (*self.about["objects"], *applied) if item["kind"] == "Ingress"]

    @property
    def steps(self) -> list[tuple[Json, Json]]:
        """Each request or change with its recording."""
        return [(asked, recorded) for asked, recorded in self.about["steps"]]

    @property
    def backends(self) -> Mapping[str, str]:
        """Name → kind."""
        found: Mapping[str, str] = self.about.get("backends", {})
        return found

    @property
    def why_skipped(self) -> str:
        """Why it cannot be replayed; empty if it can."""
        kinds = UNREPLAYED & set(self.backends.values())
        answered = any(recorded.get("backend") in self.backends for _, recorded in self.steps)
        return f"backend {', '.join(sorted(kinds))}" if kinds and answered else ""

    @property
    def flags(self) -> Mapping[str, str]:
        """The flags of the controller."""
        words = str(self.about.get("flags") or "").split()
        return {name.lstrip("-"): value or "true" for name, _, value in (word.partition("=") for word in words)}

    def unstable(self, step: int) -> set[str]:
        """Return the fields of a response in which two recordings of the case differed."""
        found = {place for each in self.about["unstable"] if each["request"] == step for place in each["differs"]}
        wavers = {"affinity", "lb"} & set(self.about.get("tags", ())) and self.about["unstable"]
        if wavers or self._is_random(step):
            found |= {".backend", ".backends", ".seen"}
        # The hash key that selects the dead endpoint depends on the addresses of pods.
        return found | ({".statuses"} if self._has("upstream-hash-by") and "dead" in self.backends.values() else set())

    def _is_random(self, step: int) -> bool:
        """Return whether only the weight of a canary selects the backend of a single request."""
        chooses = any(map(self._has, ("canary-by-header", "canary-by-cookie")))
        twins = [recorded for asked, recorded in self.steps if asked.get("host") == self.steps[step][0].get("host")]
        spread = any(len(recorded.get("backends", {})) > 1 for recorded in twins)
        return self._has("canary-weight") and not chooses and spread and "times" not in self.steps[step][0]

    def _has(self, annotation: str) -> bool:
        return any(
            name.endswith(f"/{annotation}")
            for item in self.every_ingress
            for name in item["metadata"].get("annotations") or {}
        )


def cases(path: Path = CASES) -> list[Case]:
    """Return the cases of a packed recording, sorted by name."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    return sorted((Case(json.loads(line)) for line in lines), key=lambda case: case.name)
