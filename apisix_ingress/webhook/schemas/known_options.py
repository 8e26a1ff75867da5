"""The options that the schema of a plugin names: most schemas allow others, which then have no effect."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from apisix_ingress.model.json import FrozenJson

_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("if", "then", "else")


def unknown_options(schema: FrozenJson, config: FrozenJson) -> Iterator[tuple[str, str | None]]:
    """Yield the options of a configuration that its schema does not name, each with the most similar known one."""
    known = set(_names(schema))
    if not known or _is_open(schema):
        return
    for name in config:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            yield name, near[0] if near else None


def _names(schema: Any) -> Iterator[str]:
    """Yield the properties of a schema and of its alternatives."""
    if not isinstance(schema, dict):
        return
    yield from schema.get("properties") or ()
    for word in _LISTS:
        for part in schema.get(word) or ():
            yield from _names(part)
    for word in _SINGLE:
        yield from _names(schema.get(word))
    dependencies = schema.get("dependencies")
    for part in dependencies.values() if isinstance(dependencies, dict) else ():
        yield from _names(part)


def _is_open(schema: FrozenJson) -> bool:
    """Return whether a schema expects options with names of the user."""
    return bool(schema.get("patternProperties")) or bool(schema.get("additionalProperties"))
