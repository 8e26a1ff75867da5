"""Migration reports on Ingresses of ingress-nginx, as data: by Ingress, by host and for the ConfigMap."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from apisix_ingress.model.json import FrozenJson, list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.indexes import nginx_hosts
from apisix_ingress.model.objects import ConfigMap, CustomObject, IngressClass
from apisix_ingress.model.secrets.redaction import redact_text
from apisix_ingress.model.secrets.texts import without_arguments
from apisix_ingress.model.secrets.value_mask import REDACTED
from apisix_ingress.state.view import View
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.scope import class_is_ours, written_class
from translation.ingress_spec import IngressSpec
from translation.nginx.classes import is_served
from translation.nginx.effects.balancing.canaries import without_main
from translation.nginx.effects.protection.required_objects import Closing, closings
from translation.nginx.ingress import annotation_path, findings_of, refusals
from translation.nginx.missing_objects import missing_backends, missing_certificates
from translation.nginx.options import NginxOptions
from translation.nginx.parsing import host_of, parsed
from translation.nginx.servers import build_server
from translation.nginx.snippets.suggestions import Scope, suggestions
from translation.nginx.sources import Source, read_config, source_of, sources_of_host
from translation.nginx.tables.annotations import SNIPPETS, TABLE
from translation.nginx.tables.findings import Finding
from translation.nginx.tables.verdicts import RANKS, Level, Verdict

Risk: TypeAlias = Literal["high", "medium", "low", "none"]
"""`high`: it or one of its paths is not served. `medium`: what clients see differs. `low`: only performance differs."""

PERFORMANCE = frozenset({"timeouts and retries", "bodies and buffers", "balancing", "affinity", "logs and traces"})
"""Groups of annotations that affect performance only."""

REFERRED = ("Service", "Secret", "ConfigMap")
"""Kinds of objects that Ingresses refer to."""

_OBJECTS = {
    **dict.fromkeys(("auth-secret", "auth-tls-secret", "proxy-ssl-secret", "proxy-ssl-verify"), "Secret"),
    **dict.fromkeys(("custom-headers", "auth-proxy-set-headers", "fastcgi-params-configmap"), "ConfigMap"),
}
"""Annotation → the kind of object that it names."""
_NO_CERTIFICATE = (
    "the Secret of a certificate does not exist: clients get the default certificate, as with ingress-nginx"
)
_NONE: Mapping[ObjectKey, tuple[str, ...]] = {}
_DEFAULTS = (
    "proxy-body-size", "ssl-redirect", "http-redirect-code", "hsts", "hsts-max-age", "proxy-connect-timeout",
    "proxy-read-timeout", "proxy-send-timeout", "proxy-next-upstream", "proxy-next-upstream-tries", "proxy-buffering",
    "proxy-request-buffering", "load-balance", "generate-request-id", "use-forwarded-headers",
)  # fmt: skip
"""Keys whose values apply to every path without an annotation."""


@dataclass(frozen=True, slots=True)
class IngressReport:
    """One Ingress.

    Attributes:
        key: Its key.
        level: The worst verdict.
        findings: The verdict on each annotation.
        refused: Why it, or some of its paths, are not served: field and reason.
        suggestions: Replacements of directives in snippets.
        missing: Objects that it refers to and that do not exist, with the consequence.
    """

    key: ObjectKey
    level: Level
    findings: tuple[Finding, ...]
    refused: tuple[tuple[str, str], ...]
    suggestions: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def risk(self) -> Risk:
        """How much attention it needs."""
        if self.refused:
            return "high"
        found = {_risk(each) for each in self.approximate}
        return "medium" if "medium" in found else "low" if found else "none"

    @property
    def is_exact(self) -> bool:
        """Whether it is served as by ingress-nginx, and the objects that it refers to are known."""
        return self.risk == "none" and not self.missing

    @property
    def approximate(self) -> tuple[Finding, ...]:
        """The annotations that are served with a difference."""
        return tuple(each for each in self.findings if each.verdict.level == "approximate")

    def why_not_served(self) -> tuple[str, ...]:
        """Return why it, or some of its paths, respond with 503 or are not served."""
        named = ((path.rpartition("/")[2].rstrip("]"), reason) for path, reason in self.refused)
        reasons = (reason if name in reason else f"{name}: {reason}" for name, reason in named)
        return (*reasons, *self.missing)

    def reasons(self) -> Iterator[tuple[Risk, str, str]]:
        """Yield risk, field and reason of everything that is not exact; the field of an annotation is its path."""
        yield from (("high", path, reason) for path, reason in self.refused)
        refused = {path.rpartition("/")[2].rstrip("]") for path, _ in self.refused}
        for each in self.approximate:
            if each.annotation not in refused:
                yield _risk(each), each.annotation, each.verdict.reason


@dataclass(frozen=True, slots=True)
class HostReport:
    """One host.

    Attributes:
        host: Its name; `_` means requests for hosts without an Ingress.
        level: The worst verdict on its Ingresses.
        ingresses: Its Ingresses, the oldest first.
        causes: Ingresses whose use-regex or rewrite-target turns all paths of the host into patterns.
        changed: The other Ingresses, whose paths become case-insensitive patterns for that reason.
        lost: Path and winner → the Ingresses that also have the path and do not get its requests.
    """

    host: str
    level: Level
    ingresses: tuple[ObjectKey, ...]
    causes: tuple[ObjectKey, ...] = ()
    changed: tuple[ObjectKey, ...] = ()
    lost: Mapping[tuple[str, ObjectKey], tuple[ObjectKey, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """The whole report; lists are sorted, so that two reports can be compared line by line.

    Attributes:
        ingresses: By key.
        hosts: By name.
        config: The verdict on each key of the ConfigMap.
        defaults: The values that apply to paths without an annotation.
        config_read: Whether the ConfigMap is known; otherwise the defaults of ingress-nginx are assumed.
        config_map: The namespace/name of the ConfigMap in the settings; empty without one.
        unread: Files, and Ingresses in them, that cannot be read, with the reason.
        unchecked: Other Ingresses → why they are not part of the report, unless an IngressClass belongs to another
            controller.
    """

    ingresses: tuple[IngressReport, ...]
    hosts: tuple[HostReport, ...]
    config: tuple[tuple[str, Verdict], ...]
    defaults: tuple[tuple[str, str], ...] = ()
    config_read: bool = True
    config_map: str = ""
    unread: tuple[str, ...] = ()
    unchecked: Mapping[ObjectKey, str] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether every Ingress, and the objects that it refers to, are known."""
        return not self.unchecked and not any(each.missing for each in self.ingresses)

    @property
    def level(self) -> Level:
        """The worst verdict."""
        config: Iterable[Level] = (verdict.level for _, verdict in self.config)
        return _worst([*(each.level for each in self.ingresses), *config])


