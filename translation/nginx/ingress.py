"""The problems of one Ingress of ingress-nginx, and the differences in how it is served. Its hosts own the records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.host_claims import aliases_of
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from translation.annotations.reader import FOREIGN
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.outcome import Outcome
from translation.ingress_spec import parse_ingress
from translation.nginx.effects.balancing.canaries import without_main
from translation.nginx.effects.protection.required_objects import closings
from translation.nginx.missing_objects import missing_backends, missing_certificates
from translation.nginx.options import NginxOptions
from translation.nginx.parsing import bad_pattern, bad_wildcard, values_of
from translation.nginx.sources import Source, read_config, source_of, sources_of_service, why_refused
from translation.nginx.tables.annotations import TABLE
from translation.nginx.tables.findings import UNKNOWN, Finding, judged
from translation.nginx.tables.verdicts import approximate, no_effect

_BY_TLS = ("HTTPS", "GRPCS")
_PROTOCOLS = (
    "{} sends requests to the same Service without TLS: gateways do the same, while ingress-nginx may reuse connections"
    " with TLS for them. Set the same value there"
)
_OTHERS = 32
"""Ingresses of a Service whose protocols are compared: thousands may name it."""

_FOREIGN = no_effect("ingress-nginx ignores this annotation of another controller; remove it.")

REFUSED = "NginxNotServed"
DIFFERS = "NginxDiffers"
NO_EFFECT = "NginxNoEffect"


def judge_ingress(
    item: CustomObject, view: View, options: Options, nginx: NginxOptions, *, shows_others: bool = True
) -> Outcome:
    """Return the problems of an Ingress: why it or one of its paths is not served, and what differs.

    Args:
        item: The Ingress.
        view: The objects.
        options: The settings.
        nginx: Those of ingress-nginx.
        shows_others: Whether problems in Secrets and ConfigMaps are among them.
    """
    builder = Builder(item.meta, view, options)
    for path, message in refusals(item, builder, nginx):
        builder.degrade(REFUSED, path, message)
    if shows_others and (source := source_of(item, view, options, nginx)):
        _unusable_objects(source, builder, nginx)
        missing = missing_backends(item.meta.namespace, source.spec, view, is_canary=source.canary)
        for each in (*missing, *missing_certificates(item.meta.namespace, source.spec, view)):
            builder.degrade(each.code, each.path, each.message)
        for why in without_main(source, builder, nginx):
            builder.degrade(REFUSED, annotation_path(nginx, "canary"), why)
    _foreign_hosts(item, builder)
    for finding in findings_of(item, view, options, nginx):
        if finding.verdict.level == "approximate":
            builder.warn(DIFFERS, annotation_path(nginx, finding.annotation), finding.verdict.reason)
        elif finding.verdict.level == "no effect":
            builder.warn(NO_EFFECT, annotation_path(nginx, finding.annotation), _why_ignored(finding))
    return builder.finish()


def _why_ignored(finding: Finding) -> str:
    if finding.verdict is UNKNOWN:
        return "unknown annotation: it has no effect; correct its name or remove it"
    if finding.annotation not in TABLE:
        return finding.verdict.reason
    if finding.outcome == "default":
        return "the value is not valid, so the default applies, as with ingress-nginx; correct or remove it"
    return f"has no effect: {finding.verdict.reason}"


def findings_of(item: CustomObject, view: View, options: Options, nginx: NginxOptions) -> Iterator[Finding]:
    """Yield the verdict on each annotation of an Ingress, also where it depends on other Ingresses."""
    for finding in judged(values_of(item.meta.annotations, nginx.prefix), strict=nginx.strict):
        other = _other_protocol(item, finding, view, options, nginx)
        yield replace(finding, verdict=approximate(_PROTOCOLS.format(other))) if other else finding
    for name, value in sorted(item.meta.annotations.items()):
        if name.startswith(FOREIGN) and not name.startswith(f"{nginx.prefix}/"):
            yield Finding(name, value, _FOREIGN)


def _other_protocol(
    item: CustomObject, finding: Finding, view: View, options: Options, nginx: NginxOptions
) -> ObjectKey | None:
    """Return an Ingress with a plain connection to a backend that another Ingress reaches by TLS, or None."""
    if finding.annotation != "backend-protocol" or finding.value.strip().upper() not in _BY_TLS:
        return None
    source = source_of(item, view, options, nginx)
    for backend in dict.fromkeys(source.backends()) if source else ():
        others = sources_of_service(view, options, nginx, *backend[:2])
        for other in islice(others, _OTHERS):
            if other.values.text("backend-protocol").upper() not in _BY_TLS and backend in other.backends():
                return other.meta.key
    return None


def refusals(item: CustomObject, builder: Builder, nginx: NginxOptions) -> Iterator[tuple[str, str]]:
    """Yield field and reason of each problem for which an Ingress, or some of its paths, are not served."""
    values = values_of(item.meta.annotations, nginx.prefix)
    config = read_config(builder.view, nginx)
    spec = parse_ingress(builder, item.spec)
    findings = tuple(judged(values, strict=nginx.strict))
    if why := why_refused(findings, config):
        yield "metadata.annotations", f"{why}: the Ingress is not served, as with ingress-nginx; correct or remove it"
        return
    if spec and (pattern := bad_pattern(spec, values)):
        yield "spec.rules", f"{pattern!r} is not a regular expression: the Ingress is not served; correct the path"
    if spec and (host := bad_wildcard(spec, values)):
        yield "spec.rules", f"{host} is a wildcard, which has no www: remove the annotation from-to-www-redirect"
    yield from _closed(findings, nginx)


def _unusable_objects(source: Source, builder: Builder, nginx: NginxOptions) -> None:
    """Report annotations whose Secret, ConfigMap or address cannot be used."""
    for each in closings(source, builder, nginx):
        nginx_too = ", as with ingress-nginx" if each.as_nginx else ""
        builder.degrade(REFUSED, annotation_path(nginx, each.annotation), f"{each.why}{nginx_too}")


def _foreign_hosts(item: CustomObject, builder: Builder) -> None:
    """Report the hosts of rules and aliases that belong to other namespaces."""
    if builder.options.host_ownership == "shared":
        return
    for index, rule in enumerate(map(mapping_in, list_in(item.spec.get("rules")))):
        builder.usable([str(rule.get("host") or "")], f"spec.rules[{index}].host")
    if item.spec.get("defaultBackend") and not item.spec.get("rules"):
        builder.usable([""], "spec.defaultBackend")
    builder.usable(aliases_of(item), "metadata.annotations")
    if any("~" in text for name, text in item.meta.annotations.items() if name.endswith("/server-alias")):
        message = "server-alias: names by regular expression are not served with kubernetes.host_ownership; list them"
        builder.warn(DIFFERS, "metadata.annotations", message)


def annotation_path(nginx: NginxOptions, annotation: str) -> str:
    """Return the path of an annotation in the object; one of another controller is given with its prefix."""
    name = annotation if annotation.startswith(FOREIGN) else f"{nginx.prefix}/{annotation}"
    return f"metadata.annotations[{name}]"


def _closed(findings: tuple[Finding, ...], nginx: NginxOptions) -> Iterator[tuple[str, str]]:
    for finding in findings:
        path = annotation_path(nginx, finding.annotation)
        if finding.verdict.level == "refused" and finding.verdict.protects:
            yield path, f"the paths respond with 503: {finding.verdict.reason}"
        elif finding.outcome == "closed":
            yield path, "the value is not valid: the paths respond with 503; correct it"
        elif finding.verdict.level == "refused":
            yield path, finding.verdict.reason
