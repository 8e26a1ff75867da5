"""Reads the documents of one manifest file: YAML or JSON, several to a file, kind List, with budgets.

A file of strangers must not harm the reader: 10 MB at most, few nodes through aliases, no key given twice, no tags
beyond plain data. What the documents mean is known to `manifests`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import yaml

from apisix_ingress.kube.depth import DEEPEST, check_depth
from apisix_ingress.model.json import JsonObject

LARGEST_FILE = 10 * 2**20
_LARGEST_DOCUMENT = 1_000_000
"""Nodes of a document once its aliases are resolved."""
_HEAD = frozenset({"apiVersion", "kind", "metadata"})
"""Keys with which an object begins."""


class DocumentError(ValueError):
    """A file can't be read; the text begins with line and column where they are known."""


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file.

    Attributes:
        where: `document 2`, or `document 2, item 3` for one of a List; for messages.
    """

    where: str
    body: JsonObject


class _Loader(yaml.CSafeLoader):
    """The safe loader, which refuses a key given twice and what only looks like data."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(None, None, "a key must be a plain text", key_node.start_mark)
            if key_node.value in seen:
                raise yaml.MarkedYAMLError(None, None, _twice(key_node), key_node.start_mark)
            seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def _twice(key: yaml.ScalarNode) -> str:
    # Two files put together where the first does not end the document: the second object continues it.
    is_head = key.start_mark.column == 0 and key.value in _HEAD
    return f"key {key.value!r} is given twice{'; is a --- missing before it?' if is_head else ''}"


def read_documents(content: bytes) -> list[Document]:
    """Return the objects of a file, empty documents left out.

    Raises:
        DocumentError: it is no YAML, or over a budget, or a document is no mapping.
    """
    if len(content) > LARGEST_FILE:
        raise DocumentError(f"larger than {LARGEST_FILE // 2**20} MB")
    documents: list[Document] = []
    # YAML is not quite a superset of JSON: it refuses surrogate pairs in escapes, as JSON writers make them.
    single = _parse_json(content)
    for number, body in enumerate(_parse(content) if single is None else [single], 1):
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
        plain: JsonObject = _plain(body)
        return plain
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


def _parse(content: bytes) -> Iterator[Any]:
    loader = None
    try:
        text = content.decode("utf-8-sig")
        _check_depth(text)
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                _check_size(node)
            yield _plain(loader.construct_document(node))
    except yaml.MarkedYAMLError as error:
        raise DocumentError(f"{_position(error.problem_mark)}{error.problem}") from None
    except yaml.YAMLError as error:
        raise DocumentError(str(error).splitlines()[0]) from None
    except UnicodeDecodeError as error:
        raise DocumentError(f"not UTF-8 (byte {error.start})") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise DocumentError(f"holds a value that can't be read ({type(error).__name__})") from None
    finally:
        if loader is not None:
            loader.dispose()


def _check_depth(text: str) -> None:
    """Refuse what is nested too deep, by its events alone: the C loader recurses until the process dies."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                mark: Any = event.start_mark  # the C parser has a class of its own for marks
                raise yaml.MarkedYAMLError(None, None, f"nested deeper than {DEEPEST} levels", mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_size(root: yaml.Node) -> None:
    """Refuse a document whose aliases blow it up; the count is made without resolving them."""
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        known = sizes.get(id(node))
        if known is not None:
            return known
        sizes[id(node)] = _LARGEST_DOCUMENT + 1  # a node that holds itself
        total = 1
        for child in _children(node):
            total += size(child)
            if total > _LARGEST_DOCUMENT:
                raise yaml.MarkedYAMLError(None, None, "too large once its aliases are resolved", node.start_mark)
        sizes[id(node)] = total
        return total

    size(root)


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _flatten(where: str, body: Any) -> Iterator[Document]:
    if not isinstance(body, dict):
        raise DocumentError(f"{where}: not a mapping")
    items = body.get("items")
    if not str(body.get("kind") or "").endswith("List") or not isinstance(items, list):
        yield Document(where, body)
        return
    for number, item in enumerate(items, 1):
        if not isinstance(item, dict):
            raise DocumentError(f"{where}, item {number}: not a mapping")
        yield Document(f"{where}, item {number}", item)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: YAML's times become texts again, keys are texts."""
    match value:
        case dict():
            return {_key(key): _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case datetime():
            aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
            return aware.isoformat(timespec="microseconds" if aware.microsecond else "seconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case float() if not math.isfinite(value):
            raise ValueError("not a JSON number")
        case int() if not -(2**63) <= value < 2**64:
            raise ValueError("an integer too large for JSON")
        case str():
            value.encode()  # a lone surrogate can't be sent
            return value
        case None | bool() | int() | float():
            return value
        case _:
            raise ValueError("not a JSON value")


def _key(key: Any) -> str:
    """Return a key as a text; `on: x`, `80: y` are read as YAML 1.1 means them, then written out as JSON would."""
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case None:
            return "null"
        case _:
            return str(key)


def _position(mark: yaml.Mark | None) -> str:
    return "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
