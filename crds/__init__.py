"""The custom resources of `apisix.apache.org/v2`: models of their specs and the CRD documents generated from them.

The models define what a manifest may contain; `translation/` defines the records it turns into.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml

from crds.kinds import GROUP, KINDS, VERSION, Kind
from crds.parse import SpecError, nearest_name, parse_spec, unknown_fields
from crds.published import published_schemas
from crds.v2.common import Spec

__all__ = [
    "GROUP", "KINDS", "VERSION", "Kind", "Spec", "SpecError", "manifests", "nearest_name", "parse_spec",
    "published_schemas", "unknown_fields",
]  # fmt: skip


def manifests() -> list[dict[str, Any]]:
    """Return the CustomResourceDefinition documents of the package, one per kind, in the order of `KINDS`."""
    folder = resources.files("crds") / "generated"
    return [
        yaml.safe_load((folder / f"{GROUP}_{kind.plural}.yaml").read_text(encoding="utf-8")) for kind in KINDS.values()
    ]
