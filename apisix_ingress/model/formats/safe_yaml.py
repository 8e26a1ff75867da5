"""Parses YAML to JSON data within limits, so that untrusted texts cannot exhaust the process.

The size after resolving aliases and the nesting are limited; duplicate keys and tags beyond plain data are rejected.
Callers know the file and the meaning of the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import yaml

_LARGEST_DOCUMENT = 1_000_000
"""Nodes of a document once its aliases are resolved."""
_MOST_REPEATED = 1_000_000
"""Nodes that aliases may add to all documents of a text: a document of 300 bytes can repeat a million."""
_STANDARD = "tag:yaml.org,2002:"
_LONGEST_TAG = 100
_LONGEST_NAME = 100
"""Characters of a key that messages quote."""
_REASONS = {
    "timestamp": "no such date or time; put it in quotes if it is a text",
    "float": "not a number that JSON has",
    "int": "an integer too large for JSON; put it in quotes if it is a text",
    "str": "not a text that can be sent: a lone surrogate",
    "bool": "not a value that JSON has",
}
_HEAD = frozenset({"apiVersion", "kind", "metadata"})
"""Keys that an object usually begins with."""


Position = tuple[int, int]
"""Line and column in a file, both from 1."""


class DocumentError(ValueError):
    """A text cannot be read; the message begins with line and column if they are known.

    Attributes:
        position: The same as numbers, or None.
    """

    def __init__(self, message: str, position: Position | None = None) -> None:
        super().__init__(message)
        self.position = position


class _Loader(yaml.CSafeLoader):
    """The safe loader; rejects duplicate keys and values that are not plain data."""

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
    # Typical for concatenated files without a separator: the second object continues the first document.
    is_head = key.start_mark.column == 0 and key.value in _HEAD
    return f"key {key.value[:_LONGEST_NAME]!r} is given twice{'; is a --- missing before it?' if is_head else ''}"


def read_yaml(content: bytes, *, deepest: int) -> Iterator[Any]:
    """Yield the data of each document of a text, None for an empty one.

    Args:
        content: UTF-8.
        deepest: Maximum nesting of a document.

    Raises:
        DocumentError: Invalid YAML, or a limit is exceeded.
    """
    for found in read_each(content, deepest=deepest):
        if isinstance(found, DocumentError):
            raise found
        yield found


def read_each(content: bytes, *, deepest: int) -> Iterator[Any]:
    """Yield the data of each document of a text, or the DocumentError of an unreadable one.

    Args:
        content: UTF-8.
        deepest: Maximum nesting of a document.

    Raises:
        DocumentError: Invalid YAML, so that the start of the next document is unknown.
    """
    room = _MOST_REPEATED
    for root in compose_each(content, deepest=deepest):
        try:
            room -= 0 if root is None else _repeated(root, room)
        except yaml.YAMLError as error:
            yield _explained(error)
        else:
            yield _data(root)


def compose_each(content: bytes, *, deepest: int) -> Iterator[yaml.Node | None]:
    """Yield the nodes of each document of a text with their positions, None for an empty one.

    Args:
        content: UTF-8.
        deepest: Maximum nesting of a document.

    Raises:
        DocumentError: Invalid YAML, or the limit is exceeded.
    """
    loader = None
    try:
        text = content.decode("utf-8-sig")
        _check_depth(text, deepest)
        loader = _Loader(text)
        while loader.check_node():
            yield loader.get_node()
    except yaml.YAMLError as error:
        raise _explained(error) from None
    except UnicodeDecodeError as error:
        raise DocumentError(f"not UTF-8 (byte {error.start})") from None
    finally:
        if loader is not None:
            loader.dispose()


def _data(root: yaml.Node | None) -> Any:
    """Return the data of a document, or its error."""
    if root is None:
        return None
    builder = _Loader("")
    try:
        return plain(builder.construct_document(root))
    except yaml.YAMLError as error:
        return _unreadable_value(root) or _explained(error)
    except (ValueError, TypeError, ArithmeticError, LookupError, RecursionError) as error:
        return _unreadable_value(root) or DocumentError(
            f"contains a value that cannot be read ({type(error).__name__})"
        )
    finally:
        builder.dispose()


def _explained(error: yaml.YAMLError) -> DocumentError:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark
        return DocumentError(f"{_position_text(mark)}{error.problem}", position(mark) if mark else None)
    return DocumentError(str(error).splitlines()[0])


def _unreadable_value(root: yaml.Node) -> DocumentError | None:
    """Return the line and field of the first value that cannot be read; None if there is no such value."""
    builder = _Loader("")
    try:
        path: list[str] = []
        for node in _nodes(root, path):
            if reason := _reason(builder, node):
                field = "".join(path).removeprefix(".")
                mark: Any = node.start_mark
                return DocumentError(f"{_position_text(mark)}{field}{': ' if field else ''}{reason}", position(mark))
    except RecursionError:
        return None
    finally:
        builder.dispose()
    return None


def _nodes(node: yaml.Node, path: list[str]) -> Iterator[yaml.Node]:
    """Yield a node and all below it, while `path` has the steps to its field; recursive nodes were rejected before."""
    yield node
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            path.append(f".{str(key.value)[:_LONGEST_NAME]}")
            yield from _nodes(value, path)
            path.pop()
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            path.append(f"[{number}]")
            yield from _nodes(value, path)
            path.pop()


def _reason(builder: _Loader, node: yaml.Node) -> str:
    """Return why a value cannot be read, ignoring its items; empty if it can. Never quotes the value."""
    tag = node.tag.removeprefix(_STANDARD)
    if node.tag not in builder.yaml_constructors:
        return f"could not determine a constructor for the tag '{node.tag[:_LONGEST_TAG]}'"
    strange = "" if tag in ("map", "seq") else f"the tag !!{tag} is not plain data"
    if not isinstance(node, yaml.ScalarNode):
        return strange
    try:
        plain(builder.construct_object(node))
    except (yaml.YAMLError, ValueError, TypeError, ArithmeticError, LookupError):
        return _REASONS.get(tag, strange)
    return ""


def _check_depth(text: str, deepest: int) -> None:
    """Reject a document that is nested too deeply, by its events alone: the C loader would crash the process."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > deepest:
                mark: Any = event.start_mark  # the C parser uses another class for marks
                raise yaml.MarkedYAMLError(None, None, f"nested deeper than {deepest} levels", mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _repeated(root: yaml.Node, room: int) -> int:
    """Return how many nodes the aliases of a document add; counts without resolving them.

    Raises:
        yaml.MarkedYAMLError: They exceed the limit of the document, or `room`.
    """
    sizes: dict[int, int] = {}

    def size(node: yaml.Node) -> int:
        known = sizes.get(id(node))
        if known is not None:
            return known
        sizes[id(node)] = _LARGEST_DOCUMENT + 1  # a recursive node
        total = 1
        for child in _children(node):
            total += size(child)
            if total > _LARGEST_DOCUMENT:
                raise yaml.MarkedYAMLError(None, None, "too large once its aliases are resolved", node.start_mark)
        sizes[id(node)] = total
        return total

    repeated = size(root) - len(sizes)
    if repeated > room:
        raise yaml.MarkedYAMLError(None, None, "too large once the aliases of the file are resolved", root.start_mark)
    return repeated


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def plain(value: Any) -> Any:
    """Return a value as JSON data: YAML timestamps and keys become strings.

    Raises:
        ValueError: JSON has no such value.
    """
    match value:
        case dict():
            return {_key(key): plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
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
            value.encode()  # a lone surrogate cannot be sent
            return value
        case None | bool() | int() | float():
            return value
        case _:
            raise ValueError("not a JSON value")


def _key(key: Any) -> str:
    """Return a key as a string; `on: x` and `80: y` are parsed as YAML 1.1 and formatted as JSON."""
    match key:
        case str():
            return key
        case bool():
            return "true" if key else "false"
        case None:
            return "null"
        case _:
            return str(key)


def position(mark: yaml.Mark) -> Position:
    """Return the line and column of a mark, counted from 1."""
    return mark.line + 1, mark.column + 1


def _position_text(mark: yaml.Mark | None) -> str:
    return "" if mark is None else "line {}, column {}: ".format(*position(mark))
