"""The report of `migrate` as text, JSON, Markdown and one HTML page. `translation.nginx` defines its content."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator

from apisix_ingress.model.json import JsonObject
from translation.nginx.migration import HostReport, IngressReport, MigrationReport

MINIMUM = "3.17"
"""The first version of APISIX with every plugin that the records use."""

_NEXT = (
    "Enable ingress_nginx beside the running ingress-nginx; the status of Ingresses is not touched.",
    "Compare both gateways: apisix-ingress verify OLD NEW --cluster --class nginx.",
    "Switch DNS or the load balancer, then set ingress_nginx.update_status.",
    "Uninstall ingress-nginx, but keep its IngressClass.",
)

_STYLE = (
    "body{font:15px/1.5 system-ui;margin:2em auto;max-width:70em;padding:0 1em}"
    "table{border-collapse:collapse;width:100%}"
    "td,th{border:1px solid #ccc;padding:.3em .6em;text-align:left;vertical-align:top}"
    ".refused{background:#fdd}.approximate{background:#ffd}.exact{background:#dfd}"
)


def as_json(report: MigrationReport) -> JsonObject:
    """Return the report as a document."""
    return {
        "verdict": report.level,
        "minimumApisix": MINIMUM,
        "counts": dict(Counter(each.level for each in report.ingresses)),
        "hosts": [_host(each) for each in report.hosts],
        "ingresses": [_ingress(each) for each in report.ingresses],
        "config": [{"key": key, "verdict": each.level, "reason": each.reason} for key, each in report.config],
    }


def text_lines(report: MigrationReport) -> Iterator[str]:
    """Yield the report as lines for a terminal."""
    yield _summary(report)
    for host in report.hosts:
        yield f"\n{host.host}: {host.level}"
        yield from (f"  note: {note}" for note in host.notes)
    for ingress in _ranked(report):
        yield f"\n{ingress.key}: {ingress.level}"
        yield from (f"  {line}" for line in _lines(ingress))
    if report.config:
        yield "\nConfigMap"
        yield from (f"  {key}: {_told(each.level, each.reason)}" for key, each in report.config)
    yield "\nNext steps"
    yield from (f"  {number}. {step}" for number, step in enumerate(_NEXT, 1))


def markdown_lines(report: MigrationReport) -> Iterator[str]:
    """Yield the report as Markdown."""
    yield f"# Migration from ingress-nginx\n\n{_summary(report)}\n\n## Hosts\n"
    yield "| host | verdict | Ingresses | notes |\n|---|---|---|---|"
    for host in report.hosts:
        ingresses = ", ".join(map(str, host.ingresses))
        yield f"| {host.host} | {host.level} | {ingresses} | {_cell(' '.join(host.notes))} |"
    yield "\n## Ingresses\n"
    for ingress in _ranked(report):
        yield f"### {ingress.key}: {ingress.level}\n"
        yield from (f"* {line}" for line in _lines(ingress))
        yield ""
    if report.config:
        yield "## ConfigMap\n"
        yield from (f"* `{key}`: {_told(each.level, each.reason)}" for key, each in report.config)
        yield ""
    yield "## Next steps\n"
    yield from (f"{number}. {step}" for number, step in enumerate(_NEXT, 1))


def as_html(report: MigrationReport) -> str:
    """Return the report as one self-contained page."""
    hosts = "".join(
        f"<tr class='{_word(host.level)}'><td>{html.escape(host.host)}<td>{host.level}"
        f"<td>{html.escape(', '.join(map(str, host.ingresses)))}<td>{_items(host.notes)}</tr>"
        for host in report.hosts
    )
    ingresses = "".join(
        f"<tr class='{_word(each.level)}'><td>{html.escape(str(each.key))}<td>{each.level}"
        f"<td>{_items(tuple(_lines(each)))}</tr>"
        for each in _ranked(report)
    )
    config = _items(tuple(f"{key}: {_told(each.level, each.reason)}" for key, each in report.config))
    return (
        f"<!doctype html><meta charset=utf-8><title>Migration from ingress-nginx</title><style>{_STYLE}</style>"
        f"<h1>Migration from ingress-nginx</h1><p>{html.escape(_summary(report))}</p>"
        f"<h2>Hosts</h2><table><tr><th>host<th>verdict<th>Ingresses<th>notes</tr>{hosts}</table>"
        f"<h2>Ingresses</h2><table><tr><th>Ingress<th>verdict<th>details</tr>{ingresses}</table>"
        f"<h2>ConfigMap</h2>{config}<h2>Next steps</h2>{_items(_NEXT)}\n"
    )


def _summary(report: MigrationReport) -> str:
    counts = Counter(each.level for each in report.ingresses)
    parts = ", ".join(f"{count} {level}" for level, count in sorted(counts.items())) or "none"
    return (
        f"{len(report.ingresses)} Ingresses on {len(report.hosts)} hosts: {parts}. Overall verdict: {report.level}. "
        f"Requires APISIX {MINIMUM} or newer."
    )


def _ranked(report: MigrationReport) -> list[IngressReport]:
    """Return the Ingresses, those at risk first."""
    order = {"refused": 0, "approximate": 1, "exact": 2, "no effect": 3}
    return sorted(report.ingresses, key=lambda each: (order[each.level], each.key))


def _lines(ingress: IngressReport) -> Iterator[str]:
    yield from (f"{path}: {reason}" for path, reason in ingress.refused)
    told = {path.rpartition("/")[2].rstrip("]") for path, _ in ingress.refused}
    for finding in ingress.findings:
        if finding.annotation not in told:
            yield f"{finding.annotation}: {_told(finding.verdict.level, finding.verdict.reason)}"
    yield from (f"instead of {line}" for line in ingress.suggestions)


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
    refused = [{"path": path, "reason": reason} for path, reason in ingress.refused]
    return {
        "ingress": str(ingress.key),
        "verdict": ingress.level,
        "annotations": annotations,
        "refused": refused,
        "suggestions": list(ingress.suggestions),
    }


def _items(lines: tuple[str, ...]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(line)}' for line in lines)}</ul>" if lines else ""


def _word(level: str) -> str:
    return level.replace(" ", "-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