def migration_report(
    items: Iterable[CustomObject],
    view: View,
    options: Options,
    nginx: NginxOptions,
    *,
    read: Collection[str] = REFERRED,
    rejected: Mapping[ObjectKey, tuple[str, ...]] = _NONE,
    unread: tuple[str, ...] = (),
) -> MigrationReport:
    """Return the report on the Ingresses that ingress-nginx serves.

    Args:
        items: The Ingresses.
        view: The objects that they refer to.
        options: The settings.
        nginx: Those of ingress-nginx.
        read: The kinds whose objects are known: only of these, missing ones are reported.
        rejected: Ingress → why a gateway would reject a record of its paths.
        unread: What cannot be read, for the report.
    """
    items = tuple(items)
    served = sorted((item for item in items if is_served(item, view, options, nginx)), key=lambda each: each.meta.key)
    reports = {item.meta.key: _ingress(item, view, options, nginx, read, rejected) for item in served}
    hosts: dict[str, list[ObjectKey]] = {}
    for item in served:
        source = source_of(item, view, options, nginx)
        named = [host_of(rule.host) for rule in source.spec.rules] if source else nginx_hosts(item)
        for host in named:
            hosts.setdefault(host, []).extend([] if source else [item.meta.key])
    levels = {key: report.level for key, report in reports.items()}
    every = (_host(host, sources_of_host(view, options, nginx, host), levels, hosts[host]) for host in sorted(hosts))
    config = read_config(view, nginx)
    defaults = tuple((key, config.text(key)) for key in _DEFAULTS)
    known = nginx.config_map is not None and view.get(ConfigMap, nginx.config_map) is not None
    named = "/".join(nginx.config_map[1:]) if nginx.config_map else ""
    reasons = ((item.meta.key, _why_unchecked(item, view, options, nginx)) for item in items)
    unchecked = {key: why for key, why in reasons if why}
    found = (tuple(reports.values()), tuple(every), tuple(config.verdicts()), defaults, known, named)
    return MigrationReport(*found, unread, dict(sorted(unchecked.items())))


