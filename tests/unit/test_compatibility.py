"""The page on compatibility: every test and golden case that it names exists, and every row names some."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
ORACLE = PROJECT / "tests" / "golden" / "oracle"
PAGE = (PROJECT / "docs" / "compatibility.md").read_text(encoding="utf-8")
NAMES = re.compile(r"`([^`]+)`")
WITHOUT_TEST = ("not supported", "there are no threads")
DEFECTS_OF_MAINTENANCE = {10, 11, 43, 49, 53, 54, 56, 57}
"""Defects of 1.8 that touch neither traffic, nor records, nor status."""


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table under a heading, without its head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


ROWS = [*rows("Acceptance"), *rows("Defects of 1.8")]


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the tests of a module."""
    tree = ast.parse((PROJECT / path).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


def unknown(cell: str) -> Iterator[str]:
    """Yield missing names in a cell: tests after their file, golden cases by pattern."""
    path = ""
    for name in NAMES.findall(cell):
        if name.endswith(".py"):
            path = name
            if not (PROJECT / path).is_file():
                yield path
        elif name.startswith("test_"):
            if name not in names_in(path):
                yield f"{path}::{name}"
        elif not list(ORACLE.parent.glob(f"*/{name}/in.yaml")):
            yield name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[1]}")
def test_every_name_in_a_row_exists(row: list[str]) -> None:
    cell = row[-1]
    assert NAMES.findall(cell) or cell.startswith(WITHOUT_TEST)
    assert list(unknown(cell)) == []


def test_every_defect_has_a_row() -> None:
    got = [int(row[0]) for row in rows("Defects of 1.8")]
    assert got == [number for number in range(1, 66) if number not in DEFECTS_OF_MAINTENANCE]
