"""The report of `migrate` as JSON, and as text, Markdown and one HTML page made from that document."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Iterator

from apisix_ingress.model.json import JsonObject
from translation.nginx.migration import HostReport, IngressReport, MigrationReport
from translation.nginx.options import CATCH_ALL
from translation.nginx.tables.findings import UNKNOWN

MINIMUM = "3.17"
"""The first version of APISIX with every plugin that the records use."""

_RISKS = ("high", "medium", "low", "none")
_TITLES = {
    "high": "High risk: the Ingress, or a path of it, is not served. Correct these first",
    "medium": "Medium risk: clients or backends see a difference. Decide whether it matters",
    "low": "Low risk: only performance differs",
}
_NEXT = (
    "Correct what is not served, or accept it: each entry names the annotation and the remedy.",
    "Check the cluster: apisix-ingress migrate --preflight.",
    "Enable ingress_nginx beside the running ingress-nginx; the status of Ingresses is not touched.",
    "Compare both gateways: apisix-ingress verify OLD NEW --cluster --class nginx.",
    "Switch DNS or the load balancer, then set ingress_nginx.update_status.",
    "Uninstall ingress-nginx, but keep its IngressClass.",
)
_DEFAULTS = (
    "They apply to every path without an annotation. The provider and the manifests of --write keep them; set them"
    " yourself in manifests that you write by hand."
)
_STYLE = (
    "body{font:15px/1.5 system-ui;margin:2em auto;max-width:70em;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}"
    "td,th{border:1px solid #ccc;padding:.3em .6em;text-align:left;vertical-align:top}"
    ".refused,.high{background:#fdd}.approximate,.medium{background:#ffd}.exact{background:#dfd}"
)


def as_json(report: MigrationReport) -> JsonObject:
    """Return the report as a document."""
    counts = Counter(each.level for each in report.ingresses)
    risks: Counter[str] = Counter(each.risk for each in report.ingresses)
    return {
        "verdict": report.level,
        "minimumApisix": MINIMUM,
        "counts": {level: counts[level] for level in ("exact", "approximate", "refused")},
        "risks": {risk: risks[risk] for risk in _RISKS},
        "reasons": [{"reason": reason, "count": count} for reason, count in _reasons(report)],
        "hosts": [_host(each) for each in report.hosts],
        "ingresses": [_ingress(each) for each in report.ingresses],
        "config": [{"key": key, "verdict": each.level, "reason": each.reason} for key, each in report.config],
        "defaults": dict(report.defaults),
        "nextSteps": list(_NEXT),
    }


def text_lines(report: MigrationReport) -> Iterator[str]:
    """Yield the report as lines for a terminal."""
    for title, lines in _sections(report):
        if title:
            yield f"\n{title}:"
        yield from (f"  {line}" if title else line for line in lines)


def markdown_lines(report: MigrationReport) -> Iterator[str]:
    """Yield the report as Markdown."""
    yield "# Migration from ingress-nginx\n"
    for title, lines in _sections(report):
        if title:
            yield f"## {title}\n"
        yield from (f"  * {line.strip()}" if line.startswith(" ") else f"* {line}" for line in lines)
        yield ""


def as_html(report: MigrationReport) -> str:
    """Return the report as one page without references to others."""
    parts = []
    for title, lines in _sections(report):
        heading = f"<h2>{html.escape(title)}</h2>" if title else ""
        parts.append(f"{heading}<ul>{''.join(_items(list(lines)))}</ul>")
    rows = "".join(
        f"<tr class='{each.level}'><td>{html.escape(_shown(each.host))}<td>{each.level}"
        f"<td>{html.escape(', '.join(_name(key) for key in each.ingresses))}</tr>"
        for each in report.hosts
    )
    table = f"<h2>Every host</h2><table><tr><th>host<th>verdict<th>Ingresses, the oldest first</tr>{rows}</table>"
    return (
        "<!doctype html><meta charset=utf-8><title>Migration from ingress-nginx</title>"
        f"<style>{_STYLE}</style><h1>Migration from ingress-nginx</h1>{''.join(parts)}{table}\n"
    )


def _items(lines: list[str]) -> Iterator[str]:
    """Yield list items; an indented line belongs to the one above it."""
    is_open = False
    for line in lines:
        inner = line.startswith(" ")
        if inner != is_open:
            yield "<ul>" if inner else "</ul>"
        is_open = inner
        yield f"<li>{html.escape(line.strip())}"
    if is_open:
        yield "</ul>"


def _sections(report: MigrationReport) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield title and lines of each section; an indented line belongs to the one above it."""
    yield "", _summary(report)
    if reasons := _reasons(report):
        yield "Why, and for how many Ingresses", [f"{count}x {reason}" for reason, count in reasons]
    for risk, title in _TITLES.items():
        chosen = [each for each in report.ingresses if each.risk == risk]
        if chosen:
            yield f"{title} ({len(chosen)})", [line for each in chosen for line in _lines(each)]
    if noted := [host for host in report.hosts if host.notes]:
        lines = [line for host in noted for line in (_shown(host.host), *(f"  {note}" for note in host.notes))]
        yield f"Hosts on which Ingresses affect each other ({len(noted)})", lines
    if useless := [line for each in report.ingresses for line in _without_effect(each)]:
        yield f"Annotations without effect, as in ingress-nginx ({len(useless)})", useless
    if missing := [(each.key, text) for each in report.ingresses for text in each.missing]:
        yield "Missing objects", [f"{_name(key)}: {text}" for key, text in missing]
    if report.config:
        yield "ConfigMap of ingress-nginx", [f"{key}: {_told(each.level, each.reason)}" for key, each in report.config]
    exact = [_name(each.key) for each in report.ingresses if each.risk == "none"]
    if exact:
        yield f"Served exactly ({len(exact)})", [", ".join(exact)]
    yield "Defaults in effect", [_DEFAULTS, ", ".join(f"{key}: {value}" for key, value in report.defaults)]
    yield "Next steps", [f"{number}. {step}" for number, step in enumerate(_NEXT, 1)]


