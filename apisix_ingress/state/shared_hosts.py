"""Neighbours: which namespaces publish routes for one host, so that their objects say so. Nothing is decided by it.

Only used where any namespace may use any host. It is kept from what is published, not read by translations: nearly
every host has one object, and for thousands of others another read would cost more than it tells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.host_claims import EVERY_HOST, wildcards_over
from apisix_ingress.model.records import Record

MOST_WOKEN = 1000
"""Objects of one host that are told anew when a namespace comes or goes; the others are when they change."""

MOST_NOTES = 3
"""Hosts that are told of one object."""

_LEVELS = 2
"""Wildcards over a host that are looked at, the most specific ones."""

_SEVERAL = 3
"""From so many namespaces on, it makes no difference to what is told whether one comes or goes."""

_Group = dict[str, dict[ObjectKey, None]]


class _Groups:
    """Owners by a text and by namespace. Nearly every text has one owner, so that one alone is kept as itself."""

    def __init__(self) -> None:
        self._found: dict[str, ObjectKey | _Group] = {}

    def of(self, text: str) -> _Group:
        found = self._found.get(text)
        if found is None:
            return {}
        return {found.namespace: {found: None}} if isinstance(found, ObjectKey) else found

    def put(self, text: str, owner: ObjectKey, *, there: bool) -> bool:
        """Add or remove an owner; say whether what is told of the namespaces may change."""
        group = self.of(text)
        before = len(group)
        if there:
            group.setdefault(owner.namespace, {})[owner] = None
        elif owner.namespace in group:
            group[owner.namespace].pop(owner, None)
            if not group[owner.namespace]:
                del group[owner.namespace]
        self._keep(text, group)
        return len(group) != before and min(before, len(group)) < _SEVERAL

    def others(self, text: str, namespace: str) -> str:
        """Return who else is there, for a message; empty: nobody."""
        group = self.of(text)
        count = len(group) - (namespace in group)
        if count > 1:
            return "other namespaces"
        return next((f"namespace {other}" for other in group if other != namespace), "")

    def _keep(self, text: str, group: _Group) -> None:
        owners = next(iter(group.values())) if len(group) == 1 else ()
        if not group:
            self._found.pop(text, None)
        elif len(owners) == 1:
            self._found[text] = next(iter(owners))
        else:
            self._found[text] = group


class SharedHosts:
    """Owners of published routes by host."""

    def __init__(self) -> None:
        self._users = _Groups()
        self._below = _Groups()

    def replace(self, owner: ObjectKey, before: Collection[str], after: Collection[str]) -> frozenset[ObjectKey]:
        """Note which hosts an owner publishes instead of others; return the owners elsewhere that are told anew."""
        told: list[_Group] = []
        for host in {*before} ^ {*after}:
            if self._users.put(host, owner, there=host in after):
                told += [self._users.of(host), self._below.of(host)]
        had, has = _over(before), _over(after)
        told += [self._users.of(each) for each in had ^ has if self._below.put(each, owner, there=each in has)]
        found = (key for group in told for space, keys in group.items() if space != owner.namespace for key in keys)
        return frozenset(islice(found, MOST_WOKEN))

    def notes(self, owner: ObjectKey, hosts: Iterable[str]) -> tuple[str, ...]:
        """Return what an owner is told about its hosts, at most of a few."""
        return tuple(islice((note for host in sorted(hosts) for note in self._of(owner.namespace, host)), MOST_NOTES))

    def _of(self, namespace: str, host: str) -> Iterator[str]:
        if who := self._users.others(host, namespace):
            yield f"host {host} is used in {who} as well: rules there and here may take each other's requests"
        for wildcard in _near(host):
            if who := self._users.others(wildcard, namespace):
                yield f"host {host} is below {wildcard}, which is used in {who}: requests for it come here"
        if who := self._below.others(host, namespace):
            yield f"names below {host} are used in {who}: requests for them go there"


def shared_hosts(records: Iterable[Record]) -> frozenset[str]:
    """Return the hosts that routes are published for; rules for every host are nobody's in particular."""
    hosts = (host for record in records if record.key.kind == "routes" for host in record.hosts)
    return frozenset(host for host in hosts if host != EVERY_HOST)


def _near(host: str) -> Iterator[str]:
    return islice(wildcards_over(host), _LEVELS)


def _over(hosts: Iterable[str]) -> set[str]:
    return {wildcard for host in hosts for wildcard in _near(host)}
