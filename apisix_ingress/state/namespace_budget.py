"""Limits the size of all records that the objects of one namespace generate.

A small object may reference a Secret of several kilobytes, and each such object creates a copy in memory and in the
gateways. `providers` handles objects that exceed the limit.
"""

from __future__ import annotations

from collections import Counter

from apisix_ingress.model.keys import ObjectKey

MOST_BYTES = 128 * 2**20
"""Bytes of all records of a namespace: some 16,000 certificates with their keys, or 100,000 routes."""


class NamespaceBudget:
    """Bytes by owner, and the owners that exceed the limit.

    Args:
        most: Bytes that one namespace may use.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = most
        self._namespaces: dict[ObjectKey, str] = {}
        self._sizes: dict[ObjectKey, int] = {}
        self._used: Counter[str] = Counter()
        self._waiting: dict[str, dict[ObjectKey, int]] = {}

    def payer(self, owner: ObjectKey) -> str:
        """Return the namespace whose budget an owner's records count against; empty if they count against none."""
        return self._namespaces.get(owner, owner.namespace)

    def assign(self, owner: ObjectKey, namespace: str) -> None:
        """Set the payer of an owner without a namespace; empty removes it. What the owner has moves with it."""
        if namespace == self.payer(owner):
            return
        size = self._sizes.get(owner, 0)
        self.spend(owner, 0)
        if namespace:
            self._namespaces[owner] = namespace
            self.spend(owner, size)
        else:
            del self._namespaces[owner]

    def fits(self, owner: ObjectKey, size: int) -> bool:
        """Return whether an owner's records may have this size; a size that is not larger than before always fits."""
        before, payer = self._sizes.get(owner, 0), self.payer(owner)
        return size <= before or not payer or self._used[payer] - before + size <= self.most

    def spend(self, owner: ObjectKey, size: int) -> None:
        """Set the size of an owner's records; the owner no longer waits."""
        namespace, before = self.payer(owner), self._sizes.pop(owner, 0)
        size = size if namespace else 0
        self._used[namespace] += size - before
        if size:
            self._sizes[owner] = size
        if not self._used[namespace]:
            del self._used[namespace]
        self.keep(owner)

    def wait(self, owner: ObjectKey, size: int) -> None:
        """Let an owner wait whose records of this size do not fit; it keeps its former records."""
        self._waiting.setdefault(self.payer(owner), {})[owner] = size

    def keep(self, owner: ObjectKey) -> None:
        """End an owner's wait: it keeps its former records for a reason other than their size."""
        payer = self.payer(owner)
        waiting = self._waiting.get(payer, {})
        if waiting.pop(owner, None) is not None and not waiting:
            del self._waiting[payer]

    def admitted(self, namespace: str) -> tuple[ObjectKey, ...]:
        """Return the waiting owners that now fit together; the one that has waited longest comes first."""
        if namespace not in self._waiting:
            return ()
        free = self.most - self._used[namespace]
        found = []
        for owner, size in self._waiting[namespace].items():
            free -= size - self._sizes.get(owner, 0)
            if free < 0:
                break
            found.append(owner)
        return tuple(found)