def _summary(report: MigrationReport) -> Iterator[str]:
    if not report.ingresses:
        yield "No Ingress belongs to ingress-nginx: no IngressClass of the Ingresses has its controller."
        yield "Set ingress_nginx.ingress_class, controller_class or watch_ingress_without_class as its flags were."
        return
    counts = Counter(each.level for each in report.ingresses)
    exact = counts["exact"] + counts["no effect"]
    ingresses, hosts = _count(len(report.ingresses), "Ingress", "es"), _count(len(report.hosts), "host")
    yield (
        f"{ingresses} on {hosts}: {exact} served exactly, "
        f"{counts['approximate']} with a difference, {counts['refused']} not or not completely."
    )
    patterns = sum("pattern" in note for host in report.hosts for note in host.notes)
    lost = sum("is served by" in note for host in report.hosts for note in host.notes)
    yield (
        f"use-regex and rewrite-target change {_count(patterns, 'other Ingress', 'es')}; "
        f"{_count(lost, 'path')} served by an older Ingress. Both are as in ingress-nginx."
    )
    yield f"Requires APISIX {MINIMUM} or newer."


def _count(number: int, noun: str, ending: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else ending}"


def _reasons(report: MigrationReport) -> list[tuple[str, int]]:
    """Return what is not exact, with the number of Ingresses, the most frequent first."""
    found: Counter[str] = Counter()
    for each in report.ingresses:
        texts = [f"{_field(path)}: {reason}" if _is_annotation(path) else reason for path, reason in each.refused]
        told = {_field(path) for path, _ in each.refused}
        texts += [
            f"{item.annotation}: {item.verdict.reason}"
            for item in each.findings
            if item.verdict.level == "approximate" and item.annotation not in told
        ]
        found.update(set(texts))
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


def _lines(ingress: IngressReport) -> Iterator[str]:
    yield _name(ingress.key)
    yield from (f"  {_field(path)}: {reason}" for path, reason in ingress.refused)
    told = {_field(path) for path, _ in ingress.refused}
    for finding in ingress.findings:
        if finding.annotation not in told and finding.verdict.level == "approximate":
            yield f"  {finding.annotation}: {finding.verdict.reason}"
    yield from (f"  instead of {line}" for line in ingress.suggestions)


def _without_effect(ingress: IngressReport) -> Iterator[str]:
    """Yield the annotations that are unknown or have a value that is not valid."""
    for finding in ingress.findings:
        if finding.verdict is UNKNOWN:
            yield f"{_name(ingress.key)}: {finding.annotation} is unknown: check its name"
        elif finding.outcome == "default":
            yield f"{_name(ingress.key)}: {finding.annotation}: {finding.value!r} is not valid: the default applies"


def _field(path: str) -> str:
    """Return the annotation of a path without its prefix; any other path as it is."""
    return path.rpartition("/")[2].rstrip("]") if _is_annotation(path) else path


def _is_annotation(path: str) -> bool:
    return path.startswith("metadata.annotations[")


def _name(key: object) -> str:
    return str(key).removeprefix("Ingress ")


def _shown(host: str) -> str:
    return "every other host" if host == CATCH_ALL else host


def _told(level: str, reason: str) -> str:
    return f"{level}: {reason}" if reason else level


def _host(host: HostReport) -> JsonObject:
    ingresses = [str(key) for key in host.ingresses]
    return {"host": host.host, "verdict": host.level, "ingresses": ingresses, "notes": list(host.notes)}


def _ingress(ingress: IngressReport) -> JsonObject:
    annotations = [
        {
            "annotation": finding.annotation,
            "value": finding.value,
            "verdict": finding.verdict.level,
            "reason": finding.verdict.reason,
        }
        for finding in ingress.findings
    ]
    return {
        "ingress": str(ingress.key),
        "verdict": ingress.level,
        "risk": ingress.risk,
        "annotations": annotations,
        "refused": [{"path": path, "reason": reason} for path, reason in ingress.refused],
        "missing": list(ingress.missing),
        "suggestions": list(ingress.suggestions),
    }
