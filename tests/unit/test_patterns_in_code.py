"""Which engines of regular expressions the program uses, and where.

The engines of `re` and of what is built on it backtrack and cannot be interrupted, so no text of users, clients,
gateways or API servers may reach them: `model/formats/patterns.py` has RE2, and `regex` with a time limit. Constraints
of pydantic (`pattern=`) run in Rust's `regex`, which is linear, schemas of plugins in `fancy-regex` with a limit of
steps (`webhook/schemas/book.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel, Field, ValidationError

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("apisix_ingress", "translation", "providers", "crds")
_ENGINES = frozenset({"re", "regex", "re2", "sre_compile", "sre_parse", "fnmatch", "glob", "rstr"})

ALLOWED = {
    "apisix_ingress/model/formats/patterns.py": "the engines and their limits; re only compiles",
    "apisix_ingress/settings/fields.py": "texts of the configuration of this process",
    "apisix_ingress/settings/layers.py": "texts of the environment of this process",
    "apisix_ingress/kube/client/json_depth.py": "possessive repeats of disjoint alternatives: it reads each byte once",
    "apisix_ingress/gateway/adminapi/list_parser.py": "possessive repeats and bounded ones: it reads each byte once",
    "apisix_ingress/verify/ingresses.py": "rstr generates texts and matches none; the repetitions are limited",
}
"""Modules that may import an engine, and why no text of others makes it backtrack there."""


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for package in _PACKAGES:
        for path in sorted((_ROOT / package).rglob("*.py")):
            yield path.relative_to(_ROOT).as_posix(), ast.parse(path.read_text("utf-8"))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def test_only_listed_modules_import_an_engine() -> None:
    users = {name for name, tree in _modules() if _ENGINES & set(_imported(tree))}
    assert users == set(ALLOWED)


def test_no_model_of_pydantic_uses_the_engine_of_python() -> None:
    named = [
        name
        for name, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "regex_engine"
    ]
    assert named == []


def test_a_constraint_of_pydantic_does_not_backtrack() -> None:
    class Model(BaseModel):
        text: str = Field(pattern="^(a|aa|a?)*b$")

    with pytest.raises(ValidationError):
        Model(text="a" * 100_000)
