"""Parses the `spec` of an object into its model, with mistakes as sentences; also finds unknown fields.

The messages are defined here, the shapes in `v2/`. No input is ever echoed: a spec may contain secrets.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args, overload

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from apisix_ingress.errors import IngressError
from apisix_ingress.model.json import FrozenJson, mapping_in
from apisix_ingress.model.objects import UNREAD
from crds.kinds import KINDS
from crds.published import published_schemas
from crds.v2.common import Spec, SpecPart

S = TypeVar("S", bound=SpecPart)

Path = tuple[int | str, ...]
_Tree = dict[int | str, "_Tree"]

MOST_MISTAKES = 100
"""Maximum number of mistakes reported for one spec."""


class SpecError(IngressError):
    """A spec that does not fit its kind.

    Attributes:
        problems: (path, message) of each mistake, e.g. (`spec.http[0].match.paths`, `is missing: …`).
    """

    def __init__(self, problems: tuple[tuple[str, str], ...]) -> None:
        super().__init__("; ".join(f"{path}: {message}" for path, message in problems))
        self.problems = problems


@overload
def parse_spec(kind: type[S], spec: Mapping[str, Any] | None) -> S: ...
@overload
def parse_spec(kind: str, spec: Mapping[str, Any] | None) -> Spec: ...
def parse_spec(kind: str | type[SpecPart], spec: Mapping[str, Any] | None) -> SpecPart:
    """Return the frozen model of the spec of an object.

    `null` is treated as absent, as the API server does, and so is a null spec.

    Args:
        kind: The model of the spec, or the kind of the object.
        spec: `object["spec"]`; not changed.

    Raises:
        SpecError: with every mistake in a field; rules over several fields are checked once their fields are valid.
    """
    model = KINDS[kind].spec if isinstance(kind, str) else kind
    spec = {} if spec is None else spec
    if UNREAD in spec:
        raise SpecError((("spec", str(spec[UNREAD])),))
    try:
        return model.model_validate(spec)
    except ValidationError as error:
        details = error.errors(include_url=False)
    try:
        return model.model_validate(_without_nulls(spec, details))
    except ValidationError as error:
        raise SpecError(_problems(model, error.errors(include_url=False))) from None


def _without_nulls(spec: Any, details: Sequence[ErrorDetails]) -> Any:
    """Return a copy without the nulls that the details report; valid parts are shared."""
    tree: _Tree = {}
    for detail in details:
        if detail["input"] is None:
            branch = tree
            for part in detail["loc"]:
                branch = branch.setdefault(part, {})
    return _pruned(spec, tree)


def _pruned(value: Any, tree: _Tree) -> Any:
    """Return a value without the nulls at the ends of a tree of paths; all of them in one pass."""
    if not tree:
        return value
    if isinstance(value, Mapping):
        kept = ((key, item) for key, item in value.items() if item is not None or key not in tree)
        return {key: _pruned(item, tree[key]) if key in tree else item for key, item in kept}
    if isinstance(value, list):
        return [_pruned(item, tree[index]) if index in tree else item for index, item in enumerate(value)]
    return value


_SENTENCES = {
    "missing": "required field is missing",
    "string_type": "must be a string; put a number or a yes/no in quotes",
    "int_type": "must be an integer without quotes",
    "float_type": "must be a number without quotes",
    "float_parsing": "must be a number without quotes",
    "bool_type": "must be true or false without quotes",
    "tuple_type": "must be a list (lines that start with -)",
    "dict_type": "must be a mapping (lines of key: value)",
    "model_type": "must be a mapping (lines of key: value)",
    "model_attributes_type": "must be a mapping (lines of key: value)",
    "literal_error": "must be one of {expected}",
    "greater_than_equal": "must be {ge:g} or more",
    "less_than_equal": "must be {le:g} or less",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "string_pattern_mismatch": "has a character or form that is not allowed; it must match {pattern}",
}


def _problems(model: type[BaseModel], every: Sequence[ErrorDetails]) -> tuple[tuple[str, str], ...]:
    details = [detail for detail in every if not _is_consequence(detail)]
    problems = tuple(_problem(model, detail) for detail in details[:MOST_MISTAKES])
    left = len(details) - len(problems)
    return (*problems, ("spec", f"has {left} more mistakes")) if left else problems


def _is_consequence(detail: ErrorDetails) -> bool:
    """Return whether a list is too short only without its invalid items, which are reported themselves."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail.get("ctx", {})["min_length"]


