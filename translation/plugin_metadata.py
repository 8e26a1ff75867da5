"""The ConfigMap with plugin metadata, or a field with it → plugin metadata records (v1-behaviour.md §2.11).

The `config.yaml` of the ConfigMap is a list of gateway clusters, each with plugins and their metadata. The id of a
record is the name of the plugin; the gateway adds it to the body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import orjson
import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from apisix_ingress.model.formats.patterns import TextPattern, ValuePattern
from apisix_ingress.model.json import JsonObject, canonical
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.objects import ConfigMap
from apisix_ingress.model.records import Record
from apisix_ingress.state.view import View
from translation.core.builder import Builder
from translation.core.context import Context
from translation.core.options import Options
from translation.core.outcome import NOTHING, Outcome

DATA_KEY = "config.yaml"

_DEEPEST = 100
"""Maximum nesting of the document."""

_PATH = f"data[{DATA_KEY}]"
_ID = r"[a-zA-Z0-9_.-]{1,64}"
_FULL_ID = ValuePattern(_ID)
_NAMED = TextPattern(rf"\bname[\"']?\s*:\s*[\"']?({_ID})")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, defer_build=True)


class _Plugin(_Part):
    # A slash in an id would silently address another record (contract: Admin API fact 6).
    name: Annotated[str, Field(pattern=rf"^{_ID}$")]
    metadata: dict[str, Any] | None = Field(default=None, repr=False)


class _Cluster(_Part):
    cluster: str
    plugins: tuple[_Plugin, ...] = ()


_DOCUMENT = TypeAdapter(tuple[_Cluster, ...], config=ConfigDict(defer_build=True))

Wanted = dict[str, dict[str, JsonObject]]
"""Plugin → cluster → metadata."""


def translate_plugin_metadata(obj: ConfigMap, view: View, options: Options) -> Outcome:
    """Return the plugin metadata in the configured ConfigMap; other ConfigMaps are ignored."""
    if obj.meta.key != options.plugin_metadata:
        return NOTHING
    draft = Builder(obj.meta, view, options)
    text = obj.data.get(DATA_KEY)
    if text is None:
        draft.warn("NothingGiven", _PATH, "is missing, so no plugin has metadata; add the list of clusters")
        return draft.finish()
    # Broken YAML has no structure to inspect, and records in gateways must stay even then.
    draft.protect("plugin_metadata", ids=frozenset(found[1] for found in _NAMED.finditer(text)))
    for record in _records(draft, _wanted(draft, _parse(draft, text), options.clusters)):
        draft.add(record)
    return draft.finish()


def metadata_records(
    scope: Context, metadata: Mapping[str, JsonObject], clusters: frozenset[str] | None = None
) -> Iterator[Record]:
    """Yield the plugin metadata in `spec.pluginMetadata` of a custom resource; invalid names are reported."""
    for plugin, body in metadata.items():
        if _FULL_ID.fits(plugin):
            yield Record(RecordKey("plugin_metadata", plugin), plugin, body, clusters=clusters)
        else:
            scope.error("InvalidSpec", f"spec.pluginMetadata.{plugin}", "is not the name of a plugin; correct it")


def _parse(scope: Context, text: str) -> tuple[_Cluster, ...]:
    """Return the entries, or nothing after an error. No message quotes the text: metadata may contain keys."""
    try:
        if mistake := _over_budget(text):
            scope.error("InvalidSpec", _PATH, mistake)
            return ()
        return _DOCUMENT.validate_python(yaml.load(text, Loader=yaml.CSafeLoader) or ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" in line {mark.line + 1}" if mark else ""
        scope.error("InvalidSpec", _PATH, f"is not YAML{where}; correct it")
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            scope.error("InvalidSpec", _PATH + _path_text(detail["loc"]), detail["msg"])
    except (ValueError, yaml.YAMLError):
        scope.error("InvalidSpec", _PATH, "contains a value or character that is invalid in YAML; put it in quotes")
    return ()


def _over_budget(text: str) -> str:
    """Return the limit that a document exceeds, empty if none; it reads events before anything is built from them."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):  # a few lines of aliases can stand for gigabytes
            return "contains a YAML alias (*name), which is not supported; write the value out"
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:  # the C loader recurses, for minutes or until the process dies
            return f"has more than {_DEEPEST} levels of nesting; flatten it"
    return ""


def _path_text(path: Sequence[int | str]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def _wanted(scope: Context, entries: Sequence[_Cluster], clusters: frozenset[str]) -> Wanted:
    """Return the metadata for the known clusters; if a plugin appears twice, the later entry wins."""
    wanted: Wanted = {}
    for number, entry in enumerate(entries):
        here = f"{_PATH}[{number}]"
        if entry.cluster not in clusters:
            scope.warn(
                "ClusterNotFound", f"{here}.cluster", f"unknown gateway cluster {entry.cluster!r}; correct the name"
            )
            continue
        for index, plugin in enumerate(entry.plugins):
            path = f"{here}.plugins[{index}]"
            found = wanted.setdefault(plugin.name, {})
            if entry.cluster in found:
                scope.warn(
                    "PluginTwice", path, f"plugin {plugin.name} is configured twice: the last one is used; remove one"
                )
            found[entry.cluster] = _json(scope, plugin.metadata or {}, f"{path}.metadata")
    return wanted


def _json(scope: Context, metadata: Mapping[str, Any], path: str) -> JsonObject:
    """Return metadata as JSON, or report a value that JSON cannot represent."""
    try:
        result: JsonObject = orjson.loads(canonical(metadata))
    except TypeError:
        scope.error(
            "InvalidSpec",
            path,
            "has a key that is not a string, or a value that JSON cannot represent; put it in quotes",
        )
        return {}
    return result


def _records(scope: Context, wanted: Wanted) -> tuple[Record, ...]:
    records = []
    for plugin, by_cluster in wanted.items():
        first, *others = by_cluster.values()
        if any(other != first for other in others):
            scope.error(
                "MetadataDiffers",
                _PATH,
                f"plugin {plugin} has different metadata in different clusters; use the same metadata in all of them",
            )
        records.append(Record(RecordKey("plugin_metadata", plugin), plugin, first, clusters=frozenset(by_cluster)))
    return tuple(records)
