"""Mirrors: requests that are copied to other backends, through the gateway itself.

The plugin has a single address and rarely resolves it. So a request is copied to a path of the gateway, whose route
uses the upstream of the mirror and copies to the next one. A removed endpoint requires no write of a route.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crds.gateway.common import Filter, Mirror
from translation.core.builder import Builder
from translation.gateway.routes.backends import Invalid, Wanted, target_of
from translation.gateway.routes.loopback import add_route, own_path
from translation.plugins.mirrors import PLUGIN, with_raw_path

_PATH = "/__mirror"


def refusal_of(filters: Sequence[Filter]) -> tuple[str, str]:
    """Return reason and message why a GRPCRoute is not accepted, or empty texts.

    APISIX connects to the address of the plugin by the protocol of the request, and cannot send it to another path.
    """
    if any(each.request_mirror is not None for each in filters):
        return "UnsupportedValue", "filters: RequestMirror is not supported, as gateways do not copy gRPC; remove it"
    return "", ""


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
    own = own_path(_PATH, name)
    before = [1.0, *(share for _, share in usable)]
    for index, (upstream_id, _) in enumerate(usable):
        plugins = {
            "proxy-rewrite": {"regex_uri": [f"^(?:{_PATH}/[0-9a-f]+/[0-9]+)+/([\\s\\S]*)$", "/$1"]},
            **_plugin(draft, own, index + 1, usable, before),
        }
        add_route(draft, f"{name}_mirror_{index}", f"{own}/{index}", hosts, upstream_id, plugins)
    return _plugin(draft, own, 0, usable, before), invalid


def _plugin(
    draft: Builder, own: str, index: int, usable: Sequence[tuple[str, float]], before: Sequence[float]
) -> dict[str, Any]:
    """Return the plugin that copies to a mirror; its share is relative to the copies at this stage."""
    if index >= len(usable):
        return {}
    share = usable[index][1] / before[index]
    ratio = {} if share >= 1 else {"sample_ratio": round(share, 5)}
    config = {"host": draft.options.loopback, "path": f"{own}/{index}", "path_concat_mode": "prefix", **ratio}
    return {PLUGIN: with_raw_path(config)}