def _problem(model: type[BaseModel], detail: ErrorDetails) -> tuple[str, str]:
    context = detail.get("ctx", {})
    path: Path = detail["loc"]
    if detail["type"] == "rule":
        return path_text((*path, context["field"]) if context["field"] else path), context["text"]
    sentence = _SENTENCES.get(detail["type"])
    message = sentence.format_map(context) if sentence else detail["msg"]
    field = _field_at(model, path)
    if field is None or not field.description or detail["type"] not in _EXPLAINED:
        return path_text(path), message
    description = _lower(field.description)
    # A description that only repeats the name, like that of `password`, adds nothing.
    return path_text(path), message if description == path[-1] else f"{message}: {description}"


_EXPLAINED = frozenset({"missing", "too_short", "string_too_short", "model_type", "tuple_type", "dict_type"})


def _lower(description: str) -> str:
    """Return a description as the second half of a sentence."""
    text = description.rstrip(".")
    first = text.split(" ", 1)[0]
    return text if first.isupper() else text[0].lower() + text[1:]


def path_text(path: Sequence[int | str]) -> str:
    """Render a path below spec, e.g. `spec.http[0].match.paths`."""
    return "spec" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def unknown_fields(kind: str, spec: object) -> tuple[tuple[str, str | None], ...]:
    """Return the fields that the kind does not have, each with the most similar known field or None.

    The API server silently prunes such fields, so a misspelled one has no effect. Values of the wrong type are skipped:
    `parse_spec` reports them. Free-form parts (the config of a plugin) and kinds without a schema are not checked.
    """
    shape = KINDS[kind].spec if kind in KINDS else published_schemas().get(kind)
    return tuple(_unknown(shape, spec, ()))


_Shape = type[BaseModel] | FrozenJson | None
"""What describes a value: a model, or the schema of a foreign kind; None: nothing does."""


def _unknown(shape: _Shape, value: object, path: Path) -> Iterator[tuple[str, str | None]]:
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _unknown(shape, entry, (*path, index))
    fields: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    known = _fields(shape)
    for key, item in fields.items() if known else ():
        if key in known:
            yield from _unknown(known[key], item, (*path, key))
        else:
            yield path_text((*path, str(key))), nearest_name(str(key), known.keys() - fields.keys())


def _fields(shape: _Shape) -> Mapping[str, _Shape]:
    """Return the fields of a value or of each item of a list, with what describes them; empty if any is allowed."""
    if isinstance(shape, type):
        return {field.alias or name: _model_of(field) for name, field in shape.model_fields.items()}
    schema = mapping_in(shape)
    return mapping_in(mapping_in(schema.get("items", schema)).get("properties"))


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to another one, if any is similar."""
    near = difflib.get_close_matches(name.lower(), names := {each.lower(): each for each in known}, n=1)
    return names[near[0]] if near else None


def _field_at(model: type[BaseModel], path: Path) -> FieldInfo | None:
    """Return the field at a path."""
    field: FieldInfo | None = None
    current: type[BaseModel] | None = model
    for part in path:
        if isinstance(part, int):
            continue
        if current is None:
            return None
        field = next((f for name, f in current.model_fields.items() if (f.alias or name) == part), None)
        current = None if field is None else _model_of(field)
    return field


def _model_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model in the type of a field: `Model`, `Model | None` or `tuple[Model, ...]`."""
    return _model_in(field.annotation)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for model in map(_model_in, get_args(annotation)) if model is not None), None)
