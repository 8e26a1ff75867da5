"""Owners of hosts: with `host_ownership: namespace`, a host belongs to one namespace, and other namespaces lose it.

A host belongs to the namespace it is assigned to (an annotation of the Namespace), else to the one that already holds
it or a wildcard over it, else to that of the oldest object that names it or a wildcard over it. A wildcard also
requires that no other namespace owns a name below it; otherwise it claims nothing, not even free names. Listeners of
Gateways lend hosts of their namespace to the routes that they allow. A port of streams belongs to the namespace that it
is assigned to, if any: its connections may be for every host, with the certificates of all of them. Therefore no
request matches hosts of two namespaces, and priorities, paths and the gateway's order of matching have no effect across
namespaces. Ownership does not depend on whether an object can be translated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import reduce
from heapq import merge
from itertools import islice, takewhile

from apisix_ingress.model.keys import IndexKey
from apisix_ingress.model.kinds.gateway_api import GATEWAY_KINDS
from apisix_ingress.model.kinds.indexes import ASSIGNED_INDEX, ASSIGNED_UNDER_INDEX, HOST_INDEX, LENT_INDEX, UNDER_INDEX
from apisix_ingress.model.kinds.table import kinds_with
from apisix_ingress.model.network.host_claims import (
    ASSIGNABLE,
    EVERY_HOST,
    NO_HOST,
    SHARED_WITH,
    claimed_hosts,
    claimed_name,
    claimed_port,
    has_colon,
    is_ownable,
    lent_key,
    shares_with,
    wildcards_over,
)
from apisix_ingress.model.objects import ASSIGNED_HOSTS, Age, CustomObject, Namespace
from apisix_ingress.model.records import Record
from apisix_ingress.state.holds import Hold
from apisix_ingress.state.store import TOP
from apisix_ingress.state.view import View, oldest
from translation.core.options import Options
from translation.core.scope import in_scope, is_ours
from translation.gateway.entry.owned import has_parent_of_ours, is_our_gateway, our_gateway, parent_of
from translation.nginx.classes import is_served

NOT_OWNED = "HostNotOwned"

MOST_BELOW = 1000
"""Maximum number of older objects with names below a wildcard that are read; if there are more, the wildcard is
skipped."""

NAMING_KINDS = kinds_with(HOST_INDEX)
"""Kinds of objects that have hosts."""

_LISTENING = ("Gateway", "ListenerSet")
"""Kinds that name the ports that clients use; records and stream rules name the ports of the gateways."""


class HostOwners:
    """The owners of hosts, from the point of view of one translation.

    Args:
        view: The objects to read.
        options: The settings; with `host_ownership: shared` every namespace may use every host.
    """

    def __init__(self, view: View, options: Options) -> None:
        self._view = view
        self._options = options
        self._is_shared = options.host_ownership == "shared"
        self._refusals: dict[tuple[str, str], str] = {}
        self._oldest: dict[str, CustomObject | None] = {}
        self._claimants: dict[str, CustomObject | None] = {}
        self._assignees: dict[str, tuple[str, ...]] = {}

    def refusal(self, namespace: str, host: str) -> str:
        """Return why a namespace may not use a host, as a sentence with the remedy; empty if it may.

        Args:
            namespace: Of the object.
            host: As written; empty for every host.
        """
        if self._is_shared:
            return ""
        name = claimed_name(host) or EVERY_HOST
        if (namespace, name) not in self._refusals:
            self._refusals[namespace, name] = self._judge(namespace, name)
        return self._refusals[namespace, name]

    def refusal_of_unnamed(self, namespace: str, host: str, lenders: AbstractSet[str] = frozenset()) -> str:
        """Return why a namespace may not use a host that its object need not name itself; empty if it may.

        Args:
            namespace: Of the object.
            host: As written; empty for every host.
            lenders: Other namespaces that let the object use their hosts, such as that of a listener.
        """
        name = claimed_name(host) or EVERY_HOST
        if self._is_shared or (name != EVERY_HOST and is_ownable(name) and self._is_free(name)):
            return "" if self._is_shared else self._overlap({namespace, *lenders}, namespace, name)
        return self._judge(namespace, name, lenders)

    def taken_by(self, namespace: str, host: str) -> tuple[str, ...]:
        """Return the other namespaces that own a host; empty if this one may use it, or if it has no owner."""
        name = claimed_name(host)
        owners = () if self._is_shared else self._owners(name)
        is_free = not owners or namespace in owners or self._is_shared_by(owners, namespace, name)
        return () if is_free else owners

    def owned(self, obj: CustomObject) -> frozenset[str]:
        """Return the hosts of an object that belong to its namespace, without hosts that are lent to it."""
        space = obj.meta.namespace
        names = _claims(obj, self._options)
        return frozenset(name for name in names if space in self._owners(name) and not self.refusal(space, name))

    def names(self, namespace: str, host: str) -> bool:
        """Return whether an object in scope in a namespace names exactly this host."""
        found = (self._ours(kind, HOST_INDEX, host) for kind in NAMING_KINDS)
        return any(item.meta.namespace == namespace for items in found for item in items)

    def lends(self, owner: str, namespace: str, host: str) -> bool:
        """Return whether objects of one namespace lend a host that they name to another namespace."""
        return self._is_shared_by((owner,), namespace, host)

    def _is_free(self, name: str) -> bool:
        return not self._needs_assignment(name) and not self._owners(name)

    def _needs_assignment(self, name: str) -> bool:
        return self._options.host_ownership == "assigned" or name.startswith(":")

    def _judge(self, namespace: str, name: str, lenders: AbstractSet[str] = frozenset()) -> str:
        if namespace in self._assigned(EVERY_HOST) and name == EVERY_HOST:
            return ""
        if name == EVERY_HOST:
            return (
                "matches requests for every host, including those of other namespaces: add hosts, or ask the"
                f" operator to add {EVERY_HOST} to the annotation {ASSIGNED_HOSTS} of Namespace {namespace}"
            )
        if name == NO_HOST:
            return self._refusal_of_no_host(namespace)
        if has_colon(name):
            return f"host {name} is skipped: it contains ':' but is not an IPv6 address in brackets; correct it"
        if not is_ownable(name):
            return f"host {name} is skipped: a wildcard has to begin with '*.'; list the hosts or write *.{name[1:]}"
        owners = self._owners(name)
        allowed = {namespace, *lenders}
        if (
            not owners
            and self._options.host_ownership == "namespace"
            and (why := self._overlap(allowed, namespace, name))
        ):
            return why
        if allowed.isdisjoint(owners):
            if not self._is_shared_by(owners, namespace, name):
                return self._foreign(namespace, name, owners)
            allowed |= {*owners}
        return self._overlap(allowed, namespace, name)

    def _refusal_of_no_host(self, namespace: str) -> str:
        """Return why a namespace may not serve requests without a host; empty if it may."""
        if any(namespace in self._assigned(name) for name in ASSIGNABLE):
            return ""
        return (
            f"host {NO_HOST} is skipped: gateways use it for requests without a host; ask the operator to add {NO_HOST}"
            f" to the annotation {ASSIGNED_HOSTS} of Namespace {namespace}"
        )

    def _overlap(self, allowed: AbstractSet[str], namespace: str, name: str) -> str:
        """Return why a wildcard cannot be used because of names below it; empty if it can."""
        if name.startswith("*.") and (other := self._below(allowed, name, self._first(name))):
            return (
                f"host {name} is skipped: {other} has a name below it; list your hosts one by one, or ask the"
                f" operator to add {name} to the annotation {ASSIGNED_HOSTS} of Namespace {namespace}"
            )
        return ""

    def _foreign(self, namespace: str, name: str, owners: tuple[str, ...]) -> str:
        what = f"port {name[1:]}" if name.startswith(":") else f"host {name}"
        if owners:
            return (
                f"{what} is skipped: it belongs to namespace {', '.join(owners)}; use another one, or ask its owner"
                f" to annotate the object that names it with {SHARED_WITH}: {namespace}"
            )
        if self._needs_assignment(name):
            return (
                f"{what} is skipped: it is not assigned to any namespace; ask the operator to add {name} to the"
                f" annotation {ASSIGNED_HOSTS} of Namespace {namespace}"
            )
        return f"{what} is skipped: no object names it; add it to the hosts of this one"

    def _owners(self, name: str) -> tuple[str, ...]:
        """Return the namespace that owns a host; several if it is assigned to several; empty if no object names it."""
        names = (name, *wildcards_over(name))
        if assigned := next(filter(None, map(self._assigned, names)), ()):
            return assigned
        if self._needs_assignment(name):
            return ()
        if holder := next(filter(None, map(self._view.host_holder, names)), ""):
            return (holder,)
        first = self._first(name)
        return (first.meta.namespace,) if first is not None else ()

    def _assigned(self, name: str) -> tuple[str, ...]:
        if name not in self._assignees:
            found = self._view.find(Namespace, IndexKey("Namespace", ASSIGNED_INDEX, name))
            self._assignees[name] = tuple(item.meta.name for item in found)
        return self._assignees[name]

    def _first(self, name: str) -> CustomObject | None:
        """Return the oldest object in scope that names a host or a usable wildcard over it."""
        first = self._claimant(name)
        for wildcard in wildcards_over(name):
            named = self._naming(wildcard)
            if named is not None and (first is None or named.meta.age < first.meta.age):
                first = _older(first, self._claimant(wildcard))
        return first

    def _claimant(self, name: str) -> CustomObject | None:
        """Return the oldest object in scope that names exactly this and, if it is a wildcard, may use it."""
        if not name.startswith("*."):
            return self._naming(name)
        if name not in self._claimants:
            self._claimants[name] = self._usable_claim(name)
        return self._claimants[name]

    def _usable_claim(self, wildcard: str) -> CustomObject | None:
        above: CustomObject | None = None
        for wider in wildcards_over(wildcard):
            above = _older(above, self._claimant(wider))
        tried: set[str] = set()
        for item in merge(*(self._ours(kind, HOST_INDEX, wildcard) for kind in NAMING_KINDS), key=_age):
            space = item.meta.namespace
            if len(tried) == TOP or (
                above is not None and above.meta.age < item.meta.age and above.meta.namespace != space
            ):
                return None
            if space not in tried and not self._below({space}, wildcard, _older(item, above)):
                return item
            tried.add(space)
        return None

    def _naming(self, name: str) -> CustomObject | None:
        """Return the oldest object in scope that names exactly this."""
        if name not in self._oldest:
            found = (next(self._ours(kind, HOST_INDEX, name), None) for kind in NAMING_KINDS)
            self._oldest[name] = reduce(_older, found, None)
        return self._oldest[name]

    def _ours(self, kind: str, index: str, name: str) -> Iterator[CustomObject]:
        """Yield the objects in scope under a value of an index, the oldest first."""
        found = oldest(self._view, CustomObject, IndexKey(kind, index, name))
        return (item for item in found if self._counts(item))

    def _counts(self, item: CustomObject) -> bool:
        """Return whether this controller serves an object that names hosts."""
        view, options = self._view, self._options
        if item.meta.kind == "ListenerSet":
            return self._leads_to_ours(item)
        if item.meta.kind == "Gateway":
            return is_our_gateway(item, view, options)
        if item.meta.kind in GATEWAY_KINDS:
            return in_scope(item.meta.namespace, view, options) and has_parent_of_ours(item, view, options)
        if is_ours(item, view, options):
            return True
        if options.nginx is None:
            return False
        return is_served(item, view, options, options.nginx)

    def _leads_to_ours(self, listener_set: CustomObject) -> bool:
        parent = parent_of(listener_set)
        return parent is not None and our_gateway(parent, self._view, self._options) is not None

    def _is_shared_by(self, owners: Iterable[str], namespace: str, name: str) -> bool:
        """Return whether one of the owner's oldest objects that lend a host lends it to a namespace."""
        keys = (lent_key(owner, each) for owner in owners for each in (name, *wildcards_over(name)))
        found = (islice(self._ours(kind, LENT_INDEX, key), TOP) for key in keys for kind in NAMING_KINDS)
        return any(shares_with(item, namespace) for items in found for item in items)

    def _below(self, allowed: AbstractSet[str], wildcard: str, first: CustomObject | None) -> str:
        """Return another owner of a name below a wildcard of these namespaces, for a message; empty if none.

        Before hosts have holders, only names of objects that are older than the first one with the wildcard count.
        """
        if any(allowed & {*self._assigned(each)} for each in (wildcard, *wildcards_over(wildcard))):
            return ""
        under = IndexKey("Namespace", ASSIGNED_UNDER_INDEX, wildcard)
        given = (item.meta.name for item in self._view.find(Namespace, under) if item.meta.name not in allowed)
        if (other := next(given, None)) is not None:
            return f"namespace {other}"
        if (holders := self._view.holders_below(wildcard)) is not None:
            return next((f"namespace {other}" for other in sorted(holders) if other not in allowed), "")
        found = (self._older_below(kind, allowed, wildcard, first) for kind in NAMING_KINDS)
        return next((each for each in found if each), "")

    def _older_below(self, kind: str, allowed: AbstractSet[str], wildcard: str, first: CustomObject | None) -> str:
        """Return whose object owns a host below a wildcard and is older than all that name or cover the wildcard."""
        for count, (namespace, name) in enumerate(self._names_below(kind, wildcard, first)):
            if count == MOST_BELOW:
                return f"one of more than {MOST_BELOW} older objects"
            if namespace not in allowed and self._is_first(namespace, name, wildcard):
                return f"namespace {namespace}"
        return ""

    def _names_below(self, kind: str, wildcard: str, first: CustomObject | None) -> Iterator[tuple[str, str]]:
        """Yield namespace and name of the hosts below a wildcard in older objects of a kind."""
        for item in oldest(self._view, CustomObject, IndexKey(kind, UNDER_INDEX, wildcard)):
            if first is not None and item.meta.age >= first.meta.age:
                return
            names = _claims(item, self._options) if self._counts(item) else ()
            yield from (
                (item.meta.namespace, name) for name in names if name != wildcard and name.endswith(wildcard[1:])
            )

    def _is_first(self, namespace: str, name: str, wildcard: str) -> bool:
        """Return whether a namespace was the first to name a host, or a wildcard over it and below another one."""
        between = takewhile(lambda each: each != wildcard, wildcards_over(name))
        first = reduce(_older, map(self._naming, (name, *between)), None)
        return first is not None and first.meta.namespace == namespace


