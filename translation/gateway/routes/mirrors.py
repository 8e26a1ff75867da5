"""Mirrors: requests that are copied to other backends, through the gateway itself.

The plugin has a single address and rarely resolves it. So a request is copied to a path of the gateway, whose route
uses the upstream of the mirror and copies to the next one. A removed endpoint requires no write of a route.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any

from crds.gateway.common import Mirror
from translation.core.builder import Builder
from translation.gateway.routes.backends import Invalid, Wanted, target_of
from translation.plugins.mirrors import PLUGIN, with_raw_path

_PATH = "/__mirror"

_PRIORITY = 2**31 - 1


def mirror_plugin(
    draft: Builder, mirrors: Sequence[tuple[Mirror, float]], name: str, hosts: dict[str, Any], path: str
) -> tuple[dict[str, Any], list[Invalid]]:
    """Add the records of the mirrors of a route record; return its plugin and the invalid references.

    Args:
        draft: The translation.
        mirrors: Each with its share of the requests, 0 to 1.
        name: The name of the route record.
        hosts: The field of the route record with its hosts; the copies have the same hosts.
        path: The field of the filters.
    """
    invalid: list[Invalid] = []
    usable: list[tuple[str, float]] = []
    for mirror, share in sorted(mirrors, key=lambda each: -each[1]):
        target = target_of(draft, mirror.backend_ref, path, Wanted())
        if isinstance(target, Invalid):
            invalid.append(target)
        else:
            usable.append((target.upstream_id, share))
    id_ = format(zlib.crc32(name.encode()), "08x")
    before = [1.0, *(share for _, share in usable)]
    for index, (upstream_id, _) in enumerate(usable):
        following = _plugin(draft, id_, index + 1, usable, before)
        body = draft.new_body("routes", f"{name}_mirror_{index}") | hosts
        body |= {
            "uri": f"{_PATH}/{id_}/{index}/*",
            "vars": [["remote_addr", "==", "127.0.0.1"]],
            "priority": _PRIORITY,
            "upstream_id": upstream_id,
            "plugins": {
                "proxy-rewrite": {"regex_uri": [f"^(?:{_PATH}/[0-9a-f]+/[0-9]+)+/([\\s\\S]*)$", "/$1"]},
                **following,
            },
        }
        draft.record("routes", f"{name}_mirror_{index}", body)
    return _plugin(draft, id_, 0, usable, before), invalid


def _plugin(
    draft: Builder, id_: str, index: int, usable: Sequence[tuple[str, float]], before: Sequence[float]
) -> dict[str, Any]:
    """Return the plugin that copies to a mirror; its share is relative to the copies at this stage."""
    if index >= len(usable):
        return {}
    share = usable[index][1] / before[index]
    ratio = {} if share >= 1 else {"sample_ratio": round(share, 5)}
    path = f"{_PATH}/{id_}/{index}"
    config = {"host": draft.options.loopback, "path": path, "path_concat_mode": "prefix", **ratio}
    return {PLUGIN: with_raw_path(config)}
