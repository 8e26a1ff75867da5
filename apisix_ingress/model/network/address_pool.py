"""A pool of addresses, written as addresses and CIDRs."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

MOST_ADDRESSES = 4096
"""Limit of addresses per network."""


def expand_pool(pool: Iterable[str]) -> tuple[str, ...]:
    """Return all addresses of a pool; of a large network only the first ones.

    Raises:
        ValueError: An entry is neither an address nor a network.
    """
    result: dict[str, None] = {}
    for entry in pool:
        network = ipaddress.ip_network(entry, strict=False)
        hosts = network.hosts() if network.num_addresses > 2 else iter(network)
        for _, address in zip(range(MOST_ADDRESSES), hosts, strict=False):
            result[str(address)] = None
    return tuple(result)