def _why_unchecked(item: CustomObject, view: View, options: Options, nginx: NginxOptions) -> str:
    """Return why an Ingress is not part of the report; empty if it is, or if it belongs to another controller."""
    name = written_class(item)
    if is_served(item, view, options, nginx) or class_is_ours(item, view, options):
        return ""
    if not name:
        return "it has no class; if ingress-nginx serves it, set ingress_nginx.watch_ingress_without_class"
    if view.get(IngressClass, ObjectKey("IngressClass", "", name)) is None:
        return f"IngressClass {name} is unknown; if it belongs to ingress-nginx, set ingress_nginx.ingress_class"
    return ""


def _ingress(
    item: CustomObject,
    view: View,
    options: Options,
    nginx: NginxOptions,
    read: Collection[str],
    rejected: Mapping[ObjectKey, tuple[str, ...]],
) -> IngressReport:
    found = tuple(findings_of(item, view, options, nginx))
    findings = tuple(replace(each, value=_shown(each.value, each.annotation in SNIPPETS)) for each in found)
    builder = Builder(item.meta, view, options)
    source, spec = source_of(item, view, options, nginx), parsed(item, view, options, nginx).spec
    closed = [each for each in closings(source, builder, nginx) if _is_known(each, read)] if source else []
    stricter = ((annotation_path(nginx, each.annotation), each.why) for each in closed if not each.as_nginx)
    by_gateway = (("spec.rules", why) for why in rejected.get(item.meta.key, ()))
    refused = (*refusals(item, builder, nginx), *stricter, *by_gateway)
    levels: list[Level] = [finding.verdict.level for finding in findings]
    snippets = ((finding.annotation, finding.value) for finding in found if finding.annotation in SNIPPETS)
    scope = Scope(_known_variables(item), _hosts(item), _paths(item))
    replaced = (line for name, text in snippets for line in suggestions(name, text, scope))
    return IngressReport(
        item.meta.key,
        "refused" if refused else _worst(levels),
        findings,
        tuple((path, redact_text(why)) for path, why in refused),
        tuple(dict.fromkeys(_shown(line, True) for line in replaced)),
        (
            *(f"{each.annotation}: {each.why}, as with ingress-nginx" for each in closed if each.as_nginx),
            *dict.fromkeys(_missing(item.meta.namespace, spec, view, read)),
            *(without_main(source, builder, nginx) if source else ()),
        ),
    )


def _shown(text: str, is_snippet: bool) -> str:
    """Return a text of an Ingress without credentials: the report is written to be shared."""
    return redact_text(without_arguments(text, REDACTED) if is_snippet else text)


def _known_variables(item: CustomObject) -> dict[str, str]:
    """Return the variables of ingress-nginx whose values are the same for every path of an Ingress."""
    known = {"namespace": item.meta.namespace, "ingress_name": item.meta.name}
    services = [mapping_in(mapping_in(path.get("backend")).get("service")) for path in _path_items(item)]
    names = {str(service.get("name", "")) for service in services}
    ports = {str(mapping_in(service.get("port")).get("number") or "") for service in services}
    for name, values in (("service_name", names), ("service_port", ports)):
        if len(values) == 1 and "" not in values:
            known[name] = values.pop()
    return known


