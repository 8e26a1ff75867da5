"""Locations whose pattern may fail with an error, as for a very long path: nginx then responds with 500."""

from __future__ import annotations

from translation.nginx.effects.branches import Site
from translation.nginx.effects.protection.access import address_lists
from translation.nginx.effects.protection.authentication import authentication
from translation.nginx.effects.protection.limits import is_limited
from translation.nginx.effects.protection.proxy_ssl import is_unverifiable
from translation.nginx.effects.protection.required_objects import missing_object
from translation.nginx.effects.responses import response_headers
from translation.plugins.pattern_errors import may_fail


def fails_open(site: Site) -> bool:
    """Return whether an error of the location's pattern would lose a protection."""
    return may_fail(site.location.path) and _is_protected(site)


def _is_protected(site: Site) -> bool:
    source = site.location.source
    if source is None:
        return False
    guard = authentication(site)
    closed = source.closed or source.shut or guard.closed or guard.shut or missing_object(site)
    refuses = guard.functions or any(address_lists(site)) or is_limited(site)
    return bool(closed or refuses or is_unverifiable(site) or response_headers(site) is None)
