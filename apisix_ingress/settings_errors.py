"""What pydantic found wrong with the configuration, told to the person who wrote it.

One line per problem: the key's full path, what is wrong, the nearest known key, where the value comes from. A
value itself is never repeated here, since it may be the admin key.
"""

import difflib
from collections.abc import Iterator, Sequence
from typing import get_args

from pydantic import BaseModel, ValidationError

from apisix_ingress.settings_layers import Layer, Location, origin


def explain(error: ValidationError, model: type[BaseModel], layers: Sequence[Layer]) -> list[str]:
    """Return the lines for `error`, raised when `model` was built from `layers`."""
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        location = problem["loc"]
        if problem["type"] == "extra_forbidden":
            text = f"unknown key, {_advice(model, location)}"
        elif problem["type"] in ("model_type", "model_attributes_type"):
            text = "must be a mapping of keys to values"
        else:
            text = problem["msg"].removeprefix("Value error, ")
        source = origin(layers, location) if location else ""
        head = f"{_dotted(location)}: " if location else ""
        lines.append(f"{head}{text}{f' (from {source})' if source else ''}")
    return lines


def _dotted(location: Location) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")


def _advice(model: type[BaseModel], location: Location) -> str:
    """Name the key that was meant: one spelt alike, else that one elsewhere, else all that are known."""
    section = _section(model, location[:-1])
    wrong = str(location[-1])
    if near := difflib.get_close_matches(wrong, section.model_fields, n=1):
        return f"did you mean {near[0]}?"
    if elsewhere := [path for path in _paths(model) if path.rpartition(".")[2] == wrong]:
        return f"did you mean {elsewhere[0]}?"
    return f"known here: {', '.join(section.model_fields)}"


def _section(model: type[BaseModel], location: Location) -> type[BaseModel]:
    """Follow `location` from `model` down to the section it names."""
    for part in location:
        if isinstance(part, str):
            model = _submodel(model, part) or model
    return model


def _submodel(model: type[BaseModel], field: str) -> type[BaseModel] | None:
    """Return the section that `field` holds, itself or as a list of such, None if it is a plain value."""
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
