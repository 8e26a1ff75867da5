"""Whether a function of the gateway may send requests to a destination on behalf of an Ingress."""

from __future__ import annotations

from translation.addresses.policy import check_address
from translation.core.context import Context
from translation.nginx.effects.branches import Site
from translation.nginx.options import CATCH_ALL
from translation.nginx.tables.destinations import Destination

_NOT_FIXED = (
    "the URL must begin with http:// or https:// and a literal host and port; use variables only in the path and the"
    " query"
)
_CHOSEN_BY_CLIENTS = "clients choose $host here, since the rules do not limit it; write the host of the service"
_NOT_PERMITTED = "the settings do not permit requests to this address; ask the operator to add it"


def objection(site: Site, destination: Destination | None, *, to_operator: bool = False) -> str:
    """Return why no requests may be sent to a destination, and what to do; empty if they may.

    Args:
        site: The location.
        destination: What its annotation or the ConfigMap says; None if it is not fixed.
        to_operator: Whether it comes from the ConfigMap of the operator, who may name any host.
    """
    if destination is None:
        return _NOT_FIXED
    if not destination.is_literal and _takes_every_host(site):
        return _CHOSEN_BY_CLIENTS
    return "" if to_operator or may_reach(site, destination) else _NOT_PERMITTED


def may_reach(site: Site, destination: Destination) -> bool:
    """Return whether the settings permit requests to a destination."""
    options = site.builder.options
    if not options.judges_addresses:
        return True
    scratch = Context("Ingress", site.namespace, site.builder.view, options)
    return check_address(scratch, destination.host, "", port=destination.port)


def _takes_every_host(site: Site) -> bool:
    """Return whether no rule limits the hosts of requests for a location."""
    aliases = (source.values.text("server-alias") for source in site.server.sources)
    return site.server.host == CATCH_ALL or any("~" in alias for alias in aliases)