def _older(one: CustomObject | None, other: CustomObject | None) -> CustomObject | None:
    """Return the older one of two objects, either of which may be absent."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=_age)


def _age(item: CustomObject) -> Age:
    return item.meta.age


def _claims(obj: CustomObject, options: Options) -> tuple[str, ...]:
    """Return the hosts that an object names, with the ports of gateways instead of those of listeners."""
    names = claimed_hosts(obj)
    if obj.meta.kind not in _LISTENING or not options.listener_ports:
        return names
    ports = {claimed_port(port): claimed_port(behind) for port, behind in options.listener_ports.items()}
    return tuple(dict.fromkeys(ports.get(name, name) for name in names))


def rests_on_lost_host(records: Iterable[Record], namespace: str, owners: HostOwners) -> bool:
    """Return whether records of a namespace match requests or handshakes for hosts that it may not use now."""
    return any(
        owners.taken_by(namespace, host)
        if record.name.partition("_")[0] in GATEWAY_KINDS
        else owners.refusal(namespace, host)
        for record in records
        for host in record.hosts
    )


def restricted(holds: Iterable[Hold], obj: CustomObject, owners: HostOwners) -> tuple[Hold, ...]:
    """Return the holds of an object, restricted to records of a previous process that only match its hosts.

    Objects of the Gateway API may have records for hosts that only their listeners name.
    """
    if obj.meta.kind in GATEWAY_KINDS and "hostnames" not in obj.spec:
        return tuple(holds)
    hosts = frozenset(host for host in claimed_hosts(obj) if not owners.refusal(obj.meta.namespace, host))
    if not owners.refusal(obj.meta.namespace, EVERY_HOST):
        hosts |= {EVERY_HOST}
    return tuple(hold._replace(hosts=hosts) for hold in holds)
