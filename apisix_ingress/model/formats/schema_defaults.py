"""Applies the defaults of a JSON schema to a value, like the validator of APISIX.

Only what distinguishes branches of a schema is evaluated: types, listed values, required fields. The value is not
validated, and no pattern is run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from apisix_ingress.model.json import JsonObject

DEEPEST_DEFAULT = 32
"""Maximum depth at which defaults are applied."""

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict) or value == [],
    "array": lambda value: isinstance(value, list) or value == {},
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0,
    "null": lambda value: value is None,
}
"""Lua's empty table is both an object and an array."""

_NONE = object()


def with_defaults(schema: object, value: Any, depth: int = DEEPEST_DEFAULT) -> Any:
    """Return a copy of a value with the defaults of its schema, as a gateway stores it.

    A default is used unchanged: its fields get no defaults. Missing objects are not created.
    """
    return _read(schema, value, depth)[0]


def _read(schema: object, value: Any, depth: int) -> tuple[Any, bool]:
    """Return a value with defaults, and whether the schema applies to it."""
    if not isinstance(schema, dict) or depth == 0:
        return value, schema is not False
    if not _is_meant(schema, value):
        return value, False
    if value == [] and isinstance(schema.get("properties"), dict):
        value = {}
    if isinstance(value, dict):
        value, fits = _object(schema, value, depth)
    elif isinstance(value, list):
        value, fits = _array(schema.get("items"), value, depth)
    else:
        fits = True
    return _branches(schema, value, depth) if fits else (value, False)


def _is_meant(schema: JsonObject, value: Any) -> bool:
    types = schema.get("type")
    named = [types] if isinstance(types, str) else types if isinstance(types, list) else []
    if named and not any(_TYPES.get(str(name), lambda _: True)(value) for name in named):
        return False
    listed = schema.get("enum")
    if isinstance(listed, list) and not any(_is_same(value, item) for item in listed):
        return False
    return "const" not in schema or _is_same(value, schema["const"])


def _is_same(one: Any, other: Any) -> bool:
    """Compare as JSON does, where true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _object(schema: JsonObject, value: JsonObject, depth: int) -> tuple[JsonObject, bool]:
    filled, fits = dict(value), True
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    for name, part in known.items():
        if name in value:
            filled[name], ok = _read(part, value[name], depth - 1)
            fits = fits and ok
        elif isinstance(part, dict) and part.get("default") is not None:
            filled[name] = copy.deepcopy(part["default"])
    others = schema.get("additionalProperties")
    if others is not None and not schema.get("patternProperties"):
        for name in value.keys() - known.keys():
            filled[name], ok = _read(others, value[name], depth - 1)
            fits = fits and ok
    required = schema.get("required")
    # A default does not satisfy `required`.
    missing = isinstance(required, list) and any(name not in value for name in required)
    return filled, fits and not missing


def _array(items: object, value: list[Any], depth: int) -> tuple[list[Any], bool]:
    if not isinstance(items, dict):
        return value, True
    read = [_read(items, item, depth - 1) for item in value]
    return [item for item, _ in read], all(ok for _, ok in read)


def _branches(schema: JsonObject, value: Any, depth: int) -> tuple[Any, bool]:
    """Apply the subschemas for the same value, in the gateway's order."""
    for part in (*_dependencies(schema, value), *_parts(schema, "allOf")):
        value, fits = _read(part, value, depth - 1)
        if not fits:
            return value, False
    for word in ("anyOf", "oneOf"):
        if parts := _parts(schema, word):
            tried = (_read(part, value, depth - 1) for part in parts)
            chosen = next((filled for filled, fits in tried if fits), _NONE)
            if chosen is _NONE:
                return value, False
            value = chosen
    if "if" in schema:
        filled, holds = _read(schema["if"], value, depth - 1)
        return _read(schema.get("then" if holds else "else"), filled if holds else value, depth - 1)
    return value, True


def _dependencies(schema: JsonObject, value: Any) -> list[object]:
    """Return the schemas that apply because a field is present."""
    found = schema.get("dependencies")
    if not isinstance(found, dict) or not isinstance(value, dict):
        return []
    return [part for name, part in found.items() if name in value]


def _parts(schema: JsonObject, word: str) -> list[object]:
    found = schema.get(word)
    return found if isinstance(found, list) else []
