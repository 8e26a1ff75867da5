"""The registry of codes: complete, in use, and with permanent numbers."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from apisix_ingress.model.problem_codes.table import CODES, NUMBERS, find_code

PROJECT = Path(__file__).parents[4]
SOURCES = (
    "translation",
    "providers",
    "apisix_ingress/diagnostics/collect/offline.py",
    "apisix_ingress/lint",
    "apisix_ingress/webhook",
)
WORD = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+")
TELLERS = {"error", "warn", "degrade", "missing", "note", "Problem", "_shown", "_with_code"}
"""What is called with a code as its first text, or as one of them."""
KINDS = re.compile(r"Apisix\w+|Ingress\w*|EndpointSlice|ConfigMap|ReferenceGrant")


def trees() -> Iterator[ast.Module]:
    for source in SOURCES:
        path = PROJECT / source
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            yield ast.parse(file.read_text(encoding="utf-8"))


def words(node: ast.AST) -> Iterator[str]:
    """Yield the words in a piece of code that may be codes."""
    for each in ast.walk(node):
        value = each.value if isinstance(each, ast.Constant) else None
        if isinstance(value, str) and (WORD.fullmatch(value) or value in CODES):
            yield value


def told() -> set[str]:
    """Return the words that are handed to whoever notes a problem, by themselves or through a constant."""
    found: set[str] = set()
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in TELLERS:
                    found.update(word for argument in node.args for word in words(argument))
    return {word for word in found if not KINDS.fullmatch(word)}


def test_every_code_that_is_told_has_an_entry() -> None:
    assert told() - CODES.keys() == set()


def test_every_entry_is_used() -> None:
    used = {word for tree in trees() for word in words(tree)}
    assert CODES.keys() - used == set()


def test_constants_that_hold_a_code_have_an_entry() -> None:
    found = {
        word
        for tree in trees()
        for node in tree.body
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "CONFLICT" for target in node.targets)
        for word in words(node)
    }
    assert found == {"HostConflict"}
    assert found <= CODES.keys()


def test_numbers_are_of_one_form_and_in_order() -> None:
    assert [number for number in NUMBERS if not re.fullmatch(r"AIX\d{4}", number)] == []
    assert list(NUMBERS) == sorted(NUMBERS)
    assert len(NUMBERS) == len(CODES)


def test_every_entry_says_what_happens_and_what_to_do() -> None:
    for code in CODES.values():
        assert not code.title.endswith(".")
        assert code.effect.endswith(".")
        assert code.remedy.endswith((".", ")."))


@pytest.mark.parametrize("text", ["AIX0101", "aix0101", "ServiceNotFound", "servicenotfound"])
def test_code_is_found_by_number_and_word(text: str) -> None:
    assert str(find_code(text)) == "AIX0101 ServiceNotFound"


@pytest.mark.parametrize(
    ("text", "want"),
    [("ServiceNotFund", "did you mean AIX0101 ServiceNotFound?"), ("?", "codes look like AIX0101")],
)
def test_unknown_code_names_the_nearest(text: str, want: str) -> None:
    with pytest.raises(ValueError, match=re.escape(want)):
        find_code(text)
