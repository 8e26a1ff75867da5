"""Finds the line and column of an object in a manifest, and of a field by its path.

Messages contain these positions so that an editor can jump to them. Only files with findings are parsed again.
`loader` interprets the documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml

from apisix_ingress.kube.client.json_depth import DEEPEST
from apisix_ingress.model.formats.patterns import TextPattern
from apisix_ingress.model.formats.safe_yaml import DocumentError, Position, compose_each, position
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES

START: Position = (1, 1)

_STEP = TextPattern(r"\[(\d+)\]|\[([^\]]+)\]|\.?([^.\[]+)")
"""A step of a path: an item by number, a key in brackets (as for annotations), or a key."""


class Locations:
    """The objects of one file.

    Args:
        content: The file as it was read. In a file that is not valid YAML, every position is its start.
    """

    def __init__(self, content: bytes) -> None:
        self._documents: dict[str, yaml.Node] = {}
        self._objects: dict[ObjectKey, yaml.Node] = {}
        try:
            for number, root in enumerate(compose_each(content, deepest=DEEPEST), 1):
                if root is not None:
                    self._take(f"document {number}", root)
        except DocumentError:
            pass  # keep the documents before the error

    def __contains__(self, key: ObjectKey) -> bool:
        """Return whether an object is in the file."""
        return key in self._objects

    def of(self, at: str | ObjectKey, path: str = "") -> Position:
        """Return the position of a document or object, or of its field at `path`; if that is missing, of its parent."""
        node = self._objects.get(at) if isinstance(at, ObjectKey) else self._documents.get(at)
        return _find(node, path) if node is not None else START

    def _take(self, where: str, node: yaml.Node) -> None:
        items = _value(node, "items")
        if str(_text(node, "kind") or "").endswith("List") and isinstance(items, yaml.SequenceNode):
            for number, item in enumerate(items.value, 1):
                self._take(f"{where}, item {number}", item)
            return
        self._documents[where] = node
        if (key := _key(node)) is not None:
            self._objects.setdefault(key, node)


def _find(node: yaml.Node, path: str) -> Position:
    mark: Any = node.start_mark
    for step in _STEP.finditer(path):
        found = _below(node, step.groups())
        if found is None:
            break
        holder, node = found
        mark = holder.start_mark
    return position(mark)


def _below(node: yaml.Node, step: Sequence[str]) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the node one step below, preceded by the node whose position is reported (for a field, its key)."""
    number, bracketed, name = step
    if number and isinstance(node, yaml.SequenceNode) and int(number) < len(node.value):
        item = node.value[int(number)]
        return item, item
    wanted = name or bracketed or number
    return _fields(node).get(wanted)


@lru_cache(maxsize=64)
def _fields(node: yaml.Node) -> Mapping[str, tuple[yaml.Node, yaml.Node]]:
    """Return the keys of a mapping, each with its key node and value, to find thousands of fields in one object."""
    return {str(key.value): (key, value) for key, value in _pairs(node)}


def _pairs(node: yaml.Node | None) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from node.value


def _value(node: yaml.Node | None, name: str) -> yaml.Node | None:
    return next((value for key, value in _pairs(node) if key.value == name), None)


def _text(node: yaml.Node | None, name: str) -> str:
    found = _value(node, name)
    return str(found.value) if isinstance(found, yaml.ScalarNode) else ""


def _key(node: yaml.Node) -> ObjectKey | None:
    """Return the key of the object in a document, with the defaults of `loader`; None if it has no kind or name."""
    kind, meta = _text(node, "kind"), _value(node, "metadata")
    name = _text(meta, "name")
    if not kind or not name:
        return None
    resource = RESOURCES.get(kind)
    is_global = resource is not None and not resource.namespaced
    return ObjectKey(kind, "" if is_global else _text(meta, "namespace") or "default", name)
