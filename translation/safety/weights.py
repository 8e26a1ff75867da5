"""Weights of nodes: how much work they are for a gateway.

Gateways accept any weight. But after a failed connection, the round robin of APISIX may select a node as often as its
weight says before it selects another one, and consistent hashing creates 160 points for each unit of weight. Nothing
interrupts either of them. Measured on APISIX 3.18 with one worker: with the weights 10^8 and 1, one request blocked all
others for 53 s; with consistent hashing, 10^6 and 1 did, and took 1.4 GB.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Any

MOST_SHARES, MOST_SHARES_OF_HASHING = 10_000, 2_000
"""Maximum of `shares`: some milliseconds of work."""


def most_shares(upstream: Mapping[str, Any]) -> int:
    """Return the maximum for an upstream."""
    return MOST_SHARES_OF_HASHING if upstream.get("type") == "chash" else MOST_SHARES


def shares(nodes: Any) -> int:
    """Return by how much the weights of nodes exceed their number, after division by their greatest common divisor.

    Nodes are a list or a mapping of a configuration. Nodes that a gateway rejects count as 0, as do equal
    weights, which nearly all upstreams have.
    """
    try:
        weights = list(nodes.values()) if isinstance(nodes, dict) else [node["weight"] for node in nodes]
        if len(set(weights)) < 2:
            return 0
        whole = list(map(int, weights))
    except (TypeError, KeyError, ValueError):
        return 0
    return max(0, sum(whole) // (gcd(*whole) or 1) - len(whole))
