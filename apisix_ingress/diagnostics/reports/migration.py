"""The report of `migrate` as JSON, text and Markdown; the status page has the template of its HTML page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from apisix_ingress.model.formats.markdown import prose
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from translation.nginx.migration import HostReport, IngressReport, MigrationReport, Risk
from translation.nginx.options import CATCH_ALL
from translation.nginx.tables.findings import UNKNOWN

MINIMUM = "3.17"
"""The first version of APISIX with every plugin that the records use."""

_RISKS = ("high", "medium", "low", "none")
_TITLES: Mapping[Risk, str] = {
    "high": "High risk: the Ingress or one of its paths is not served. Correct these first",
    "medium": "Medium risk: clients or backends see a difference. Decide whether it matters",
    "low": "Low risk: only performance differs",
}
_NEXT = (
    "Check the cluster: apisix-ingress migrate --preflight.",
    "Enable ingress_nginx while ingress-nginx is running; the status of Ingresses is not changed.",
    "Compare both gateways: apisix-ingress verify OLD NEW --live --class nginx.",
    "Switch DNS or the load balancer, then set ingress_nginx.update_status.",
    "Uninstall ingress-nginx, but keep its IngressClass.",
)
_NO_CONFIG = (
    "The ConfigMap of ingress-nginx is unknown: this report assumes its defaults. Name it with --config-map"
    " NAMESPACE/NAME (usually ingress-nginx/ingress-nginx-controller); snippets, sizes and timeouts depend on it."
)
_OTHER_CONFIG = (
    "ConfigMap {} is not among the objects that were read: this report assumes the defaults of ingress-nginx. Add it to"
    " the manifests, or correct --config-map; snippets, sizes and timeouts depend on it."
)
_DEFAULTS = (
    "They apply to every path without an annotation. The provider and the manifests of --write keep them; set them"
    " yourself in manifests that you write by hand."
)


def as_json(report: MigrationReport) -> JsonObject:
    """Return the report as a document."""
    counts = Counter(each.level for each in report.ingresses)
    risks: Counter[str] = Counter(each.risk for each in report.ingresses)
    return {
        "verdict": report.level,
        "complete": report.is_complete and not report.unread,
        "minimumApisix": MINIMUM,
        "counts": {level: counts[level] for level in ("exact", "approximate", "refused", "no effect")},
        "risks": {risk: risks[risk] for risk in _RISKS},
        "reasons": [{"reason": reason, "count": count} for reason, count in _reasons(report)],
        "hosts": [_host(each) for each in report.hosts],
        "ingresses": [_ingress(each) for each in report.ingresses],
        "configMapRead": report.config_read,
        "config": [{"key": key, "verdict": each.level, "reason": each.reason} for key, each in report.config],
        "defaults": dict(report.defaults),
        "unread": list(report.unread),
        "unchecked": [{"ingress": str(key), "reason": why} for key, why in report.unchecked.items()],
        "nextSteps": list(_next_steps(report)),
    }


def text_lines(report: MigrationReport) -> Iterator[str]:
    """Yield the report as lines for a terminal."""
    for title, lines in sections(report):
        if title:
            yield ""
            yield f"{title}:"
        yield from (f"  {line}" if title else line for line in lines)


def markdown_lines(report: MigrationReport) -> Iterator[str]:
    """Yield the report as Markdown."""
    yield "# Migration from ingress-nginx"
    yield ""
    for title, lines in sections(report):
        if title:
            yield f"## {title}"
            yield ""
        yield from (f"  * {prose(line.strip())}" if line.startswith(" ") else f"* {prose(line)}" for line in lines)
        yield ""


def sections(report: MigrationReport) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield title and lines of each section; an indented line belongs to the one above it."""
    yield "", summary_lines(report)
    if report.unread:
        yield f"Not read ({len(report.unread)})", report.unread
    if report.unchecked:
        yield f"Not part of this report ({len(report.unchecked)})", _grouped(_unchecked(report))
    if report.ingresses:
        yield "What to do, in this order", [f"{number}. {step}" for number, step in enumerate(_next_steps(report), 1)]
    for risk, title in _TITLES.items():
        if chosen := _by_reason(report, risk):
            concerned = {key for keys in chosen.values() for key in keys}
            yield f"{title} ({_count(len(concerned), 'Ingress', 'es')})", _grouped(chosen)
    if missing := _missing(report):
        yield "Missing objects", _grouped(missing)
    if replaced := _replacements(report):
        yield "Replacements of snippets", _grouped(replaced)
    if noted := [host for host in report.hosts if host.changed or host.lost]:
        lines = [line for host in noted for line in (_shown(host.host), *(f"  {note}" for note in _notes(host)))]
        yield f"Hosts on which Ingresses affect each other, as with ingress-nginx ({len(noted)})", lines
    if useless := _without_effect(report):
        yield "Annotations without effect", _grouped(useless)
    if report.config:
        yield (
            "ConfigMap of ingress-nginx",
            [f"{key}: {_verdict(each.level, each.reason)}" for key, each in report.config],
        )
    if exact := [each.key for each in report.ingresses if each.is_exact]:
        yield f"Served exactly ({len(exact)})", _by_namespace(exact)
    yield "Defaults in effect", [_DEFAULTS, ", ".join(f"{key}: {value}" for key, value in report.defaults)]


def _next_steps(report: MigrationReport) -> Iterator[str]:
    """Yield the steps of the migration, in order."""
    risks = Counter(each.risk for each in report.ingresses)
    if risks["high"]:
        yield f"Correct {_count(risks['high'], 'Ingress', 'es')} with a high risk, or accept that paths are not served."
    if risks["medium"]:
        yield f"Decide whether the differences of {_count(risks['medium'], 'Ingress', 'es')} with a medium risk matter."
    yield from _NEXT


