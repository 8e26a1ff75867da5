"""Reads the documents of one manifest file: YAML or JSON, several to a file, kind List, with budgets.

A file has 10 MB at most; the other budgets are those of `yamldata`. What the documents mean is known to `manifests`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apisix_ingress.kube.client.json_depth import DEEPEST, check_depth
from apisix_ingress.model.formats.safe_yaml import DocumentError as DocumentError
from apisix_ingress.model.formats.safe_yaml import Position, plain, read_each
from apisix_ingress.model.json import JsonObject

LARGEST_FILE = 10 * 2**20


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file.

    Attributes:
        where: `document 2`, or `document 2, item 3` for one of a List; for messages.
    """

    where: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document, or an item of a List, that is no object; the others of the file count all the same."""

    where: str
    problem: str
    position: Position | None = None


def read_documents(content: bytes) -> list[Document | Unreadable]:
    """Return the objects of a file, empty documents left out.

    Raises:
        DocumentError: it is no YAML, or over a budget.
    """
    if len(content) > LARGEST_FILE:
        raise DocumentError(f"larger than {LARGEST_FILE // 2**20} MB")
    documents: list[Document | Unreadable] = []
    # YAML is not quite a superset of JSON: it refuses surrogate pairs in escapes, as JSON writers make them.
    single = _parse_json(content)
    for number, body in enumerate(read_each(content, deepest=DEEPEST) if single is None else [single], 1):
        if body is not None:
            documents.extend(_flatten(f"document {number}", body))
    return documents


def _parse_json(content: bytes) -> JsonObject | None:
    """Return the object of a JSON file, None if it is no JSON: then it may be YAML."""
    if not content.lstrip().startswith(b"{"):
        return None
    try:
        body = json.loads(content, object_pairs_hook=_unique)
        check_depth(body)
        found: JsonObject = plain(body)
        return found
    except json.JSONDecodeError:
        return None
    except (ValueError, RecursionError) as error:
        raise DocumentError(f"holds a value that can't be read ({error})") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} is given twice")
    return found


def _flatten(where: str, body: Any) -> Iterator[Document | Unreadable]:
    """Yield an object, or those of a List, which may hold Lists."""
    if not isinstance(body, dict):
        if isinstance(body, DocumentError):
            yield Unreadable(where, str(body), body.position)
        else:
            yield Unreadable(where, "not a mapping")
        return
    items = body.get("items")
    if not str(body.get("kind") or "").endswith("List") or not isinstance(items, list):
        yield Document(where, body)
        return
    for number, item in enumerate(items, 1):
        yield from _flatten(f"{where}, item {number}", item)
