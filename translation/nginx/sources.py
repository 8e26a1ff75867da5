"""Sources: the Ingresses of a host, parsed and validated, in the order in which ingress-nginx reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from apisix_ingress.model.keys import IndexKey
from apisix_ingress.model.kinds.indexes import (
    EVERY_SERVER,
    NGINX_AFFINITY_INDEX,
    NGINX_CANARY_INDEX,
    NGINX_HOST_INDEX,
    NGINX_SERVICE_INDEX,
)
from apisix_ingress.model.objects import ConfigMap, CustomObject, Meta
from apisix_ingress.state.view import View, oldest_seconds
from translation.core.options import Options
from translation.hosts.host_owners import HostOwners
from translation.ingress_spec import IngressSpec, Path, ServiceBackend
from translation.nginx.classes import is_served
from translation.nginx.options import CATCH_ALL, NginxOptions
from translation.nginx.parsing import host_of, parsed
from translation.nginx.tables.config_map import DEFAULTS, LEAN_DEFAULTS, Config
from translation.nginx.tables.findings import Finding
from translation.nginx.tables.risks import why_forbidden
from translation.nginx.tables.values import Values

MOST = 256
"""Maximum number of Ingresses of a Service that a translation reads: thousands of hosts may share a Service."""

BackendKey: TypeAlias = tuple[str, str, int | str]
"""An upstream of nginx: namespace, Service, and its port as the Ingress names it."""


@dataclass(frozen=True, slots=True)
class Source:
    """One Ingress that is served.

    Attributes:
        meta: Its metadata.
        spec: Its spec.
        values: Its annotations.
        by_host: Server → the paths of its rules for it.
        closed: Why its paths respond with 503, also in ingress-nginx; else empty.
        shut: Why its paths respond with 503 here: they would lose a protection.
    """

    meta: Meta
    spec: IngressSpec
    values: Values
    by_host: Mapping[str, tuple[Path, ...]]
    closed: str = ""
    shut: str = ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The servers that it contributes to."""
        named = dict.fromkeys(host_of(rule.host) for rule in self.spec.rules)
        return tuple(named | {CATCH_ALL: None} if self.spec.default_backend else named)

    @property
    def canary(self) -> bool:
        """Whether it is a canary of another Ingress."""
        return self.values.flag("canary")

    def backends(self) -> Iterator[BackendKey]:
        """Yield the backends of its paths, and its default backend."""
        paths = (path.backend for every in self.by_host.values() for path in every)
        for backend in (self.spec.default_backend, *paths):
            if backend and backend.service:
                yield backend_key(self.meta.namespace, backend.service)

    def paths(self, host: str) -> tuple[Path, ...]:
        """Return the paths of its rules for a host."""
        return self.by_host.get(host, ())


def backend_key(namespace: str, service: ServiceBackend) -> BackendKey:
    """Return the upstream of nginx for a Service that an Ingress of a namespace names."""
    return namespace, service.name, service.port.number or service.port.name


def read_config(view: View, options: NginxOptions) -> Config:
    """Return the current ConfigMap, or the defaults."""
    found = view.get(ConfigMap, options.config_map) if options.config_map else None
    return Config(found.data if found else {}, LEAN_DEFAULTS if options.lean else DEFAULTS)


def sources_of_host(view: View, options: Options, nginx: NginxOptions, host: str) -> list[Source]:
    """Return the Ingresses that name a host and whose namespaces may use it, the oldest first."""
    return [*each_of_host(view, options, nginx, host)]


def each_of_host(view: View, options: Options, nginx: NginxOptions, host: str) -> Iterator[Source]:
    """Yield the Ingresses that name a host and whose namespaces may use it, the oldest first; callers may stop."""
    owners = HostOwners(view, options)
    found = _sources(view, options, nginx, IndexKey("Ingress", NGINX_HOST_INDEX, host))
    name = "" if host == CATCH_ALL else host
    return (source for source in found if not owners.refusal(source.meta.namespace, name))


def sources_of_service(
    view: View, options: Options, nginx: NginxOptions, namespace: str, service: str
) -> Iterator[Source]:
    """Yield the oldest Ingresses that name a Service, at most `MOST`; callers stop early."""
    found = _sources(view, options, nginx, IndexKey("Ingress", NGINX_SERVICE_INDEX, f"{namespace}/{service}"))
    return islice(found, MOST)


def sources_with_affinity(
    view: View, options: Options, nginx: NginxOptions, namespace: str, service: str
) -> list[Source]:
    """Return the Ingresses that name a Service and request affinity, the oldest first.

    If there are more than `MOST`, only the oldest and the youngest ones: the first and the last one decide.
    """
    index = IndexKey("Ingress", NGINX_AFFINITY_INDEX, f"{namespace}/{service}")
    items = list(oldest_seconds(view, CustomObject, index))
    if len(items) > MOST:
        items[MOST // 2 : -MOST // 2] = []
    found = filter(None, (source_of(item, view, options, nginx) for item in items))
    return [source for source in found if not source.canary and source.values.text("affinity") == "cookie"]


def canaries_on(view: View, options: Options, nginx: NginxOptions, host: str = EVERY_SERVER) -> Iterator[Source]:
    """Yield the canaries of any namespace that name a host, or all canaries, the oldest first."""
    found = _sources(view, options, nginx, IndexKey("Ingress", NGINX_CANARY_INDEX, host))
    return (source for source in found if source.canary)


def in_order(sources: Iterable[Source]) -> list[Source]:
    """Return Ingresses in the order in which ingress-nginx reads them."""
    by_name = sorted(sources, key=lambda each: each.meta.key, reverse=True)
    return sorted(by_name, key=lambda each: each.meta.created)


def _sources(view: View, options: Options, nginx: NginxOptions, index: IndexKey) -> Iterator[Source]:
    # In the same second, the last one by name comes first (internal/ingress/controller/store/store.go).
    for item in oldest_seconds(view, CustomObject, index):
        if source := source_of(item, view, options, nginx):
            yield source


def source_of(item: CustomObject, view: View, options: Options, nginx: NginxOptions) -> Source | None:
    """Return an Ingress as ingress-nginx serves it, or None if it does not serve it."""
    if not is_served(item, view, options, nginx):
        return None
    found = parsed(item, view, options, nginx)
    if found.spec is None or found.invalid or why_refused(found.findings, read_config(view, nginx)):
        return None
    if nginx.disable_catch_all and found.spec.default_backend and not found.spec.rules:
        return None
    closed, shut = _why_closed(found.findings), _why_shut(found.findings)
    return Source(item.meta, found.spec, found.values, found.paths, closed, shut)


def why_refused(findings: Iterable[Finding], config: Config) -> str:
    """Return why a whole Ingress is not served, as in ingress-nginx; empty if it is."""
    for finding in findings:
        if finding.outcome == "refused":
            reason = f": {finding.verdict.reason}" if finding.verdict.level == "refused" else ""
            return f"{finding.annotation} has a value that is not valid{reason}"
        if why := why_forbidden(finding, config):
            return why
    return ""


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
