"""Mirrors: a copy of each request is sent to another address; the response is discarded."""

from __future__ import annotations

import re

from apisix_ingress.model.json import JsonObject
from translation.nginx.effects.branches import Site, may_reach

_TARGET = re.compile(r"(https?://[A-Za-z0-9.-]+(?::[0-9]+)?)(\$request_uri|/[^?&$]*)?(\$request_uri)?")


def mirror(site: Site) -> dict[str, JsonObject]:
    """Return the plugin that copies requests."""
    found = _TARGET.fullmatch(site.values.text("mirror-target"))
    if not found or not may_reach(site, found[1]):
        return {}
    body: JsonObject = {"host": found[1]}
    path = found[2] or ""
    if path.startswith("/") and len(path) > 1:
        body |= {"path": path.rstrip("/"), "path_concat_mode": "prefix" if found[3] else "replace"}
    return {"proxy-mirror": body}