_Groups = Mapping[str, Sequence[ObjectKey]]
"""Text → the Ingresses that it is about."""


def _grouped(groups: _Groups) -> Iterator[str]:
    """Yield texts with their number of Ingresses, the most frequent first, and below each the Ingresses."""
    for text, keys in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"{len(keys)}x {text}"
        yield from (f"  {line}" for line in _by_namespace(keys))


def _by_namespace(keys: Iterable[ObjectKey]) -> Iterator[str]:
    """Yield a line for each namespace."""
    for _, group in groupby(sorted(keys), key=lambda key: key.namespace):
        yield ", ".join(map(_name, group))


def _by_reason(report: MigrationReport, wanted: Risk) -> _Groups:
    """Return what is not exact, with a risk."""
    found: dict[str, dict[ObjectKey, None]] = {}
    for each in report.ingresses:
        for risk, path, reason in each.reasons():
            if risk == wanted:
                field = _field(path)
                found.setdefault(reason if field.startswith("metadata.") else f"{field}: {reason}", {})[each.key] = None
    return {text: tuple(keys) for text, keys in found.items()}


def _unchecked(report: MigrationReport) -> _Groups:
    found: dict[str, list[ObjectKey]] = {}
    for key, why in report.unchecked.items():
        found.setdefault(why, []).append(key)
    return found


def _missing(report: MigrationReport) -> _Groups:
    found: dict[str, list[ObjectKey]] = {}
    for each in report.ingresses:
        for text in each.missing:
            found.setdefault(text, []).append(each.key)
    return found


def _replacements(report: MigrationReport) -> _Groups:
    found: dict[str, list[ObjectKey]] = {}
    for each in report.ingresses:
        for text in each.suggestions:
            found.setdefault(text, []).append(each.key)
    return found


def _notes(host: HostReport) -> Iterator[str]:
    """Yield how Ingresses of a host affect each other."""
    if host.changed:
        causes, changed = (", ".join(map(_name, keys)) for keys in (host.causes, host.changed))
        yield f"use-regex or rewrite-target on {causes} turns the paths of {changed} into case-insensitive patterns"
    for (path, winner), losers in host.lost.items():
        yield f"{path} is served by {_name(winner)}, the oldest, not by {', '.join(map(_name, losers))}"


def summary_lines(report: MigrationReport) -> Iterator[str]:
    """Yield what the report covers, in sentences."""
    if not report.ingresses:
        yield "The report covers no Ingress: no Ingress that was read belongs to ingress-nginx."
        if report.unchecked or not report.unread:
            yield "Set ingress_nginx.ingress_class, controller_class or watch_ingress_without_class as in its flags."
        return
    counts = Counter(each.level for each in report.ingresses)
    exact = sum(each.is_exact for each in report.ingresses)
    unknown = sum(bool(each.missing) for each in report.ingresses)
    ingresses, hosts = _count(len(report.ingresses), "Ingress", "es"), _count(len(report.hosts), "host")
    yield (
        f"{ingresses} on {hosts}: {exact} served exactly, "
        f"{counts['approximate']} with a difference, {counts['refused']} not served completely"
        f"{f', {unknown} with missing objects' if unknown else ''}."
    )
    patterns = sum(len(host.changed) for host in report.hosts)
    lost = sum(len(losers) for host in report.hosts for losers in host.lost.values())
    yield (
        f"use-regex and rewrite-target change {_count(patterns, 'other Ingress', 'es')}; {_count(lost, 'path')} served"
        " by an older Ingress. ingress-nginx does the same."
    )
    yield f"Requires APISIX {MINIMUM} or newer."
    if not report.config_read:
        yield _OTHER_CONFIG.format(report.config_map) if report.config_map else _NO_CONFIG


def _count(number: int, noun: str, ending: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else ending}"


def _reasons(report: MigrationReport) -> list[tuple[str, int]]:
    """Return what is not exact, with the number of Ingresses, the most frequent first."""
    found = [(text, len(keys)) for risk in _TITLES for text, keys in _by_reason(report, risk).items()]
    return sorted(found, key=lambda item: (-item[1], item[0]))


def _without_effect(report: MigrationReport) -> _Groups:
    """Return the annotations without effect, with the reason."""
    found: dict[str, list[ObjectKey]] = {}
    for each in report.ingresses:
        for finding in each.findings:
            name, reason = finding.annotation, finding.verdict.reason
            if finding.verdict is UNKNOWN:
                found.setdefault(f"{name} is unknown: check its name", []).append(each.key)
            elif finding.outcome == "default":
                found.setdefault(f"{name}: {finding.value!r} is not valid: the default applies", []).append(each.key)
            elif finding.verdict.level == "no effect":
                found.setdefault(f"{name}: {reason}", []).append(each.key)
    return found


def _field(path: str) -> str:
    """Return the annotation of a path without its prefix; any other path as it is."""
    return path.rpartition("/")[2].rstrip("]") if _is_annotation(path) else path


def _is_annotation(path: str) -> bool:
    return path.startswith("metadata.annotations[")


def _name(key: object) -> str:
    return str(key).removeprefix("Ingress ")


def _shown(host: str) -> str:
    return "every other host" if host == CATCH_ALL else host


def _verdict(level: str, reason: str) -> str:
    return f"{level}: {reason}" if reason else level


def _host(host: HostReport) -> JsonObject:
    ingresses = [str(key) for key in host.ingresses]
    return {"host": host.host, "verdict": host.level, "ingresses": ingresses, "notes": list(_notes(host))}


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
