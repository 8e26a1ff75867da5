"""Tracks which namespaces publish routes for the same host, so that their objects can report it.

Only used if any namespace may use any host. It is updated from published records, not through reads of translations:
nearly every host has one object, so another read per host would cost more than it is worth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice

from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.network.host_claims import EVERY_HOST, wildcards_over
from apisix_ingress.model.records import Record

MOST_WOKEN = 1000
"""Maximum number of objects updated when a namespace starts or stops using a host; others follow when they change."""

MOST_NOTES = 3
"""Maximum number of notes per object."""

_LEVELS = 2
"""Number of wildcards above a host that are checked, the most specific ones."""

_SEVERAL = 3
"""With this many namespaces or more, one more or less does not change the notes."""

_Group = dict[str, dict[ObjectKey, None]]


class _Groups:
    """Owners by host and by namespace. Nearly every host has one owner, which is stored without nesting."""

    def __init__(self) -> None:
        self._found: dict[str, ObjectKey | _Group] = {}

    def of(self, host: str) -> _Group:
        found = self._found.get(host)
        if found is None:
            return {}
        return {found.namespace: {found: None}} if isinstance(found, ObjectKey) else found

    def put(self, host: str, owner: ObjectKey, *, is_used: bool) -> bool:
        """Add or remove an owner; return whether notes of other objects may change."""
        if is_used and host not in self._found:
            self._found[host] = owner
            return True
        group = self.of(host)
        before = len(group)
        if is_used:
            group.setdefault(owner.namespace, {})[owner] = None
        elif owner.namespace in group:
            group[owner.namespace].pop(owner, None)
            if not group[owner.namespace]:
                del group[owner.namespace]
        self._keep(host, group)
        return len(group) != before and min(before, len(group)) < _SEVERAL

    def others(self, host: str, namespace: str) -> str:
        """Return the other namespaces that use a host, for a message; empty if there are none."""
        if host not in self._found:
            return ""
        group = self.of(host)
        count = len(group) - (namespace in group)
        if count > 1:
            return "other namespaces"
        return next((f"namespace {other}" for other in group if other != namespace), "")

    def _keep(self, host: str, group: _Group) -> None:
        owners = next(iter(group.values())) if len(group) == 1 else ()
        if not group:
            self._found.pop(host, None)
        elif len(owners) == 1:
            self._found[host] = next(iter(owners))
        else:
            self._found[host] = group


class SharedHosts:
    """Owners of published routes by host."""

    def __init__(self) -> None:
        self._users = _Groups()
        self._below = _Groups()

    def replace(self, owner: ObjectKey, before: Collection[str], after: Collection[str]) -> frozenset[ObjectKey]:
        """Replace an owner's published hosts; return owners in other namespaces whose notes may change."""
        if before == after:
            return frozenset()
        affected: list[_Group] = []
        for host in {*before} ^ {*after}:
            if self._users.put(host, owner, is_used=host in after):
                affected += [self._users.of(host), self._below.of(host)]
        had, has = _over(before), _over(after)
        affected += [self._users.of(each) for each in had ^ has if self._below.put(each, owner, is_used=each in has)]
        found = (key for group in affected for space, keys in group.items() if space != owner.namespace for key in keys)
        return frozenset(islice(found, MOST_WOKEN))

    def notes(self, owner: ObjectKey, hosts: Iterable[str]) -> tuple[str, ...]:
        """Return the notes for an owner's hosts, at most `MOST_NOTES`."""
        return tuple(islice((note for host in sorted(hosts) for note in self._of(owner.namespace, host)), MOST_NOTES))

    def _of(self, namespace: str, host: str) -> Iterator[str]:
        if who := self._users.others(host, namespace):
            yield f"host {host} is also used in {who}: routes there and here may match the same requests"
        for wildcard in _near(host):
            if who := self._users.others(wildcard, namespace):
                yield f"host {host} is also matched by {wildcard} in {who}: requests for {host} are routed here"
        if who := self._below.others(host, namespace):
            yield f"hosts below {host} are used in {who}: requests for these hosts are routed there"


def shared_hosts(records: Iterable[Record]) -> frozenset[str]:
    """Return the hosts of published routes, without routes for every host."""
    found = {host for record in records if record.key.kind == "routes" for host in record.hosts}
    found.discard(EVERY_HOST)
    return frozenset(found)


def _near(host: str) -> Iterator[str]:
    return islice(wildcards_over(host), _LEVELS)


def _over(hosts: Iterable[str]) -> set[str]:
    return {wildcard for host in hosts for wildcard in _near(host)}
