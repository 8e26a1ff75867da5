"""What controller 1.8.4 sent for the golden cases, and the differences from it.

`recorded.jsonl` has one case per line: the bodies as sent (without private keys), the condition of each object after
each state, and, where the recording shows a defect of 1.8, the number of the defect or the rule that it breaks;
`recorded_as` is the name, and the namespace, under which the case was recorded.
`differences.yaml` lists every case whose records or conditions are not those of the recording. Nothing here translates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

from apisix_ingress.model.json import JsonObject
from tests.golden.cases import Case, normal

ROOT = Path(__file__).parent
UNREFERENCED = "False, unreferenced"
"""The condition in 1.8 of an ApisixUpstream while an upstream that it could configure does not exist."""
FAILING = ("error ", "degraded ")
"""Problems that make a condition False: nothing, or not everything, was published."""


@dataclass(frozen=True, slots=True)
class State:
    """The records and conditions of 1.8 once a state had settled."""

    records: Mapping[str, Any]
    conditions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Recording:
    """One case; `recorded_as` is the namespace of its objects."""

    case: str
    recorded_as: str
    states: tuple[State, ...]
    defect: str


@cache
def recordings() -> Mapping[str, Recording]:
    """Return every recording by the name of its case."""
    lines = (orjson.loads(line) for line in (ROOT / "recorded.jsonl").read_bytes().splitlines())
    return {line["case"]: _recording(line) for line in lines}


def _recording(line: Mapping[str, Any]) -> Recording:
    states = tuple(State(**state) for state in line["states"])
    return Recording(line["case"], line["recorded_as"], states, line.get("defect", ""))


@cache
def listed() -> Mapping[str, Any]:
    """Return `differences.yaml`: differences by case and state, and defects without a compared difference."""
    found: Mapping[str, Any] = yaml.safe_load((ROOT / "differences.yaml").read_text(encoding="utf-8"))
    return found


def differences(case: Case) -> dict[str, list[str]]:
    """Return what differs from the recording, by state (`0` is the first): kinds of records, names of objects."""
    found: dict[str, list[str]] = {}
    for number, (state, recorded) in enumerate(zip(case.states, recordings()[case.path.name].states, strict=True)):
        want = case.want(state)
        differing = [*_kinds(want, recorded), *_conditions(want, recorded)]
        if differing:
            found[str(number)] = differing
    return found


def _kinds(want: JsonObject, recorded: State) -> Iterator[str]:
    ours = normal({"problems": {}, "records": comparable(want["records"])})["records"]
    theirs = normal({"problems": {}, "records": comparable(recorded.records)})["records"]
    yield from sorted(kind for kind in {*ours, *theirs} if ours.get(kind) != theirs.get(kind))


def comparable(records: Mapping[str, list[JsonObject]]) -> JsonObject:
    """Return records without content that does not depend on the objects.

    1.8 kept weights in a label `meta_weight` of upstreams; the weights are in the route, and nothing reads the label.
    """
    result: JsonObject = {}
    for kind, found in records.items():
        copies = [{name: value for name, value in each.items() if (kind, name) != ("ssls", "key")} for each in found]
        for each in copies:
            if kind == "upstreams" and "labels" in each:
                each["labels"] = {key: value for key, value in each["labels"].items() if key != "meta_weight"}
            if kind == "ssls":
                each.setdefault("snis", [])
        result[kind] = copies
    return result


def _conditions(want: JsonObject, recorded: State) -> Iterator[str]:
    for name, theirs in sorted(recorded.conditions.items()):
        if name not in want["problems"]:
            ours = "none"
        else:
            ours = "False" if any(problem.startswith(FAILING) for problem in want["problems"][name]) else "True"
        # Here, the condition of an ApisixUpstream depends on its own fields only, not on existing upstreams.
        if theirs not in (ours, UNREFERENCED):
            yield f"{name}: {ours}, was {theirs}"
