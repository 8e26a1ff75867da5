"""Patches as an API server applies them."""

from collections.abc import Sequence
from typing import Any

from tests.fakes.kube.kinds import Manifest
from tests.fakes.kube.wire import copied


def json_patch(target: Manifest, operations: Sequence[Manifest]) -> Manifest:
    """Apply `test` and `add` of fields of objects (RFC 6902); ValueError if a test fails."""
    patched = copied(target)
    for operation in operations:
        *parents, name = operation["path"].strip("/").split("/")
        place = patched
        for parent in parents:
            place = place[parent]
        if operation["op"] == "add":
            place[name] = copied(operation["value"])
        elif operation["op"] != "test":
            raise NotImplementedError(operation["op"])
        elif place.get(name) != operation["value"]:
            raise ValueError(f"testing path {operation['path']}: test failed")
    return patched


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return copied(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged
