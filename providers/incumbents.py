"""Who held a host before this process, or this term: the namespace whose records gateways have for it.

An object may be older than the one whose host it names since yesterday. So that a restart or another leader gives it
nothing, what the gateways hold counts before the age of objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from apisix_ingress.model.hostclaims import wildcards_over
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import short_id, wide_id
from apisix_ingress.state.hostholders import HostHolders
from apisix_ingress.state.world import World
from translation.context import Options
from translation.hostowners import NAMING_KINDS, HostOwners
from translation.nameless import nameless_records


def adopt_hosts(
    world: World,
    options: Options,
    found: dict[str, set[str]],
    told: set[str],
    nameless: Mapping[RecordKey, tuple[str, ...]] = MappingProxyType({}),
) -> Iterator[bool]:
    """Let namespaces hold the hosts that a gateway cluster has for them, as far as their objects still name these.

    Args:
        world: Objects and holders.
        options: Tells which objects are ours.
        found: Host → the namespaces that have records for it there. It grows.
        told: Hosts of which another cluster said so in this term: the first one counts. It grows.
        nameless: Records that tell no name → their hosts; whose they are is seen by their ids.

    Yields:
        For each host whether it changed hands.
    """
    if nameless:
        yield from _recognised(world, found, nameless)
    holders = world.host_holders
    given: dict[str, str] = {}
    for host in sorted(found.keys() - told):
        owners = HostOwners(world.view(), options)
        naming = [namespace for namespace in sorted(found[host]) if owners.names(namespace, host)]
        if naming:
            told.add(host)
        is_lost = bool(naming) and not _has_it(holders, host, found)
        if is_lost:
            given[host] = _lender(owners, naming, host)
            holders.give(host, given[host])
        yield is_lost
    yield from _cleared(holders, given, found)


def _recognised(
    world: World, found: dict[str, set[str]], nameless: Mapping[RecordKey, tuple[str, ...]]
) -> Iterator[bool]:
    """Note the namespaces of records that tell no name; yield after each name, of which an object may have many.

    A short id that names of several namespaces have says nothing: such names can be forged.
    """
    makers: dict[RecordKey, set[str]] = {}
    for kind in NAMING_KINDS:
        for item in world.stores[kind].values():
            for record_kind, name in nameless_records(item):
                for id_ in (short_id(name), wide_id(name)):
                    if (key := RecordKey(record_kind, id_)) in nameless:
                        makers.setdefault(key, set()).add(item.meta.namespace)
                yield False
            yield False
    for key, namespaces in makers.items():
        for host in nameless[key] if len(namespaces) == 1 else ():
            found.setdefault(host, set()).update(namespaces)
        yield False


def _has_it(holders: HostHolders, host: str, found: Mapping[str, set[str]]) -> bool:
    """Say whether who holds a host, or a wildcard over it, has records for what it holds: then age has decided."""
    held = next((name for name in (host, *wildcards_over(host)) if holders.holder(name)), None)
    return held is not None and holders.holder(held) in found.get(held, ())


def _cleared(holders: HostHolders, given: Mapping[str, str], found: Mapping[str, set[str]]) -> Iterator[bool]:
    """Take away what others hold below wildcards that were given to somebody, unless they have records for it."""
    for host in holders.hosts() if any(name.startswith("*.") for name in given) else ():
        holder = holders.holder(host)
        is_below = any(given.get(wildcard, holder) != holder for wildcard in wildcards_over(host))
        is_lost = is_below and holder not in found.get(host, ())
        if is_lost:
            holders.release(host)
        yield is_lost


def _lender(owners: HostOwners, naming: list[str], host: str) -> str:
    """Return which of the namespaces that have records for a host lends it to the others."""
    lends = (each for each in naming if any(owners.lends(each, other, host) for other in naming if other != each))
    return next(lends, naming[0])
