"""Writes the schemas of objects whose kinds other projects define, for checks of manifests without an API server.

`python -m reference.object_schemas DIR …`, with the directories of CRDs (the experimental ones of the Gateway API,
those of apisix-ingress-controller 2.x) and of the OpenAPI documents of Kubernetes (`api/openapi-spec/v3`).
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from apisix_ingress.model.kinds.table import CUSTOM_GROUP, RESOURCES
from crds.published import FILE

Schema = dict[str, Any]

_KEPT = (
    "additionalProperties", "enum", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems",
    "minLength", "minProperties", "minimum", "oneOf", "pattern", "properties", "required", "type",
    "x-kubernetes-preserve-unknown-fields",
)  # fmt: skip
_LENIENT = "v1alpha2"
"""A version that accepts whatever the others accept."""


def document_of(schemas: dict[str, Schema]) -> bytes:
    """Return the content of the file: kind → schema of its spec."""
    text = json.dumps(dict(sorted(schemas.items())), sort_keys=True, separators=(",", ":"))
    return gzip.compress(text.encode(), 9, mtime=0)


def of_definitions(folder: Path) -> Iterator[tuple[str, Schema]]:
    """Yield the kinds of the CRDs in a folder that the controller reads, each with the schema of its spec."""
    for path in sorted(folder.glob("*.yaml")):
        for each in yaml.safe_load_all(path.read_text()):
            spec = (each or {}).get("spec") or {}
            kind = spec.get("names", {}).get("kind", "")
            if kind in RESOURCES and spec["group"] == RESOURCES[kind].group and _is_foreign(kind):
                found = {version["name"]: version["schema"]["openAPIV3Schema"] for version in spec["versions"]}
                schema = found.get(_LENIENT) or next(iter(found.values()))
                yield kind, _trimmed(schema["properties"]["spec"], {})


def of_kubernetes(folder: Path) -> Iterator[tuple[str, Schema]]:
    """Yield Ingress, IngressClass and Service with the schema of their spec."""
    for name in ("apis__networking.k8s.io__v1_openapi.json", "api__v1_openapi.json"):
        schemas = json.loads((folder / name).read_text())["components"]["schemas"]
        for kind in ("Ingress", "IngressClass", "Service"):
            for full, schema in schemas.items():
                if full.endswith(f".v1.{kind}"):
                    yield kind, _trimmed(schema["properties"]["spec"], schemas)


def _is_foreign(kind: str) -> bool:
    return RESOURCES[kind].group != CUSTOM_GROUP or not RESOURCES[kind].spec


def _trimmed(node: Schema, schemas: dict[str, Schema]) -> Schema:
    """Return a schema without references and descriptions."""
    for part in (node, *node.get("allOf", ())):
        if "$ref" in part:
            return _trimmed(schemas[part["$ref"].rpartition("/")[2]], schemas)
    found: Schema = {key: node[key] for key in _KEPT if key in node}
    if "properties" in found:
        found["properties"] = {name: _trimmed(each, schemas) for name, each in found["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _trimmed(found[key], schemas)
    return found


if __name__ == "__main__":
    collected: dict[str, Schema] = {}
    for argument in map(Path, sys.argv[1:]):
        collected |= of_kubernetes(argument) if any(argument.glob("*_openapi.json")) else of_definitions(argument)
    FILE.write_bytes(document_of(collected))
    print(FILE, ", ".join(sorted(collected)))
