"""A whole list put into a store at once; a reflector does the same in steps."""

from collections.abc import Iterable
from typing import Any

from apisix_ingress.state.store import Store


def relist(store: Store[Any], items: Iterable[Any]) -> None:
    """Make a store equal to a complete list."""
    seen = set()
    for item in items:
        seen.add(item.meta.key)
        store.set(item)
    for key in store.keys():  # noqa: SIM118  # a store is not a mapping
        if key not in seen:
            store.delete(key)
    store.synced = True
