"""Who held a host before this process, or this term: the namespace whose records gateways have for it.

An object may be older than the one whose host it names since yesterday. So that a restart or another leader gives it
nothing, what the gateways hold counts before the age of objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apisix_ingress.state.world import World
from translation.context import Options
from translation.hostowners import HostOwners


def adopt_hosts(world: World, options: Options, found: Mapping[str, set[str]], told: set[str]) -> Iterator[bool]:
    """Let namespaces hold the hosts that a gateway cluster has for them, as far as their objects still name these.

    Args:
        world: Objects and holders.
        options: Tells which objects are ours.
        found: Host → the namespaces that have records for it there.
        told: Hosts of which another cluster said so in this term: the first one counts. It grows.

    Yields:
        For each host whether it changed hands.
    """
    for host in sorted(found.keys() - told):
        owners = HostOwners(world.view(), options)
        naming = [namespace for namespace in sorted(found[host]) if owners.names(namespace, host)]
        if naming:
            told.add(host)
        is_lost = bool(naming) and world.host_holders.holder(host) not in naming
        if is_lost:
            world.host_holders.give(host, _lender(owners, naming, host))
        yield is_lost


def _lender(owners: HostOwners, naming: list[str], host: str) -> str:
    """Return which of the namespaces that have records for a host lends it to the others."""
    lends = (each for each in naming if any(owners.lends(each, other, host) for other in naming if other != each))
    return next(lends, naming[0])
