"""Restores which namespace holds a host after a restart or a change of leader, from the records in the gateways.

An old object that was edited to name a host of another namespace must not win it at a restart. So the records in the
gateways take precedence over the age of objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import short_id, wide_id
from apisix_ingress.model.network.host_claims import wildcards_over
from apisix_ingress.state.hosts.host_holders import HostHolders
from apisix_ingress.state.world import World
from translation.core.options import Options
from translation.core.unnamed_records import nameless_records
from translation.hosts.host_owners import NAMING_KINDS, HostOwners


def adopt_hosts(
    world: World,
    options: Options,
    found: dict[str, set[str]],
    settled: set[str],
    nameless: Mapping[RecordKey, tuple[str, ...]] = MappingProxyType({}),
) -> Iterator[bool]:
    """Assign hosts to the namespaces whose records a gateway cluster has, if objects there still name the hosts.

    Args:
        world: Objects and holders.
        options: Settings that decide which objects belong to this controller.
        found: Host → the namespaces with records for it in the cluster. Extended in place.
        settled: Hosts that a cluster has assigned in this term; the first one wins. Extended in place.
        nameless: Records without a name → their hosts; the ids identify their owners.

    Yields:
        For each host whether its holder changed.
    """
    if nameless:
        yield from _recognised(world, found, nameless)
    holders = world.host_holders
    given: dict[str, str] = {}
    for host in sorted(found.keys() - settled):
        owners = HostOwners(world.view(), options)
        own = _own(owners, host, found)
        if own:
            settled.add(host)
        is_lost = bool(own) and not _has_it(holders, owners, host, found)
        if is_lost:
            given[host] = own[0]
            holders.give(host, own[0])
        yield is_lost
    yield from _cleared(holders, HostOwners(world.view(), options), given, found)


def _recognised(
    world: World, found: dict[str, set[str]], nameless: Mapping[RecordKey, tuple[str, ...]]
) -> Iterator[bool]:
    """Find the namespaces of records without a name by their ids; yield after each name, as objects may have many.

    A short id that matches names of several namespaces is ignored, as such names can be forged.
    """
    makers: dict[RecordKey, set[str]] = {}
    for kind in NAMING_KINDS:
        for item in world.stores[kind].values() if kind in world.stores else ():
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
    """Return the namespaces that name a host and have records for it, except namespaces that only borrow it."""
    others = {each for name in (host, *wildcards_over(host)) for each in found.get(name, ())}
    naming = (each for each in sorted(found.get(host, ())) if owners.names(each, host))
    return [each for each in naming if not any(_borrows(owners, each, other, host) for other in others - {each})]


def _borrows(owners: HostOwners, namespace: str, other: str, host: str) -> bool:
    return owners.lends(other, namespace, host) and not owners.lends(namespace, other, host)


def _has_it(holders: HostHolders, owners: HostOwners, host: str, found: Mapping[str, set[str]]) -> bool:
    """Return whether the current holder of a host, or of a wildcard over it, has records for it and so keeps it."""
    held = next((name for name in (host, *wildcards_over(host)) if holders.holder(name)), None)
    return held is not None and holders.holder(held) in _own(owners, held, found)


def _cleared(
    holders: HostHolders, owners: HostOwners, given: Mapping[str, str], found: Mapping[str, set[str]]
) -> Iterator[bool]:
    """Release hosts below reassigned wildcards if their holders have no records for them."""
    for host in holders.hosts() if any(name.startswith("*.") for name in given) else ():
        holder = holders.holder(host)
        is_below = any(given.get(wildcard, holder) != holder for wildcard in wildcards_over(host))
        is_lost = is_below and holder not in _own(owners, host, found)
        if is_lost:
            holders.release(host)
        yield is_lost
