"""Golden cases: one folder each, with objects and the expected records.

`in.yaml` has the objects, `state-N.yaml` all of them after a change; a line `base: <namespace>` includes the objects
of `base.yaml` in that namespace. `want.yaml` and `want-N.yaml` have the records and the problems of every object that
was translated, `options.yaml` settings that differ from the defaults, `status.yaml` the published addresses of each
Ingress and the settings for them, `NOTE` the reason for a case that needs one.

A wanted record does not repeat the description and labels that every record of its kind has (`STAMPS`): it shows them
only where they differ, as null where they are absent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import yaml

from apisix_ingress.model.formats.selector import parse_selector
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from tests.golden.driver import Outcome
from translation.core.options import Options

ROOT = Path(__file__).parent
BASE = ROOT / "base.yaml"
BASE_LINE = re.compile(r"^base: (\S+)$", re.MULTILINE)
STAMP: JsonObject = {
    "desc": "Created by apisix-ingress-controller, DO NOT modify it manually",
    "labels": {"managed-by": "apisix-ingress-controller"},
}
STAMPS: Mapping[str, JsonObject] = dict.fromkeys(
    ("routes", "stream_routes", "upstreams", "consumers", "plugin_configs"), STAMP
)
UNORDERED_ROUTE_LISTS = ("uris", "hosts", "methods", "remote_addrs", "vars")


@dataclass(frozen=True)
class Case:
    """One folder."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    @property
    def states(self) -> tuple[str, ...]:
        """The suffix of each state: empty for the first one, then `-1`, `-2` …"""
        later = sorted(self.path.glob("state-*.yaml"), key=lambda path: int(path.stem.removeprefix("state-")))
        return ("", *(path.stem.removeprefix("state") for path in later))

    def text(self, state: str) -> str:
        """Return the objects of a state as YAML, those of `base.yaml` included."""
        return _text(self.path / (f"state{state}.yaml" if state else "in.yaml"))

    def objects(self, state: str) -> tuple[JsonObject, ...]:
        return _objects(self.path / (f"state{state}.yaml" if state else "in.yaml"))

    def options(self, **changes: Any) -> Options:
        path = self.path / "options.yaml"
        settings: dict[str, Any] = load(path)[0] if path.exists() else {}
        if "namespace_selector" in settings:
            settings = settings | {"namespace_selector": parse_selector(settings["namespace_selector"])}
        if "plugin_metadata" in settings:
            namespace, _, name = settings["plugin_metadata"].partition("/")
            settings = settings | {"plugin_metadata": ObjectKey("ConfigMap", namespace, name)}
        return Options(**(settings | changes))

    def want_path(self, state: str) -> Path:
        return self.path / f"want{state}.yaml"

    def want(self, state: str) -> JsonObject:
        return read(self.want_path(state))


def all_cases() -> tuple[Case, ...]:
    return tuple(Case(path.parent) for path in sorted(ROOT.glob("*/*/in.yaml")))


@cache
def load(path: Path) -> tuple[JsonObject, ...]:
    with path.open(encoding="utf-8") as file:
        return tuple(document for document in yaml.load_all(file, Loader=yaml.CSafeLoader) if document)


@cache
def _objects(path: Path) -> tuple[JsonObject, ...]:
    return tuple(document for document in yaml.load_all(_text(path), Loader=yaml.CSafeLoader) if document)


def _text(path: Path) -> str:
    base = BASE.read_text(encoding="utf-8").rstrip("\n")
    return BASE_LINE.sub(lambda found: base.replace("$NAMESPACE", found[1]), path.read_text(encoding="utf-8"))


def document(outcome: Outcome) -> JsonObject:
    """Return an outcome in the format of a golden file."""
    records: dict[str, list[JsonObject]] = {}
    for key in sorted(outcome.records):
        body = orjson.loads(outcome.records[key].payload)
        # The body of plugin metadata does not contain the plugin: the gateway takes it from the URL.
        records.setdefault(key.kind, []).append({"id": key.id} | body if key.kind == "plugin_metadata" else body)
    problems = {
        str(key): [f"{item.severity} {item.code} {item.path}".rstrip() for item in found]
        for key, found in sorted(outcome.problems.items())
    }
    return {"problems": problems, "records": records}


def write(path: Path, wanted: JsonObject) -> None:
    text = yaml.dump(_without_stamps(wanted), Dumper=yaml.CSafeDumper, sort_keys=True, width=120, allow_unicode=True)
    path.write_text(text, encoding="utf-8")
    load.cache_clear()


def read(path: Path) -> JsonObject:
    """Return the document of a golden file, ready to be compared."""
    return normal(_with_stamps(load(path)[0]))


def _without_stamps(wanted: JsonObject) -> JsonObject:
    """Return a document without the description and labels that every record of a kind has."""
    records = {kind: [_without_stamp(kind, record) for record in found] for kind, found in wanted["records"].items()}
    return {**wanted, "records": records}


def _without_stamp(kind: str, record: JsonObject) -> JsonObject:
    stamp = STAMPS.get(kind, {})
    absent = {name: None for name in stamp if name not in record}
    return absent | {name: value for name, value in record.items() if name not in stamp or value != stamp[name]}


def _with_stamps(wanted: JsonObject) -> JsonObject:
    """Return a document with the parts that `_without_stamps` omitted."""
    records = {kind: [_with_stamp(kind, record) for record in found] for kind, found in wanted["records"].items()}
    return {**wanted, "records": records}


def _with_stamp(kind: str, record: JsonObject) -> JsonObject:
    stamp = STAMPS.get(kind, {})
    return {name: value for name, value in {**stamp, **record}.items() if name not in stamp or value is not None}


def normal(wanted: JsonObject) -> JsonObject:
    """Return a document in which lists whose order has no meaning are sorted."""
    records = {
        kind: sorted((_normal(kind, record) for record in found), key=lambda record: str(record.get("id")))
        for kind, found in wanted["records"].items()
    }
    return {"problems": wanted["problems"], "records": records}


def _normal(kind: str, record: JsonObject) -> JsonObject:
    result: JsonObject = orjson.loads(orjson.dumps(record))
    for holder, name in _unordered(kind, result):
        holder[name] = sorted(holder[name], key=lambda item: orjson.dumps(item, option=orjson.OPT_SORT_KEYS))
    return result


def _unordered(kind: str, record: JsonObject) -> Iterator[tuple[JsonObject, str]]:
    if kind == "upstreams" and "nodes" in record:
        yield record, "nodes"
    if kind == "ssls":
        yield record, "snis"
    if kind == "routes":
        for name in UNORDERED_ROUTE_LISTS:
            if name in record:
                yield record, name
        for rule in record.get("plugins", {}).get("traffic-split", {}).get("rules", ()):
            yield rule, "weighted_upstreams"
