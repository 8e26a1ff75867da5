"""How many bytes of records the objects of one namespace may become.

A few hundred bytes of an object refer to a Secret of kilobytes, and each such object becomes a copy in memory and in
the gateways. What is done with an object that does not fit is decided elsewhere.
"""

from __future__ import annotations

from collections import Counter

from apisix_ingress.model.keys import ObjectKey

MOST_BYTES = 128 * 2**20
"""Bytes of all records of a namespace: some 16,000 certificates with their keys, or 100,000 routes."""


class NamespaceBudget:
    """Bytes by owner, and the owners that do not fit.

    Args:
        most: Bytes that one namespace may use.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.most = most
        self._sizes: dict[ObjectKey, int] = {}
        self._used: Counter[str] = Counter()
        self._waiting: dict[str, dict[ObjectKey, int]] = {}

    def fits(self, owner: ObjectKey, size: int) -> bool:
        """Say whether an owner's records may take so many bytes; what is not more than before always fits."""
        before = self._sizes.get(owner, 0)
        return size <= before or self._used[owner.namespace] - before + size <= self.most

    def spend(self, owner: ObjectKey, size: int) -> None:
        """Count what an owner's records take from now on; it waits no more."""
        namespace, before = owner.namespace, self._sizes.pop(owner, 0)
        self._used[namespace] += size - before
        if size:
            self._sizes[owner] = size
        if not self._used[namespace]:
            del self._used[namespace]
        self.keep(owner)

    def wait(self, owner: ObjectKey, size: int) -> None:
        """Note an owner whose records would take so many bytes, which does not fit; it keeps what it has."""
        self._waiting.setdefault(owner.namespace, {})[owner] = size

    def keep(self, owner: ObjectKey) -> None:
        """Note that an owner keeps what it has, for another reason than its size: it waits no more."""
        waiting = self._waiting.get(owner.namespace, {})
        if waiting.pop(owner, None) is not None and not waiting:
            del self._waiting[owner.namespace]

    def admitted(self, namespace: str) -> tuple[ObjectKey, ...]:
        """Return the waiting owners that fit by now, all of them together; the one that waited longest comes first."""
        free = self.most - self._used[namespace]
        found = []
        for owner, size in self._waiting.get(namespace, {}).items():
            free -= size - self._sizes.get(owner, 0)
            if free < 0:
                break
            found.append(owner)
        return tuple(found)
