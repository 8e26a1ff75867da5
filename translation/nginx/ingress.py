"""The problems of one Ingress of ingress-nginx, and the differences in how it is served. Its hosts own the records."""

from __future__ import annotations

from collections.abc import Iterator

from apisix_ingress.model.json import list_in, mapping_in
from apisix_ingress.model.network.host_claims import aliases_of
from apisix_ingress.model.objects import CustomObject
from apisix_ingress.state.view import View
from translation.core.builder import Builder
from translation.core.options import Options
from translation.core.result import Translation
from translation.ingress_spec import parse_ingress
from translation.nginx.options import NginxOptions
from translation.nginx.parsing import bad_pattern, bad_wildcard, values_of
from translation.nginx.sources import read_config, why_refused
from translation.nginx.tables.findings import Finding, judged

REFUSED = "NginxNotServed"
DIFFERS = "NginxDiffers"


def judge_ingress(item: CustomObject, view: View, options: Options, nginx: NginxOptions) -> Translation:
    """Return the problems of an Ingress: why it or one of its paths is not served, and what differs."""
    builder = Builder(item.meta, view, options)
    for path, message in refusals(item, builder, nginx):
        builder.degrade(REFUSED, path, message)
    _foreign_hosts(item, builder)
    for finding in judged(values_of(item.meta.annotations, nginx.prefix), strict=nginx.strict):
        if finding.verdict.level == "approximate":
            builder.warn(DIFFERS, annotation_path(nginx, finding), finding.verdict.reason)
    return builder.finish()


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


def _foreign_hosts(item: CustomObject, builder: Builder) -> None:
    """Report the hosts of rules and aliases that belong to other namespaces."""
    if builder.options.host_ownership == "shared":
        return
    for index, rule in enumerate(map(mapping_in, list_in(item.spec.get("rules")))):
        builder.usable([str(rule.get("host") or "")], f"spec.rules[{index}].host")
    if item.spec.get("defaultBackend") and not item.spec.get("rules"):
        builder.usable([""], "spec.defaultBackend")
    builder.usable(aliases_of(item), "metadata.annotations")


def annotation_path(nginx: NginxOptions, finding: Finding) -> str:
    """Return the path of an annotation in the object."""
    return f"metadata.annotations[{nginx.prefix}/{finding.annotation}]"


def _closed(findings: tuple[Finding, ...], nginx: NginxOptions) -> Iterator[tuple[str, str]]:
    for finding in findings:
        if finding.outcome == "closed":
            yield annotation_path(nginx, finding), "the value is not valid: the paths respond with 503; correct it"
        elif finding.verdict.level == "refused" and finding.verdict.protects:
            yield annotation_path(nginx, finding), f"the paths respond with 503: {finding.verdict.reason}"
        elif finding.verdict.level == "refused":
            yield annotation_path(nginx, finding), finding.verdict.reason
