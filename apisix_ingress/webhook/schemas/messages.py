"""Sentences for schema violations, in the wording that tools for 1.8 look for; none contains a value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jsonschema_rs import ValidationError, ValidationErrorKind

from apisix_ingress.model.json import FrozenJson

_BRANCHES = 3
"""Maximum number of alternatives whose first mistake is reported."""

_PATTERN_LENGTH = 128

_LIMITS = {
    "maximum": "Must be less than or equal to {limit}",
    "exclusiveMaximum": "Must be less than {limit}",
    "minimum": "Must be greater than or equal to {limit}",
    "exclusiveMinimum": "Must be greater than {limit}",
    "maxLength": "String length must be less than or equal to {limit}",
    "minLength": "String length must be greater than or equal to {limit}",
    "maxItems": "Array must have at most {limit} items",
    "minItems": "Array must have at least {limit} items",
    "maxProperties": "Must have at most {limit} properties",
    "minProperties": "Must have at least {limit} properties",
    "multipleOf": "Must be a multiple of {multiple_of}",
    "required": "{property} is required",
    "uniqueItems": "array items must be unique",
    "format": "Does not match format '{format}'",
    "contains": "At least one of the items must match",
    "not": "Must not validate the schema (not)",
    "falseSchema": "False always fails validation",
}
_JSON_TYPES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def path_of(path: Sequence[str | int]) -> str:
    """Render a path as `rules[0].count`; empty for the whole value."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def sentence(error: ValidationError) -> str:
    """Return the mistake at the path of an error."""
    match error.kind:
        case ValidationErrorKind.Type():
            types = ", ".join(error.kind.as_dict()["types"])
            return f"Invalid type. Expected: {types}, given: {_type_of(error.instance)}"
        case ValidationErrorKind.AdditionalProperties(unexpected):
            return f"Additional property {', '.join(unexpected)} is not allowed"
        case ValidationErrorKind.FalseSchema() if error.schema_path[-1:] == ["additionalProperties"]:
            return "No properties are allowed"
        case ValidationErrorKind.Enum(options):
            return f"must be one of the following: {', '.join(map(_literal, options))}"
        case ValidationErrorKind.Constant(expected):
            return f"does not match: {_literal(expected)}"
        case ValidationErrorKind.Pattern(pattern):
            return f"Does not match pattern '{pattern[:_PATTERN_LENGTH]}'"
        case ValidationErrorKind.AnyOf(context):
            return f"Must validate at least one schema (anyOf){_alternatives(context)}"
        case ValidationErrorKind.OneOfNotValid(context):
            return f"Must validate one and only one schema (oneOf){_alternatives(context)}"
        case ValidationErrorKind.OneOfMultipleValid():
            return "Must validate one and only one schema (oneOf), but validates several"
        case ValidationErrorKind.PropertyNames(inner):
            return f"a property name is wrong: {sentence(inner)}"
    template = _LIMITS.get(error.kind.name)
    return template.format(**error.kind.as_dict()) if template else f"breaks the rule {error.kind.name}"


def schema_at(document: FrozenJson, path: Sequence[str | int]) -> Any:
    """Return the part of a schema at a path; None if there is none."""
    found: Any = document
    for step in path:
        try:
            found = found[step]
        except (KeyError, IndexError, TypeError):
            return None
    return found


_CHOICES = {
    ValidationErrorKind.AnyOf: "set at least one of {}",
    ValidationErrorKind.OneOfNotValid: "set one of {}",
    ValidationErrorKind.OneOfMultipleValid: "set only one of {}",
}


def choice(branches: Any, error: ValidationError) -> str:
    """Return the mistake in a choice between options, or between types; empty for any other error."""
    template = next((text for kind, text in _CHOICES.items() if isinstance(error.kind, kind)), "")
    if not template or not isinstance(branches, list) or not all(isinstance(each, dict) for each in branches):
        return ""
    if all(each.keys() == {"required"} for each in branches):
        common = set.intersection(*(set(each["required"]) for each in branches))
        missing = sorted(common - error.instance.keys()) if isinstance(error.instance, dict) else []
        if missing:
            return f"{', '.join(missing)} is required"
        names = (" and ".join(name for name in each["required"] if name not in common) for each in branches)
        return template.format(", ".join(filter(None, names)))
    types = [each.get("type") for each in branches]
    if all(isinstance(each, str) for each in types) and _type_of(error.instance) not in types:
        return f"Invalid type. Expected: {', '.join(types)}, given: {_type_of(error.instance)}"
    return ""


def _alternatives(context: Sequence[Sequence[ValidationError]]) -> str:
    """Return the first mistake of some alternatives, in brackets."""
    first = [branch[0] for branch in context if branch]
    found = dict.fromkeys(map(sentence, first[:_BRANCHES]))
    return f": {'; or '.join(found)}" if found else ""


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _type_of(value: object) -> str:
    return next((name for types, name in _JSON_TYPES if isinstance(value, types)), "null")
