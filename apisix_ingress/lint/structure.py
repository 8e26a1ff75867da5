"""Mistakes that an API server rejects by the schema of a kind: missing fields, types and ranges of values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.webhook.schemas.book import PluginSchema, compiled
from crds import published_schemas

_REQUIRED = " is required"


def structure_problems(
    objects: Iterable[KubeObject], known: Collection[tuple[ObjectKey, Problem]]
) -> Iterator[tuple[ObjectKey, Problem]]:
    """Yield the mistakes in objects of kinds that other projects define, except the fields of known problems."""
    reported = {(key, problem.path) for key, problem in known}
    for item in objects:
        schema = _schema(item.meta.kind) if isinstance(item, CustomObject) else None
        if schema and isinstance(item, CustomObject):
            for where, sentence in schema.mistakes(_without_nulls(item.spec)):
                path, message = _field(where, sentence)
                if (item.meta.key, path) not in reported:
                    yield item.meta.key, Problem("InvalidSpec", message, path)


@cache
def _schema(kind: str) -> PluginSchema | None:
    return compiled(published_schemas().get(kind))


def _field(where: str, sentence: str) -> tuple[str, str]:
    """Return the path and the message of a mistake; a missing field has its own path."""
    path = f"spec.{where}".rstrip(".")
    if sentence.endswith(_REQUIRED) and " " not in (name := sentence.removesuffix(_REQUIRED)):
        return f"{path}.{name}", "required field is missing"
    return path, sentence.replace("Invalid type. Expected: ", "must be of type ").replace(", given: ", ", not ")


def _without_nulls(value: Any) -> Any:
    """Return a copy without nulls, which the API server drops."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
