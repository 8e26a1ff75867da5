"""The namespaces that hold hosts. A namespace holds a host as long as its objects use the host.

Until the table is settled, the oldest object decides, whatever the order in which objects arrive. Afterwards age no
longer matters for a host with a holder, because a host may be added to an object long after its creation.
Only used with `host_ownership: namespace`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from apisix_ingress.model.keys import IndexKey, ObjectKey
from apisix_ingress.model.network.host_claims import wildcards_over

HOLDER_INDEX, BELOW_INDEX = "host-holder", "host-holders-below"


def holder_read(host: str) -> IndexKey:
    """Return the read of a host's holder."""
    return IndexKey("Namespace", HOLDER_INDEX, host)


def below_read(wildcard: str) -> IndexKey:
    """Return the read of the holders of names below a wildcard."""
    return IndexKey("Namespace", BELOW_INDEX, wildcard)


class HostHolders:
    """Holders of hosts, and the owners that claim them.

    Args:
        listener: Called with each read whose result changed.
    """

    def __init__(self, listener: Callable[[IndexKey], None]) -> None:
        self._listener = listener
        self._settled = False
        self._of_owner: dict[ObjectKey, frozenset[str]] = {}
        # Host → namespace → number of its owners that claim it.
        self._claims: dict[str, dict[str, int]] = {}
        self._holders: dict[str, str] = {}
        # Wildcard → namespace → number of hosts below the wildcard that the namespace holds.
        self._below: dict[str, dict[str, int]] = {}

    def holder(self, host: str) -> str:
        """Return the namespace that holds a host or wildcard; empty if there is no holder."""
        return self._holders.get(host, "")

    def hosts(self) -> tuple[str, ...]:
        """Return the hosts that have a holder."""
        return tuple(self._holders)

    def below(self, wildcard: str) -> Collection[str]:
        """Return the namespaces that hold a name below a wildcard."""
        return self._below.get(wildcard, {}).keys()

    @property
    def is_settled(self) -> bool:
        """Whether hosts stay with their holders; before, the oldest object decides."""
        return self._settled

    def claim(self, owner: ObjectKey, hosts: Iterable[str]) -> None:
        """Replace the hosts that an owner claims: hosts that it uses and that belong to its namespace."""
        before, after = self._of_owner.get(owner, frozenset()), frozenset(hosts)
        if after:
            self._of_owner[owner] = after
        else:
            self._of_owner.pop(owner, None)
        for host in after - before:
            _count(self._claims, host, owner.namespace, 1)
            if self._settled and host not in self._holders:
                self._hold(host, owner.namespace)
        for host in before - after:
            _count(self._claims, host, owner.namespace, -1)
            if owner.namespace not in self._claims.get(host, {}) and self.holder(host) == owner.namespace:
                self.release(host)

    def settle(self) -> None:
        """From now on, every host stays with its current namespace."""
        if not self._settled:
            self._settled = True
            for host, namespaces in self._claims.items():
                self._hold(host, next(iter(namespaces)))

    def give(self, host: str, namespace: str) -> None:
        """Assign a host to a namespace, because a gateway has the host for that namespace."""
        if self.holder(host) != namespace:
            if host in self._holders:
                self.release(host)
            self._hold(host, namespace)
            self._listener(holder_read(host))

    def _hold(self, host: str, namespace: str) -> None:
        # No notification: the host already belonged to this namespace, which has the oldest object.
        self._holders[host] = namespace
        for wildcard in wildcards_over(host):
            _count(self._below, wildcard, namespace, 1)

    def release(self, host: str) -> None:
        """Remove the holder of a host."""
        namespace = self._holders.pop(host)
        self._listener(holder_read(host))
        for wildcard in wildcards_over(host):
            if not _count(self._below, wildcard, namespace, -1):
                self._listener(below_read(wildcard))


def _count(counts: dict[str, dict[str, int]], name: str, namespace: str, change: int) -> int:
    """Change a count and return it; remove counts of zero."""
    found = counts.setdefault(name, {})
    number = found[namespace] = found.get(namespace, 0) + change
    if not number:
        del found[namespace]
    if not found:
        del counts[name]
    return number
