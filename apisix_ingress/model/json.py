"""JSON types and the canonical form of a document. Only definitions that every layer shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import orjson

JsonObject: TypeAlias = dict[str, Any]
"""A parsed JSON object. Its shape is checked where it is used, hence `Any`."""

FrozenJson: TypeAlias = Mapping[str, Any]
"""A JSON object that must not be modified."""


def canonical(document: object) -> bytes:
    """Return the canonical bytes of a JSON value: sorted keys, no white space."""
    # Many are kept. Of orjson's buffer of at least 4 KiB, which it does not shrink, nearly everything would be unused.
    return bytes(memoryview(orjson.dumps(document, option=orjson.OPT_SORT_KEYS)))


def mapping_in(value: object) -> FrozenJson:
    """Return a value of unknown shape if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def list_in(value: object) -> list[Any]:
    """Return a value of unknown shape if it is a list, else an empty one."""
    return value if isinstance(value, list) else []
