"""The plugin proxy-mirror, with a function so that a client only chooses the path of the copies.

APISIX 3.18 writes the decoded path of a request into the request line of its copy: a path with `%0d%0a` would add
requests of the client's choice, and one with `%252e%252e` would lead to another path.
"""

from __future__ import annotations

from apisix_ingress.model.json import JsonObject
from translation.plugins.code import CODE_META

PLUGIN = "proxy-mirror"

RAW_PATH = """return function(conf, ctx)
    if ctx.var.upstream_uri == "" then ctx.var.upstream_uri = ctx.var.real_request_uri end
    ngx.req.clear_header("X-Real-IP")
end
"""
"""Copies the path as the client wrote it, which the request to the backend has in any case.

Copies have no X-Real-IP: gateways trust this header in requests from themselves.
"""


def with_raw_path(config: JsonObject) -> JsonObject:
    """Return the configuration with the function, unless it has one of its own or copies have one path."""
    if "path" in config and config.get("path_concat_mode") != "prefix":
        return config
    meta = config.get("_meta", {})
    return {**config, "_meta": {CODE_META: RAW_PATH, **meta}} if isinstance(meta, dict) else config
