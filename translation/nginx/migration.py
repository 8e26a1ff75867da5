"""Migration reports on Ingresses of ingress-nginx, as data: by Ingress, by host and for the ConfigMap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from translation.core.builder import Builder
from translation.core.options import Options
from translation.nginx.ingress import refusals
from translation.nginx.options import NginxOptions
from translation.nginx.servers import build_server
from translation.nginx.sources import (
    Source,
    host_of,
    is_served,
    read_config,
    source_of,
    sources_of_host,
    values_of,
)
from translation.nginx.tables.annotations import SNIPPETS
from translation.nginx.tables.findings import Finding, judged
from translation.nginx.tables.verdicts import RANKS, Level, Verdict

_DIRECTIVES = {
    "add_header": "the plugin response-rewrite, or the annotation custom-headers",
    "more_set_headers": "the plugin response-rewrite, or the annotation custom-headers",
    "more_clear_headers": "the plugin response-rewrite (headers.remove)",
    "proxy_set_header": "the plugin proxy-rewrite (headers.set), or upstream-vhost for Host",
    "proxy_hide_header": "the plugin response-rewrite (headers.remove)",
    "return": "the annotation permanent-redirect or temporal-redirect, or the plugin redirect",
    "rewrite": "the annotation rewrite-target, or the plugin proxy-rewrite",
    "deny": "the annotation denylist-source-range",
    "allow": "the annotation whitelist-source-range",
    "auth_basic": "the annotations auth-type and auth-secret",
    "limit_req": "the annotation limit-rps",
    "client_max_body_size": "the annotation proxy-body-size",
    "proxy_read_timeout": "the annotation proxy-read-timeout",
}
"""Directives in snippets → their replacement."""

_DIRECTIVE = re.compile(r"^\s*([a-z_]+)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class IngressReport:
    """One Ingress.

    Attributes:
        key: Its key.
        level: The worst verdict.
        findings: The verdict on each annotation.
        refused: Why it, or some of its paths, are not served: field and reason.
        suggestions: Replacements of directives in snippets.
    """

    key: ObjectKey
    level: Level
    findings: tuple[Finding, ...]
    refused: tuple[tuple[str, str], ...]
    suggestions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostReport:
    """One host.

    Attributes:
        host: Its name; `_` means requests for hosts without an Ingress.
        level: The worst verdict on its Ingresses.
        ingresses: Its Ingresses, the oldest first.
        notes: How an Ingress affects the others of the host, and which Ingresses lose a path.
    """

    host: str
    level: Level
    ingresses: tuple[ObjectKey, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """The whole report; lists are sorted, so that two reports can be compared line by line."""

    ingresses: tuple[IngressReport, ...]
    hosts: tuple[HostReport, ...]
    config: tuple[tuple[str, Verdict], ...]

    @property
    def level(self) -> Level:
        """The worst verdict."""
        config: Iterable[Level] = (verdict.level for _, verdict in self.config)
        return _worst([*(each.level for each in self.ingresses), *config])


def migration_report(
    items: Iterable[CustomObject], view: View, options: Options, nginx: NginxOptions
) -> MigrationReport:
    """Return the report on the Ingresses that ingress-nginx serves."""
    served = sorted((item for item in items if is_served(item, view, options, nginx)), key=lambda each: each.meta.key)
    reports = {item.meta.key: _ingress(item, view, options, nginx) for item in served}
    hosts: dict[str, None] = {}
    for item in served:
        if source := source_of(item, view, options, nginx):
            hosts |= dict.fromkeys(host_of(rule.host) for rule in source.spec.rules)
    levels = {key: report.level for key, report in reports.items()}
    every = (_host(host, sources_of_host(view, options, nginx, host), levels) for host in sorted(hosts))
    return MigrationReport(tuple(reports.values()), tuple(every), tuple(read_config(view, nginx).verdicts()))


def _ingress(item: CustomObject, view: View, options: Options, nginx: NginxOptions) -> IngressReport:
    findings = tuple(judged(values_of(item.meta.annotations, nginx.prefix), strict=nginx.strict))
    refused = tuple(refusals(item, Builder(item.meta, view, options), nginx))
    levels: list[Level] = [finding.verdict.level for finding in findings]
    snippets = (finding.value for finding in findings if finding.annotation in SNIPPETS)
    return IngressReport(
        item.meta.key,
        "refused" if refused else _worst(levels),
        findings,
        refused,
        tuple(dict.fromkeys(line for text in snippets for line in _suggestions(text))),
    )


def _host(host: str, sources: list[Source], levels: dict[ObjectKey, Level]) -> HostReport:
    keys = tuple(source.meta.key for source in sources)
    notes = (*_patterns(host, sources), *_lost(host, sources))
    return HostReport(host, _worst([levels.get(key, "exact") for key in keys]), keys, notes)


def _patterns(host: str, sources: list[Source]) -> Iterator[str]:
    """Yield how use-regex and rewrite-target of one Ingress affect the paths of the others."""
    server = build_server(host, sources)
    if server is None or not server.regex:
        return
    causes = dict.fromkeys(each.source.meta.key for each in server.locations if each.regex and each.source)
    for source in sources:
        paths = len(list(source.paths(host)))
        if not source.canary and source.meta.key not in causes and paths:
            named = ", ".join(map(str, causes))
            what = f"{paths} paths become case-insensitive patterns" if paths > 1 else "its path becomes a pattern"
            yield f"{source.meta.key}: {what} because of use-regex or rewrite-target on {named}"


def _lost(host: str, sources: list[Source]) -> Iterator[str]:
    """Yield the paths that an older Ingress serves."""
    taken: dict[tuple[str, bool], ObjectKey] = {}
    for source in sources:
        if source.canary:
            continue
        for path in source.paths(host):
            key = (path.path or "/", path.path_type == "Exact")
            winner = taken.setdefault(key, source.meta.key)
            if winner != source.meta.key:
                yield f"{key[0]} of {source.meta.key} is served by {winner}, which is older"


def _suggestions(snippet: str) -> Iterator[str]:
    for name in dict.fromkeys(_DIRECTIVE.findall(snippet)):
        if name in _DIRECTIVES:
            yield f"{name}: use {_DIRECTIVES[name]}"
        else:
            yield f"{name}: no equivalent; look for a plugin"


def _worst(levels: list[Level]) -> Level:
    return max(levels, key=RANKS.__getitem__, default="exact")
