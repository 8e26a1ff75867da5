"""Addresses: what the API server takes for an IP address."""

from __future__ import annotations

import ipaddress


def is_ip(text: str) -> bool:
    """Say whether a text is an IPv4 or IPv6 address; one with a zone is none to the API server."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return "%" not in text
