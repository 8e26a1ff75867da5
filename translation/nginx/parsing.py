"""Ingresses of ingress-nginx, parsed once per version: each of its hosts and of its Services reads an Ingress."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from translation.core.context import Context
from translation.core.options import Options
from translation.ingress_spec import IngressSpec, Path, parse_ingress
from translation.nginx.options import CATCH_ALL, NginxOptions
from translation.nginx.tables.findings import Finding, judged
from translation.nginx.tables.values import Values, compiles

_KEPT = 512


@dataclass(frozen=True, slots=True)
class Parsed:
    """The content of an Ingress, independent of other objects.

    Attributes:
        spec: Its spec, or None if it is invalid.
        values: Its effective annotations.
        findings: The verdict on each annotation.
        paths: Server → the paths of its rules for it, in their order.
        invalid: Whether a path or a wildcard makes the whole Ingress invalid.
    """

    spec: IngressSpec | None
    values: Values
    findings: tuple[Finding, ...]
    paths: Mapping[str, tuple[Path, ...]]
    invalid: bool


_Held = tuple[CustomObject, NginxOptions, Parsed]

_parsed: OrderedDict[int, _Held] = OrderedDict()
"""By identity of the object, which is kept alive so that the id is not reused."""


def parsed(item: CustomObject, view: View, options: Options, nginx: NginxOptions) -> Parsed:
    """Return an Ingress parsed; mistakes are not reported."""
    held = _parsed.get(id(item))
    if held is None or held[0] is not item or held[1] != nginx:
        held = (item, nginx, _parse(item, view, options, nginx))
        _parsed[id(item)] = held
        if len(_parsed) > _KEPT:
            _parsed.popitem(last=False)
    return held[2]


def host_of(host: str) -> str:
    """Return the server that a rule's host names."""
    return host.lower() or CATCH_ALL


def values_of(annotations: Mapping[str, str], prefix: str) -> Values:
    """Return the annotations with a prefix, without it."""
    start = f"{prefix}/"
    return Values({name[len(start) :]: text for name, text in annotations.items() if name.startswith(start)})


def bad_pattern(spec: IngressSpec, values: Values) -> str:
    """Return a path that is an invalid regular expression; empty if all are valid."""
    if not values.flag("use-regex") and not values.has("rewrite-target"):
        return ""
    paths = (path.path for rule in spec.rules if rule.http for path in rule.http.paths)
    return next((path for path in paths if not compiles(f"^{path}")), "")


def bad_wildcard(spec: IngressSpec, values: Values) -> str:
    """Return a wildcard host with a redirect to www, which is invalid; empty without one."""
    wildcards = (rule.host for rule in spec.rules if rule.host.startswith("*."))
    return next(wildcards, "") if values.flag("from-to-www-redirect") else ""


def _parse(item: CustomObject, view: View, options: Options, nginx: NginxOptions) -> Parsed:
    values = values_of(item.meta.annotations, nginx.prefix)
    findings = tuple(judged(values, strict=nginx.strict))
    spec = parse_ingress(Context(item.meta.kind, item.meta.namespace, view, options), item.spec)
    if spec is None:
        return Parsed(None, values, findings, {}, invalid=True)
    invalid = bool(bad_pattern(spec, values) or bad_wildcard(spec, values))
    return Parsed(spec, _effective(values, findings), findings, _paths(spec), invalid)


def _paths(spec: IngressSpec) -> dict[str, tuple[Path, ...]]:
    found: dict[str, list[Path]] = {}
    for rule in spec.rules:
        if rule.http:
            found.setdefault(host_of(rule.host), []).extend(rule.http.paths)
    return {host: tuple(paths) for host, paths in found.items()}


def _effective(values: Values, findings: Iterable[Finding]) -> Values:
    """Return the effective annotations: an invalid value whose outcome is the default is ignored."""
    ignored = {finding.annotation for finding in findings if finding.outcome == "default"}
    return Values({name: text for name, text in values.given.items() if name not in ignored})
