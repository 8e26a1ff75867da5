"""Mirrors: a copy of each request is sent to another address; the response is discarded."""

from __future__ import annotations

import re

from translation.nginx.effects.branches import Site, may_reach
from translation.nginx.functions.attached import Function
from translation.nginx.functions.copies import MIRROR

_TARGET = re.compile(r"(https?://)([A-Za-z0-9.-]+(?::[0-9]+)?)((?:[/$][A-Za-z0-9._~/:?&=%${}-]*)?)")
_REQUEST_URI = re.compile(r"\$\{?request_uri\}?")
_OFF = "off"


def mirror(site: Site) -> tuple[Function, ...]:
    """Return the function that copies requests."""
    found = _TARGET.fullmatch(site.values.text("mirror-target"))
    source = site.location.source
    if not found or source is None or not may_reach(site, found[1] + found[2]):
        return ()
    # Without a path, nginx requests the path of its own location for mirrors, which contains the uid of the Ingress.
    path = found[3] or f"/_mirror-{source.meta.uid}"
    wanted = {
        "uri": found[1] + found[2] + _REQUEST_URI.sub("$real_request_uri", path),
        "host": site.values.text("mirror-host") or found[2],
        "with_query": not _REQUEST_URI.search(path),
        "with_body": site.values.text("mirror-request-body") != _OFF,
    }
    return (Function(MIRROR, {"mirror": wanted}),)
