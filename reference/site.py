"""mkdocs hooks: differences between the site and the files in the repository.

A link that leads out of `docs/` (to code, tests, examples) works in the repository but not on the site, so the site
shows only its text. A link that `--strict` reports is therefore broken.
"""

import re
from pathlib import Path
from typing import Protocol

DOCS = Path(__file__).parents[1] / "docs"
LINK = re.compile(r"\[([^\]]*)\]\((\.\./[^)\s#]+)(#[^)\s]*)?\)")


class Page(Protocol):
    """The part of mkdocs' page that is used here."""

    @property
    def file(self) -> "File":
        """Where it comes from."""


class File(Protocol):
    """The part of mkdocs' file that is used here."""

    src_uri: str


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Return the text of a page; mkdocs calls this for each page."""
    return without_outside_links(markdown, DOCS / page.file.src_uri)


def without_outside_links(text: str, source: Path, docs: Path = DOCS) -> str:
    """Return the text of a page, with links to files outside `docs/` replaced by their text."""

    def words(match: re.Match[str]) -> str:
        target = (source.parent / match[2]).resolve()
        return match[1] if target.exists() and not target.is_relative_to(docs) else match[0]

    return LINK.sub(words, text)
