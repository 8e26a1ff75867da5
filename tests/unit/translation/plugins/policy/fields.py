"""The fields of plugins, from the schemas that a gateway publishes.

`python -m tests.unit.translation.plugins.policy.fields 3.18 < schemas.json` writes the list for a version, from the
response of the control API's `/v1/schema`. Only paths and types are kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
FREE = "any"
"""The type of a field whose content the schema does not describe."""

_BRANCHES = ("anyOf", "oneOf", "allOf")
_CONDITIONS = ("if", "then", "else")


def fields_of(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Yield path and type of each field that has no further ones; `*` is any key and `[]` any item."""
    inner = [(path, each) for each in _branches(schema)]
    below = f"{path}." if path else ""
    inner += [(below + name, each) for name, each in schema.get("properties", {}).items() if below or name != "_meta"]
    inner += [(f"{below}{name}", each) for name, each in _by_pattern(schema)]
    items = schema.get("items")
    inner += [(f"{path}[]", each) for each in (items if isinstance(items, list) else [items]) if isinstance(each, dict)]
    found = [each for here, part in inner for each in fields_of(part, here)]
    if found:
        yield from found
    elif path and (kind := _type(schema)):
        yield path, kind


def _branches(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for word in _BRANCHES:
        yield from (each for each in schema.get(word, ()) if isinstance(each, dict))
    yield from (schema[word] for word in _CONDITIONS if isinstance(schema.get(word), dict))
    yield from (each for each in dict(schema.get("dependencies") or {}).values() if isinstance(each, dict))


def _by_pattern(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for pattern, each in schema.get("patternProperties", {}).items():
        # Some schemas write plain names as patterns.
        yield pattern if pattern.isalpha() else "*", each
    if isinstance(more := schema.get("additionalProperties"), dict):
        yield "*", more


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if kind in ("object", "array"):
        return FREE
    if isinstance(kind, str):
        return kind
    return "string" if "enum" in schema or "const" in schema else ""


def inventory(published: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return plugin → field → type, for requests and connections, routes and consumers together."""
    found: dict[str, dict[str, str]] = {}
    for subsystem in ("plugins", "stream_plugins"):
        for name, plugin in published[subsystem].items():
            mine = found.setdefault(name, {})
            for schema in (plugin.get("schema"), plugin.get("consumer_schema")):
                for path, kind in fields_of(schema or {}):
                    mine[path] = kind if mine.get(path, kind) == kind else "string"
    return found


if __name__ == "__main__":
    text = json.dumps(inventory(json.load(sys.stdin)), indent=0, sort_keys=True)
    (FOLDER / f"fields-{sys.argv[1]}.json").write_text(text + "\n", encoding="utf-8")
