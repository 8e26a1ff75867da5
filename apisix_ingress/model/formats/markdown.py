"""Texts of others in Markdown: they form no links, images, HTML, headings or table cells."""

from __future__ import annotations

import html

from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.secrets.redaction import escape

_TICKS = TextPattern("`+")
_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\[]|"})


def prose(text: str) -> str:
    """Return a sentence as Markdown; only parts between backticks are formatted, as code."""
    return html.escape(escape(text), quote=False).translate(_SIGNS)


def literal(text: str) -> str:
    """Return a text as Markdown without any formatting."""
    return prose(text).replace("`", "\\`")


def code(text: str) -> str:
    """Return a text as code, also in a table cell."""
    shown = escape(text).replace("|", "\\|")
    ticks = fence_of([shown], shortest=1)
    padding = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{padding}{shown}{padding}{ticks}"


def fence_of(lines: list[str], shortest: int = 3) -> str:
    """Return backticks that delimit lines of code: more than the code contains in a row."""
    return "`" * max(shortest, 1 + max((len(found) for line in lines for found in _TICKS.findall(line)), default=0))
