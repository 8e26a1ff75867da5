"""Mistakes that an API server rejects: missing fields, types and ranges of values, hosts and paths of an Ingress."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from apisix_ingress.model.formats.object_names import SUBDOMAIN
from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.json import FrozenJson, list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.ip_address import is_ip
from apisix_ingress.model.objects import CustomObject, KubeObject
from apisix_ingress.model.problem import Problem
from apisix_ingress.webhook.schemas.book import PluginSchema, compiled
from crds import published_schemas

_REQUIRED = " is required"
_LITERAL = ("Exact", "Prefix")
_LONGEST = 253
_UNCLEAN = TextPattern(r"//|/\./|/\.\./|%2[fF]|/\.\.?$")


def structure_problems(
    objects: Iterable[KubeObject], known: Collection[tuple[ObjectKey, Problem]]
) -> Iterator[tuple[ObjectKey, Problem]]:
    """Yield the mistakes in objects of kinds that other projects define, except the fields of known problems."""
    reported = {(key, problem.path) for key, problem in known}
    for item in objects:
        for path, message in _mistakes(item) if isinstance(item, CustomObject) else ():
            if (item.meta.key, path) not in reported:
                yield item.meta.key, Problem("InvalidSpec", message, path)


def _mistakes(item: CustomObject) -> Iterator[tuple[str, str]]:
    """Yield the path and the message of each mistake."""
    schema = _schema(item.meta.kind)
    if schema:
        yield from (_field(*mistake) for mistake in schema.mistakes(_without_nulls(item.spec)))
    if item.meta.kind == "Ingress":
        yield from _of_ingress(item.spec)


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


def _of_ingress(spec: FrozenJson) -> Iterator[tuple[str, str]]:
    """Yield what the API server rejects in an Ingress although its types are right."""
    for at, rule in enumerate(map(mapping_in, list_in(spec.get("rules")))):
        yield from _of_host(f"spec.rules[{at}].host", rule.get("host"))
        for number, path in enumerate(map(mapping_in, list_in(mapping_in(rule.get("http")).get("paths")))):
            yield from _of_path(f"spec.rules[{at}].http.paths[{number}]", path)
    for at, entry in enumerate(map(mapping_in, list_in(spec.get("tls")))):
        for number, host in enumerate(list_in(entry.get("hosts"))):
            yield from _of_host(f"spec.tls[{at}].hosts[{number}]", host, may_be_address=True)


def _of_host(path: str, host: object, *, may_be_address: bool = False) -> Iterator[tuple[str, str]]:
    if not isinstance(host, str) or not host:
        return
    if is_ip(host) and not may_be_address:
        yield path, f"{host[:_LONGEST]!r} is an IP address, not a DNS name"
    elif len(host) > _LONGEST or not SUBDOMAIN.fits(host.removeprefix("*.")):
        yield path, f"{host[:_LONGEST]!r} is not a DNS name in lower case"


def _of_path(at: str, item: FrozenJson) -> Iterator[tuple[str, str]]:
    path, kind, backend = item.get("path"), item.get("pathType"), mapping_in(item.get("backend"))
    if isinstance(path, str) and path[:1] != "/" and (path or kind in _LITERAL):
        yield f"{at}.path", "must start with /"
    elif isinstance(path, str) and kind in _LITERAL and _UNCLEAN.found(path):
        yield f"{at}.path", "must not contain //, /./, /../ or %2f"
    if (backend.get("service") is None) == (backend.get("resource") is None) and "backend" in item:
        yield f"{at}.backend", "must have either service or resource"
