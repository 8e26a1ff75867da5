"""Mirrors: a copy of each request is sent to another address; the response is discarded."""

from __future__ import annotations

from apisix_ingress.model.formats.patterns import TextPattern
from translation.nginx.effects.branches import Site
from translation.nginx.effects.destinations import may_reach
from translation.nginx.functions.attached import Function
from translation.nginx.functions.copies import MIRROR
from translation.nginx.tables.destinations import mirror_of

_REQUEST_URI = TextPattern(r"\$\{?request_uri\}?")
_OFF = "off"


def mirror(site: Site) -> tuple[Function, ...]:
    """Return the function that copies requests."""
    target = mirror_of(site.values.text("mirror-target"))
    source = site.location.source
    if target is None or source is None or is_refused(site):
        return ()
    # Without a path, nginx requests the path of its own location for mirrors, which contains the uid of the Ingress.
    path = target.rest or f"/_mirror-{source.meta.uid}"
    wanted = {
        "uri": target.base + _REQUEST_URI.sub("$real_request_uri", path),
        "base": target.base,
        "host": site.values.text("mirror-host") or target.base.partition("://")[2],
        "with_query": not _REQUEST_URI.found(path),
        "with_body": site.values.text("mirror-request-body") != _OFF,
    }
    return (Function(MIRROR, {"mirror": wanted}),)


def is_refused(site: Site) -> bool:
    """Return whether the settings do not permit requests to the destination of the copies."""
    target = mirror_of(site.values.text("mirror-target"))
    return target is not None and not may_reach(site, target)
