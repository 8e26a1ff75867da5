"""Who held a host before this process, or this term: the namespace whose records gateways have for it.

An object may be older than the one whose host it names since yesterday. So that a restart or another leader gives it
nothing, what the gateways hold counts before the age of objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import short_id, wide_id
from apisix_ingress.model.network.host_claims import wildcards_over
from apisix_ingress.state.host_holders import HostHolders
from apisix_ingress.state.world import World
from translation.core.options import Options
from translation.core.unnamed_records import nameless_records
from translation.hosts.host_owners import NAMING_KINDS, HostOwners


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
        own = _own(owners, host, found)
        if own:
            told.add(host)
        is_lost = bool(own) and not _has_it(holders, owners, host, found)
        if is_lost:
            given[host] = own[0]
            holders.give(host, own[0])
        yield is_lost
    yield from _cleared(holders, HostOwners(world.view(), options), given, found)


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


def _own(owners: HostOwners, host: str, found: Mapping[str, set[str]]) -> list[str]:
    """Return the namespaces that have records for a host that they name, without those that only borrow it."""
    others = {each for name in (host, *wildcards_over(host)) for each in found.get(name, ())}
    naming = (each for each in sorted(found.get(host, ())) if owners.names(each, host))
    return [each for each in naming if not any(_borrows(owners, each, other, host) for other in others - {each})]


def _borrows(owners: HostOwners, namespace: str, other: str, host: str) -> bool:
    return owners.lends(other, namespace, host) and not owners.lends(namespace, other, host)


def _has_it(holders: HostHolders, owners: HostOwners, host: str, found: Mapping[str, set[str]]) -> bool:
    """Say whether who holds a host, or a wildcard over it, has records for what it holds: then age has decided."""
    held = next((name for name in (host, *wildcards_over(host)) if holders.holder(name)), None)
    return held is not None and holders.holder(held) in _own(owners, held, found)


def _cleared(
    holders: HostHolders, owners: HostOwners, given: Mapping[str, str], found: Mapping[str, set[str]]
) -> Iterator[bool]:
    """Take away what others hold below wildcards that were given to somebody, unless they have records for it."""
    for host in holders.hosts() if any(name.startswith("*.") for name in given) else ():
        holder = holders.holder(host)
        is_below = any(given.get(wildcard, holder) != holder for wildcard in wildcards_over(host))
        is_lost = is_below and holder not in _own(owners, host, found)
        if is_lost:
            holders.release(host)
        yield is_lost