def _path_items(item: CustomObject) -> list[FrozenJson]:
    rules = (mapping_in(mapping_in(rule).get("http")) for rule in list_in(item.spec.get("rules")))
    return [mapping_in(path) for rule in rules for path in list_in(rule.get("paths"))]


def _hosts(item: CustomObject) -> tuple[str, ...]:
    hosts = (mapping_in(rule).get("host") for rule in list_in(item.spec.get("rules")))
    return tuple(dict.fromkeys(host for host in hosts if isinstance(host, str) and host))


def _paths(item: CustomObject) -> tuple[str, ...]:
    """Return the paths of an Ingress as an ApisixRoute has them; nothing if one may be a regular expression."""
    found: list[str] = []
    for each in _path_items(item):
        path = str(each.get("path") or "/")
        if each.get("pathType") == "ImplementationSpecific" and path != "/":
            return ()
        stem = path.rstrip("/")
        found += [path] if each.get("pathType") == "Exact" else [stem, f"{stem}/*"] if stem else ["/*"]
    return tuple(dict.fromkeys(found))


def _is_known(closing: Closing, read: Collection[str]) -> bool:
    """Return whether the kind of object that an annotation names was read."""
    return _OBJECTS.get(closing.annotation, "") in ("", *read)


def _missing(namespace: str, spec: IngressSpec | None, view: View, read: Collection[str]) -> Iterator[str]:
    """Yield what does not exist; Services also if they cannot be known without any, certificates only otherwise."""
    for each in missing_backends(namespace, spec, view) if spec else ():
        if each.code == "ServiceNotFound" and "Service" not in read:
            yield f"{each.message.partition(' does not exist')[0]} was not read: its paths are not checked"
        else:
            yield each.message
    if spec and "Secret" in read and any(True for _ in missing_certificates(namespace, spec, view)):
        yield _NO_CERTIFICATE


def _host(
    host: str, sources: list[Source], levels: dict[ObjectKey, Level], refused: Iterable[ObjectKey] = ()
) -> HostReport:
    """Return the report on a host; Ingresses that are refused completely are not among its sources."""
    keys = tuple(dict.fromkeys((*(source.meta.key for source in sources), *refused)))
    level = _worst([levels.get(key, "exact") for key in keys])
    causes, changed = _patterns(host, sources)
    return HostReport(host, level, keys, causes, changed, _lost(host, sources))


def _patterns(host: str, sources: list[Source]) -> tuple[tuple[ObjectKey, ...], tuple[ObjectKey, ...]]:
    """Return the Ingresses that turn all paths of a host into patterns, and the others, whose paths they change."""
    server = build_server(host, sources)
    if server is None or not server.regex:
        return (), ()
    causes = dict.fromkeys(each.source.meta.key for each in server.locations if each.regex and each.source)
    others = (each for each in sources if not each.canary and each.meta.key not in causes and each.paths(host))
    return tuple(causes), tuple(each.meta.key for each in others)


def _lost(host: str, sources: list[Source]) -> dict[tuple[str, ObjectKey], tuple[ObjectKey, ...]]:
    """Return the paths that an older Ingress serves."""
    taken: dict[tuple[str, bool], ObjectKey] = {}
    found: dict[tuple[str, ObjectKey], dict[ObjectKey, None]] = {}
    for source in sources:
        for path in () if source.canary else source.paths(host):
            key = (path.path or "/", path.path_type == "Exact")
            winner = taken.setdefault(key, source.meta.key)
            if winner != source.meta.key:
                found.setdefault((key[0], winner), {})[source.meta.key] = None
    return {key: tuple(each) for key, each in found.items()}


def _risk(finding: Finding) -> Risk:
    """Return the risk of an annotation that is served with a difference."""
    return "low" if TABLE[finding.annotation].group in PERFORMANCE else "medium"


def _worst(levels: list[Level]) -> Level:
    return max(levels, key=RANKS.__getitem__, default="exact")
