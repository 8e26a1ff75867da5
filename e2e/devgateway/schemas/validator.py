"""JSON schema checks with the error messages of the gateway's validator; other modules have the schemas.

Lua knows one table type: an empty array passes as an object and an empty object as an array, a non-empty one of the
wrong shape is "got table", and a JSON null is "got userdata".
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeGuard

Schema = Mapping[str, Any]
Error = str | None


def check(schema: Schema, value: object) -> Error:
    """Return the first error of `value`, or None."""
    if (expected := schema.get("type")) is not None and not has_type(expected, value):
        return f"wrong type: expected {expected}, got {type_name(value)}"
    for step in _plan(schema):
        if (error := step(schema, value)) is not None:
            return error
    return None


def type_name(value: object) -> str:
    """Return Lua's name for the type of a decoded JSON value."""
    if value is None:
        return "userdata"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "string" if isinstance(value, str) else "table"


def has_type(expected: str, value: object) -> bool:
    """Return whether Lua's validator accepts `value` as that JSON type."""
    if expected == "object":
        return isinstance(value, dict) or value == []
    if expected == "array":
        return isinstance(value, list) or value == {}
    if expected == "integer":
        return is_number(value) and float(value) % 1.0 == 0.0
    return type_name(value) == expected


def is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def quoted(text: str) -> str:
    """Quote as Lua's %q does."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\\n") + '"'


def number(value: object) -> str:
    """Print a number as Lua does: no decimals when it is whole."""
    return f"{value:.14g}" if isinstance(value, int | float) else str(value)


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _object(schema: Schema, value: object) -> Error:
    if value == [] and schema.get("type") == "object":
        value = {}  # an empty object and an empty array are the same to it
    if not isinstance(value, dict):
        return None
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"property {quoted(name)} is required"
    for name, item in value.items():
        if name in properties and (error := _property(schema, name, value, item)) is not None:
            return error
    return _other_properties(schema, value) or _count_properties(schema, value)


def _property(schema: Schema, name: str, value: dict[str, Any], item: object) -> Error:
    if (error := check(schema["properties"][name], item)) is not None:
        return f"property {quoted(name)} validation failed: {error}"
    dependency = schema.get("dependencies", {}).get(name)
    if isinstance(dependency, Mapping):
        if (error := check(dependency, value)) is not None:
            return f"failed to validate dependent schema for {quoted(name)}: {error}"
    elif dependency is not None:
        for needed in dependency:
            if needed not in value:
                return f"property {quoted(needed)} is required when {quoted(name)} is set"
    return None


def _other_properties(schema: Schema, value: dict[str, Any]) -> Error:
    patterns: Mapping[str, Schema] = schema.get("patternProperties", {})
    additional = schema.get("additionalProperties", True)
    if not patterns and additional is True:
        return None
    for name, item in value.items():
        matched = name in schema.get("properties", ())
        for pattern, subschema in patterns.items():
            if _pattern(pattern).search(name):
                matched = True
                if (error := check(subschema, item)) is not None:
                    return f"failed to validate {name} (matching {quoted(pattern)}): {error}"
        if not matched and additional is False:
            return f"additional properties forbidden, found {name}"
        if not matched and isinstance(additional, Mapping) and (error := check(additional, item)) is not None:
            return f"failed to validate additional property {name}: {error}"
    return None


def _count_properties(schema: Schema, value: dict[str, Any]) -> Error:
    if len(value) < schema.get("minProperties", 0):
        return f"expect object to have at least {schema['minProperties']} properties"
    if len(value) > schema.get("maxProperties", len(value)):
        return f"expect object to have at most {schema['maxProperties']} properties"
    return None


def _array(schema: Schema, value: object) -> Error:
    if not isinstance(value, list) and value != {}:
        return None
    items: Sequence[object] = value if isinstance(value, list) else ()
    if len(items) < schema.get("minItems", 0):
        return f"expect array to have at least {schema['minItems']} items"
    if len(items) > schema.get("maxItems", len(items)):
        return f"expect array to have at most {schema['maxItems']} items"
    if (subschema := schema.get("items")) is not None:
        for index, item in enumerate(items, 1):
            if (error := check(subschema, item)) is not None:
                return f"failed to validate item {index}: {error}"
    return _unique(items) if schema.get("uniqueItems") else None


def _unique(items: Sequence[object]) -> Error:
    for later, item in enumerate(items):
        for earlier in range(later):
            if items[earlier] == item:
                return f"expected unique items but items {earlier + 1} and {later + 1} are equal"
    return None


def _string(schema: Schema, value: object) -> Error:
    if not isinstance(value, str):
        return None
    if len(value) < schema.get("minLength", 0):
        return f"string too short, expected at least {schema['minLength']}, got {len(value)}"
    if len(value) > schema.get("maxLength", len(value)):
        return f"string too long, expected at most {schema['maxLength']}, got {len(value)}"
    if (pattern := schema.get("pattern")) is not None and not _pattern(pattern).search(value):
        return f"failed to match pattern {quoted(pattern)} with {quoted(value)}"
    return None


def _number(schema: Schema, value: object) -> Error:
    if not is_number(value):
        return None
    got = number(value)
    if value < schema.get("minimum", value):
        return f"expected {got} to be at least {number(schema['minimum'])}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        return f"expected {got} to be greater than {number(schema['exclusiveMinimum'])}"
    if value > schema.get("maximum", value):
        return f"expected {got} to be at most {number(schema['maximum'])}"
    return None


def _enum(schema: Schema, value: object) -> Error:
    allowed = any(value == item and type_name(value) == type_name(item) for item in schema["enum"])
    return None if allowed else "matches none of the enum values"


def _all_of(schema: Schema, value: object) -> Error:
    for index, subschema in enumerate(schema["allOf"], 1):
        if (error := check(subschema, value)) is not None:
            return f"allOf {index} failed: {error}"
    return None


def _any_of(schema: Schema, value: object) -> Error:
    if any(check(subschema, value) is None for subschema in schema["anyOf"]):
        return None
    needs = [
        json.dumps(subschema["required"], separators=(",", ":"))
        for subschema in schema["anyOf"]
        if "required" in subschema
    ]
    return "object matches none of the required" + (": " + " or ".join(needs) if needs else "")


def _one_of(schema: Schema, value: object) -> Error:
    matched = [index for index, sub in enumerate(schema["oneOf"], 1) if check(sub, value) is None]
    if not matched:
        return "value should match only one schema, but matches none"
    if len(matched) > 1:
        return f"value should match only one schema, but matches both schemas {matched[0]} and {matched[1]}"
    return None


def _not(schema: Schema, value: object) -> Error:
    return "value wasn't supposed to match schema" if check(schema["not"], value) is None else None


def _if(schema: Schema, value: object) -> Error:
    branch = "then" if check(schema["if"], value) is None else "else"
    if branch in schema and check(schema[branch], value) is not None:
        return f"{branch} clause did not match"
    return None


def _format(schema: Schema, value: object) -> Error:
    version = {"ipv4": 4, "ipv6": 6}.get(schema["format"])
    if version is None or not isinstance(value, str):
        return None
    try:
        valid = ipaddress.ip_address(value).version == version
    except ValueError:
        valid = False
    return None if valid else f"expect valid {schema['format']} address but got: {value}"


_STEPS: tuple[tuple[frozenset[str], Callable[[Schema, object], Error]], ...] = (
    (
        frozenset(
            ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties")
        ),
        _object,
    ),
    (frozenset(("items", "minItems", "maxItems", "uniqueItems")), _array),
    (frozenset(("minLength", "maxLength", "pattern")), _string),
    (frozenset(("minimum", "maximum", "exclusiveMinimum")), _number),
    (frozenset(("enum",)), _enum),
    (frozenset(("allOf",)), _all_of),
    (frozenset(("anyOf",)), _any_of),
    (frozenset(("oneOf",)), _one_of),
    (frozenset(("if",)), _if),
    (frozenset(("not",)), _not),
    (frozenset(("format",)), _format),
)
_plans: dict[int, tuple[Schema, list[Callable[[Schema, object], Error]]]] = {}


def _plan(schema: Schema) -> list[Callable[[Schema, object], Error]]:
    """Return the steps of a schema, computed once: schemas are constants, kept here so that ids stay unique."""
    known = _plans.get(id(schema))
    if known is None:
        known = (schema, [step for keywords, step in _STEPS if keywords & schema.keys()])
        _plans[id(schema)] = known
    return known[1]
