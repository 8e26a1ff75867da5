"""Mistakes in the configuration, found by pydantic or hidden from it, as messages for users.

One line per problem: the key's full path, what is wrong, the nearest known key, the source of the value. A value is
never repeated here, since it may be the admin key; a port to listen on may be.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from apisix_ingress.settings.layers import Layer, Location, items_of, origin

_HIGHEST_PORT = 65535

_SENTENCES = {
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "list_type": "must be a list (lines that start with -)",
    "tuple_type": "must be a list (lines that start with -)",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_from_float": "must be an integer",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "greater_than": "must be more than {gt:g}",
}


def explain(error: ValidationError, model: type[BaseModel], layers: Sequence[Layer]) -> list[str]:
    """Return the lines for `error`, raised when `model` was built from `layers`."""
    problems = error.errors(include_url=False)
    return [_line(problem["loc"], _sentence(problem, model), layers) for problem in problems]


def misshapen(model: type[BaseModel], layers: Sequence[Layer]) -> list[str]:
    """Return the lines for values in any layer that should be sections, even if a later layer overrides them."""
    return [
        _line(location, _SENTENCES[problem], [layer])
        for layer in layers
        for location, problem in _misshapen(layer.values, model, (), indexed=layer.indexed)
    ]


def _misshapen(
    values: object, model: type[BaseModel], at: tuple[str | int, ...], *, indexed: bool
) -> Iterator[tuple[Location, str]]:
    """Yield values that should be sections, and the corresponding pydantic problem.

    Empty ones are treated as absent.
    """
    if values is not None and not isinstance(values, Mapping):
        yield at, "model_type"
        return
    for field, value in (values or {}).items():
        if field not in model.model_fields or value is None or (section := _submodel(model, field)) is None:
            continue
        if get_origin(model.model_fields[field].annotation) is not tuple:
            yield from _misshapen(value, section, (*at, field), indexed=indexed)
        elif (items := _items(value, indexed=indexed)) is None:
            yield (*at, field), "tuple_type"
        else:
            for index, item in items.items():
                yield from _misshapen(item, section, (*at, field, index), indexed=indexed)


def _items(value: object, *, indexed: bool) -> dict[int, object] | None:
    """Return the items of a list in any notation of the layer; None if it is not a list."""
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    return (items_of(value) or None) if indexed and isinstance(value, Mapping) else None


def _line(location: Location, text: str, layers: Sequence[Layer]) -> str:
    source = origin(layers, location) if location else ""
    head = f"{_dotted(location)}: " if location else ""
    return f"{head}{text}{f' (from {source})' if source else ''}"


def _sentence(problem: ErrorDetails, model: type[BaseModel]) -> str:
    """Return what is wrong and what to write instead."""
    kind, location, context = problem["type"], problem["loc"], problem.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key, {_advice(model, location)}"
    if kind == "string_type":
        return f"must be a string: {_quoted(location, problem['input'])}"
    if kind == "literal_error":
        choices = context["expected"].replace("'", "").replace(" or ", ", ")
        return f"must be one of {choices}"
    if kind in _SENTENCES:
        return _SENTENCES[kind].format_map(context)
    return problem["msg"].removeprefix("Value error, ")


def _quoted(location: Location, value: object) -> str:
    """Return how to write a string; the value is repeated only if it is a port, which is not a secret."""
    name = location[-1] if location else ""
    if name == "listen" and type(value) is int and 0 <= value <= _HIGHEST_PORT:
        return f"write ':{value}' in quotes"
    return "put it in quotes"


def _dotted(location: Location) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")


def _advice(model: type[BaseModel], location: Location) -> str:
    """Suggest the intended key: a similar one here, else a similar one in another section, else list all known keys."""
    section = _section(model, location[:-1])
    wrong = str(location[-1])
    if near := difflib.get_close_matches(wrong, section.model_fields, n=1):
        return f"did you mean {near[0]}?"
    if elsewhere := [path for path in _paths(model) if path.rpartition(".")[2] == wrong]:
        return f"did you mean {elsewhere[0]}?"
    return f"known here: {', '.join(section.model_fields)}"


def _section(model: type[BaseModel], location: Location) -> type[BaseModel]:
    """Follow `location` from `model` down to its section."""
    for part in location:
        if isinstance(part, str):
            model = _submodel(model, part) or model
    return model


def _submodel(model: type[BaseModel], field: str) -> type[BaseModel] | None:
    """Return the section in `field`, directly or as list items; None if it is a plain value."""
    annotation = model.model_fields[field].annotation
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _paths(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield the full path of every known key."""
    for field in model.model_fields:
        yield prefix + field
        if section := _submodel(model, field):
            yield from _paths(section, f"{prefix}{field}.")
