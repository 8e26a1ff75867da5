"""Hooks of mkdocs: what the site does otherwise than the files in the repository.

A link that leads out of `docs/` (to code, tests, examples) works where the repository is shown and not on the site:
there only its text is left. So what `--strict` complains about is really broken.
"""

import re
from pathlib import Path
from typing import Protocol

DOCS = Path(__file__).parents[1] / "docs"
LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)\s#]+)(#[^)\s]*)?\)")


class Page(Protocol):
    """What is used of mkdocs' page."""

    @property
    def file(self) -> "File":
        """Where it comes from."""


class File(Protocol):
    """What is used of mkdocs' file."""

    src_uri: str


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Called by mkdocs for each page; return its text."""
    return without_outside_links(markdown, DOCS / page.file.src_uri)


def without_outside_links(text: str, source: Path, docs: Path = DOCS) -> str:
    """Return the text of a page with links to files outside of the documents replaced by their words."""

    def words(match: re.Match[str]) -> str:
        target = (source.parent / match[2]).resolve()
        return match[1] if target.exists() and not target.is_relative_to(docs) else match[0]

    return LINK.sub(words, text)
