"""Sources: the Ingresses of a host, parsed and validated, in the order in which ingress-nginx reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.kinds.indexes import NGINX_CANARY_INDEX, NGINX_HOST_INDEX, NGINX_SERVICE_INDEX
from apisix_ingress.model.objects import ConfigMap, CustomObject, IngressClass, Meta
from apisix_ingress.state.view import View, oldest
from translation.core.context import Context
from translation.core.options import Options
from translation.core.scope import CLASS_ANNOTATION, class_is_ours, class_of, in_scope
from translation.ingress_spec import IngressSpec, Path, parse_ingress
from translation.nginx.options import CATCH_ALL, NginxOptions
from translation.nginx.tables.annotations import SNIPPETS
from translation.nginx.tables.config_map import Config
from translation.nginx.tables.findings import Finding, judged
from translation.nginx.tables.values import Values, compiles


@dataclass(frozen=True, slots=True)
class Source:
    """One Ingress that is served.

    Attributes:
        meta: Its metadata.
        spec: Its spec.
        values: Its annotations.
        closed: Why its paths respond with 503, also in ingress-nginx; else empty.
        shut: Why its paths respond with 503 here: they would lose a protection.
    """

    meta: Meta
    spec: IngressSpec
    values: Values
    closed: str = ""
    shut: str = ""

    @property
    def canary(self) -> bool:
        """Whether it is a canary of another Ingress."""
        return self.values.flag("canary")

    def paths(self, host: str) -> Iterable[Path]:
        """Yield the paths of its rules for a host."""
        for rule in self.spec.rules:
            if rule.http and host_of(rule.host) == host:
                yield from rule.http.paths


def host_of(host: str) -> str:
    """Return the server that a rule's host names."""
    return host.lower() or CATCH_ALL


def read_config(view: View, options: NginxOptions) -> Config:
    """Return the current ConfigMap, or the defaults."""
    found = view.get(ConfigMap, options.config_map) if options.config_map else None
    return Config(found.data if found else {})


def class_is_nginx(obj: CustomObject, view: View, options: NginxOptions) -> bool:
    """Return whether the class of an Ingress is one that ingress-nginx serves."""
    annotated = obj.meta.annotations.get(CLASS_ANNOTATION)
    if annotated:
        return annotated == options.ingress_class
    name = class_of(obj)
    if not name:
        return options.watch_without_class
    found = view.get(IngressClass, ObjectKey("IngressClass", "", name))
    return found is not None and found.controller == options.controller_class


def is_served(item: CustomObject, view: View, options: Options, nginx: NginxOptions) -> bool:
    """Return whether an Ingress is for ingress-nginx and in a watched namespace; Ingresses of our own class are not."""
    if not class_is_nginx(item, view, nginx) or not in_scope(item.meta.namespace, view, options):
        return False
    return not class_is_ours(item, view, options)


def values_of(annotations: Mapping[str, str], prefix: str) -> Values:
    """Return the annotations with a prefix, without it."""
    start = f"{prefix}/"
    return Values({name[len(start) :]: text for name, text in annotations.items() if name.startswith(start)})


def sources_of_host(view: View, options: Options, nginx: NginxOptions, host: str) -> list[Source]:
    """Return the Ingresses that name a host, the oldest first."""
    return list(_sources(view, options, nginx, IndexKey("Ingress", NGINX_HOST_INDEX, host)))


def sources_of_service(
    view: View, options: Options, nginx: NginxOptions, namespace: str, service: str
) -> Iterator[Source]:
    """Yield the Ingresses that name a Service, the oldest first; thousands may, so that callers stop early."""
    return _sources(view, options, nginx, IndexKey("Ingress", NGINX_SERVICE_INDEX, f"{namespace}/{service}"))


def has_canaries(view: View, namespace: str) -> bool:
    """Return whether a namespace has Ingresses that may be canaries."""
    return bool(view.find(CustomObject, IndexKey("Ingress", NGINX_CANARY_INDEX, namespace)))


def _sources(view: View, options: Options, nginx: NginxOptions, index: IndexKey) -> Iterator[Source]:
    items = oldest(view, CustomObject, index)
    for _, group in groupby(items, key=lambda each: each.meta.created):
        # In the same second the last one by name comes first (internal/ingress/controller/store/store.go).
        for item in sorted(group, key=lambda each: (each.meta.namespace, each.meta.name), reverse=True):
            if source := source_of(item, view, options, nginx):
                yield source


def source_of(item: CustomObject, view: View, options: Options, nginx: NginxOptions) -> Source | None:
    """Return an Ingress as ingress-nginx serves it, or None if it does not serve it."""
    if not is_served(item, view, options, nginx):
        return None
    values = values_of(item.meta.annotations, nginx.prefix)
    config = read_config(view, nginx)
    findings = tuple(judged(values, strict=nginx.strict))
    scope = Context("Ingress", item.meta.namespace, view, options)
    spec = parse_ingress(scope, item.spec)
    if spec is None or why_refused(findings, config) or bad_pattern(spec, values) or bad_wildcard(spec, values):
        return None
    if nginx.disable_catch_all and spec.default_backend and not spec.rules:
        return None
    return Source(item.meta, spec, _effective(values, findings), _why_closed(findings), _why_shut(findings))


def why_refused(findings: Iterable[Finding], config: Config) -> str:
    """Return why a whole Ingress is not served, as in ingress-nginx; empty if it is."""
    for finding in findings:
        if finding.outcome == "refused":
            return f"{finding.annotation} has a value that is not valid"
        if finding.annotation in SNIPPETS and not _takes_snippets(config):
            return f"{finding.annotation} is not allowed"
    return ""


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


def _takes_snippets(config: Config) -> bool:
    return config.flag("allow-snippet-annotations") and config.text("annotations-risk-level") == "Critical"


def _why_closed(findings: Iterable[Finding]) -> str:
    for finding in findings:
        if finding.outcome == "closed":
            return f"{finding.annotation} has a value that is not valid"
    return ""


def _why_shut(findings: Iterable[Finding]) -> str:
    for finding in findings:
        if finding.verdict.level == "refused" and finding.verdict.protects:
            return f"{finding.annotation} protects the path and cannot be served"
    return ""


def _effective(values: Values, findings: Iterable[Finding]) -> Values:
    """Return the effective annotations: an invalid value whose outcome is the default is ignored."""
    ignored = {finding.annotation for finding in findings if finding.outcome == "default"}
    return Values({name: text for name, text in values.given.items() if name not in ignored})
