"""Small pieces of Markdown: code, cells and tables."""

from collections.abc import Iterable, Sequence


def code(text: object) -> str:
    """Return text as code; a bar would end the cell of a table."""
    shown = str(text).replace("|", r"\|")
    return f"`{shown}`"


def cell(text: str) -> str:
    """Return text for a cell of a table: one line, without a bar that ends it."""
    return " ".join(text.split()).replace("|", r"\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
