"""Texts of translations in logs and conditions: the redaction must not take them for credentials."""

import ast
from collections.abc import Iterator
from pathlib import Path

import translation
from apisix_ingress.model.secrets.redaction import redact_text

PLACEHOLDER = "x"
"""Replaces each value of an f-string."""

PARTS_OF_RECORDS = {
    ("nginx/functions/guards.py", "\nlocal ffi"),  # a Lua function
    ("nginx/effects/responses.py", "Set-Cookie:"),  # a header of a response
}
"""Texts that are never shown to users: file, and start of the text."""


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module as they are used, without its docstrings and comments."""
    if isinstance(tree, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        body = [each for each in tree.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
        for statement in body:
            yield from texts(statement)
        return
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.value
    elif isinstance(tree, ast.JoinedStr):
        yield "".join(str(each.value) if isinstance(each, ast.Constant) else PLACEHOLDER for each in tree.values)
    for child in ast.iter_child_nodes(tree):
        yield from texts(child)


def test_no_text_of_a_translation_looks_like_a_credential() -> None:
    folder = Path(*translation.__path__)
    found = {
        (path.relative_to(folder).as_posix(), text)
        for path in folder.rglob("*.py")
        for text in texts(ast.parse(path.read_text()))
        if redact_text(text) != text
    }
    parts = {
        (file, text)
        for file, text in found
        for name, start in PARTS_OF_RECORDS
        if file == name and text.startswith(start)
    }
    assert found - parts == set()
    assert len(parts) == len(PARTS_OF_RECORDS)
