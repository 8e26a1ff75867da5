"""The report of `migrate` as one page that needs no other file, with the stylesheet of the status page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from markupsafe import Markup

from apisix_ingress import __version__
from apisix_ingress.diagnostics.reports.migration import as_json, sections, summary_lines
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.secrets.redaction import escape
from apisix_ingress.statuspage.render import asset, render
from translation.nginx.migration import MigrationReport

_TONES: Mapping[str, str] = {"exact": "good", "approximate": "warn", "refused": "bad", "no effect": "idle"}
_NOT_CHECKED = ("Not read", "Not part of this report")
_SHOWN_ELSEWHERE = ("What to do", "Replacements of snippets", *_NOT_CHECKED)


def migration_page(report: MigrationReport) -> str:
    """Return the report as a page."""
    data = _printable(as_json(report))
    parts = [(title, [_printable(line.strip()) for line in lines]) for title, lines in sections(report) if title]
    return render(
        "migration.html",
        data=data,
        summary=list(map(escape, summary_lines(report))),
        missing=[part for part in parts if part[0].startswith(_NOT_CHECKED)],
        sections=[part for part in parts if not part[0].startswith(_SHOWN_ELSEWHERE)],
        tiles=[_tile("Hosts", "#hosts", data["hosts"]), _tile("Ingresses", "#ingresses", data["ingresses"])],
        tones=_TONES,
        style=_style(),
        anchor=_anchor,
        marked=_marked,
        version=__version__,
    ).decode()


def _printable(value: Any) -> Any:
    """Return a document of JSON without control characters, which could change how other text looks."""
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, list):
        return [_printable(item) for item in value]
    return {name: _printable(item) for name, item in value.items()} if isinstance(value, dict) else value


def _tile(title: str, href: str, items: Iterable[JsonObject]) -> JsonObject:
    """Return a number with the share of each verdict."""
    tones = Counter(_TONES[item["verdict"]] for item in items)
    shares = {tone: tones[tone] for tone in ("bad", "warn", "idle", "good")}
    return {"title": title, "href": href, "total": sum(shares.values()), **shares}


def _anchor(ingress: str) -> str:
    """Return the id of the part about an Ingress."""
    return ingress.replace(" ", "-").replace("/", ".").lower()


def _style() -> Markup:
    return Markup(asset("page.css").decode())  # a file of this package


def _marked(text: str) -> Markup:
    """Return a text in which parts between backticks are code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return Markup.escape(text)
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(part) if place % 2 else Markup.escape(part) for place, part in enumerate(parts))
