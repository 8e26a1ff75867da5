"""A page for each custom resource: its fields from the schema of its CRD, its rules, the examples that show it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crds.kinds import GROUP, VERSION, Kind
from crds.schema import definition, spec_schema
from reference.markdown import cell, code, table

Schema = Mapping[str, Any]

LONGEST_ENUM = 12
"""Maximum number of values of an enumeration in the page; no kind has more."""


@dataclass(frozen=True, slots=True)
class Field:
    """One line of the table of fields.

    Attributes:
        path: From the spec on, `[]` for an item of a list, e.g. `http[].match.paths`.
        schema: Its schema in the CRD.
        required: Whether its parent needs it.
    """

    path: str
    schema: Schema
    required: bool


def fields(schema: Schema, prefix: str = "") -> Iterator[Field]:
    """Yield the fields below a schema, depth first, in the order of the model."""
    required = schema.get("required", ())
    for name, part in schema.get("properties", {}).items():
        path = prefix + name
        yield Field(path, part, name in required)
        yield from fields(part, f"{path}.")
        yield from fields(part.get("items", {}), f"{path}[].")


def rules(schema: Schema, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the message of every rule over several fields."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield prefix + rule.get("fieldPath", ""), rule["message"]
    for name, part in schema.get("properties", {}).items():
        path = f"{prefix}.{name}" if prefix else name
        yield from rules(part, path)
        yield from rules(part.get("items", {}), f"{path}[]")


def type_of(schema: Schema) -> str:
    """Return the type of a field as text."""
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = schema.get("type")
    if kind == "array":
        return f"list of {type_of(schema['items'])}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"map to {type_of(values)}" if isinstance(values, Mapping) else "object"
    return {"boolean": "`true`/`false`", "integer": "integer", "number": "number", "string": "string"}.get(
        str(kind), "anything"
    )


def bounds(schema: Schema) -> str:
    """Return the values that the schema allows for a field; empty if it does not limit them."""
    inner = schema.get("items", schema)
    found = []
    if values := [value for value in inner.get("enum", ()) if value != ""]:
        found.append("one of " + ", ".join(code(value) for value in values))
    if "minimum" in inner and "maximum" in inner:
        found.append(f"{inner['minimum']} to {inner['maximum']}")
    elif "minimum" in inner:
        found.append(f"at least {inner['minimum']}")
    if schema.get("minItems"):
        found.append("not empty")
    return "; ".join(found)


def page(kind: Kind, examples: Sequence[tuple[str, str]]) -> str:
    """Return the page of a kind.

    Args:
        kind: Its row in the table of kinds.
        examples: Title and link of each example that has an object of the kind.
    """
    schema = spec_schema(kind)
    parts = [
        f"# {kind.name}",
        kind.description,
        _facts(kind),
        "## Fields of `spec`",
        table(("field", "type", "meaning"), [_row(field) for field in fields(schema)]),
    ]
    if found := [f"* {code(where)}: {message}." if where else f"* {message}." for where, message in rules(schema)]:
        parts += [
            "## Rules over several fields",
            "The API server rejects an object that violates one of them.",
            "\n".join(found),
        ]
    if examples:
        parts += ["## Examples", "\n".join(f"* [{title}]({link})" for title, link in examples)]
    return "\n\n".join(parts) + "\n"


def _facts(kind: Kind) -> str:
    columns = definition(kind)["spec"]["versions"][0]["additionalPrinterColumns"]
    return table(
        ("", ""),
        [
            ("API", code(f"{GROUP}/{VERSION}")),
            ("kubectl", f"{code(kind.plural)}, short {code(kind.short)}; all kinds: `apisix`"),
            ("scope", "namespace" if kind.namespaced else "cluster"),
            ("columns", ", ".join(f"{each['name']}{' (wide)' if each.get('priority') else ''}" for each in columns)),
            ("status", "condition `ResourcesAvailable`: see [conditions](../conditions.md)"),
        ],
    )


def _row(field: Field) -> tuple[str, str, str]:
    said = field.schema.get("description", "")
    text = " ".join(
        part for part in (said, f"{_capital(bounds(field.schema))}." if bounds(field.schema) else "") if part
    )
    needed = ", **required**" if field.required else ""
    return code(field.path), type_of(field.schema) + needed, cell(text)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
