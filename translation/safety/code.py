"""Code in records, with the setting that rejects it: only the constant functions of this controller are permitted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from translation.nginx.functions.attached import FIELD, PLUGINS
from translation.nginx.functions.requests import HOST, REQUEST
from translation.nginx.functions.texts import TEXTS
from translation.plugins import mirrors
from translation.plugins.code import CODE_FIELDS, CODE_META, is_code
from translation.safety.faults import Fault

_OWN = ((HOST, REQUEST), (mirrors.PLUGIN, mirrors.RAW_PATH))
"""Plugins with the functions of this controller that run before them."""

OF_USER = "is rejected by the controller's setting kubernetes.code_plugins: refuse; remove it"


def code_faults(name: str, config: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the code of users in a plugin."""
    if name in PLUGINS and isinstance(config.get("functions"), list):
        for index, text in enumerate(config["functions"]):
            if not isinstance(text, str) or text not in TEXTS:
                yield Fault(("functions", index), OF_USER)
    elif is_code(name):
        yield Fault((), OF_USER)
    meta = config.get("_meta")
    if isinstance(meta, dict) and CODE_META in meta and (name, meta[CODE_META]) not in _OWN:
        yield Fault(("_meta", CODE_META), OF_USER)
    # The functions may use their values as configurations of plugins.
    if name in PLUGINS or name == HOST:
        yield from (Fault((FIELD, *path), OF_USER) for path in _metas(config.get(FIELD)))
    for plugin, field in CODE_FIELDS:
        if plugin == name and field in config:
            yield Fault((field,), OF_USER)


def _metas(value: Any) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all `_meta` below a value."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, each in items:
        if name == "_meta":
            yield (name,)
        else:
            yield from ((name, *path) for path in _metas(each))
