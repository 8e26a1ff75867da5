"""Code in records, with the setting that rejects it: only the constant functions of this controller are permitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from translation.nginx.functions.requests import HOST, REQUEST
from translation.nginx.functions.texts import TEXTS
from translation.plugins.code import CODE_FIELDS, CODE_META, is_code
from translation.safety.faults import Fault

OF_USER = "is rejected by the controller's setting kubernetes.code_plugins: refuse; remove it"

_OURS = ("serverless-pre-function", "serverless-post-function")


def code_faults(name: str, config: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the code of users in a plugin."""
    texts = config.get("functions")
    if name in _OURS and isinstance(texts, list):
        for index, text in enumerate(texts):
            if text not in TEXTS:
                yield Fault(("functions", index), OF_USER)
    elif is_code(name):
        yield Fault((), OF_USER)
    meta = config.get("_meta")
    if isinstance(meta, dict) and CODE_META in meta and (name, meta[CODE_META]) != (HOST, REQUEST):
        yield Fault(("_meta", CODE_META), OF_USER)
    for plugin, field in CODE_FIELDS:
        if plugin == name and field in config:
            yield Fault((field,), OF_USER)
