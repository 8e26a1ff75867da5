"""The registry of codes: complete, in use, and with permanent numbers."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import crds
from apisix_ingress.model.problem_codes.table import CODES, NUMBERS, find_code

PROJECT = Path(crds.__file__).parents[1]
SOURCES = (
    "translation",
    "providers",
    "apisix_ingress/diagnostics/collect/offline.py",
    "apisix_ingress/lint",
    "apisix_ingress/webhook",
    "apisix_ingress/statuspage/summary",
)
WORD = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+")
REPORTERS = {"error", "warn", "degrade", "missing", "note", "Problem", "_shown", "_with_code"}
"""Functions that take a code as one of their arguments."""
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


def reported() -> set[str]:
    """Return the codes that are passed to these functions, as a string or through a constant."""
    found: set[str] = set()
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if name in REPORTERS:
                    found.update(word for argument in node.args for word in words(argument))
    return {word for word in found if not KINDS.fullmatch(word)}


def test_every_reported_code_has_an_entry() -> None:
    assert reported() - CODES.keys() == set()


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


def test_numbers_have_one_format_and_are_ordered() -> None:
    assert [number for number in NUMBERS if not re.fullmatch(r"AIX\d{4}", number)] == []
    assert list(NUMBERS) == sorted(NUMBERS)
    assert len(NUMBERS) == len(CODES)


def test_every_entry_describes_the_effect_and_the_remedy() -> None:
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
def test_error_for_an_unknown_code_names_the_most_similar_one(text: str, want: str) -> None:
    with pytest.raises(ValueError, match=re.escape(want)):
        find_code(text)


def test_only_codes_that_lint_reports_say_how_to_suppress_them() -> None:
    without = {each.number[:5] for each in CODES.values() if "--suppress" not in each.explanation}
    assert without == {"AIX11"}
