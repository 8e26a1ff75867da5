"""Reads the documents of one manifest file: YAML or JSON, with several documents or a List, within limits.

The limit for a file is 10 MB; `safe_yaml` has the other limits. `loader` interprets the documents.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apisix_ingress.kube.client.json_depth import DEEPEST, check_depth
from apisix_ingress.model.formats.safe_yaml import DocumentError as DocumentError
from apisix_ingress.model.formats.safe_yaml import Position, plain, read_each
from apisix_ingress.model.json import JsonObject

LARGEST_FILE = 10 * 2**20
_LONGEST_NAME = 100
"""Characters of a key that a message quotes."""


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file.

    Attributes:
        where: `document 2`, or `document 2, item 3` for an item of a List; for messages.
    """

    where: str
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A document, or an item of a List, that is not an object. The other documents of the file are still used."""

    where: str
    problem: str
    position: Position | None = None


def read_documents(content: bytes) -> list[Document | Unreadable]:
    """Return the objects of a file, without empty documents.

    Raises:
        DocumentError: The file is not valid YAML, or it exceeds a limit.
    """
    if len(content) > LARGEST_FILE:
        raise DocumentError(f"larger than {LARGEST_FILE // 2**20} MB")
    documents: list[Document | Unreadable] = []
    # YAML is not quite a superset of JSON: it rejects escaped surrogate pairs, which JSON writers produce.
    single = _parse_json(content)
    for number, body in enumerate(read_each(content, deepest=DEEPEST) if single is None else [single], 1):
        if body is not None:
            documents.extend(_flatten(f"document {number}", body))
    return documents


def _parse_json(content: bytes) -> JsonObject | None:
    """Return the object of a JSON file; None if the file is not JSON, so that it may be YAML."""
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
        raise DocumentError(f"contains a value that cannot be read ({error})") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"key {twice[:_LONGEST_NAME]!r} is given twice")
    return found


def _flatten(where: str, body: Any) -> Iterator[Document | Unreadable]:
    """Yield an object, or the items of a List, which may be nested."""
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
