"""Host names of listeners and routes: their intersection, and which is more specific.

A wildcard matches one or more labels (Gateway API: Hostname). The empty string means every host.
"""

from __future__ import annotations

from collections.abc import Iterable


def covers(wide: str, host: str) -> bool:
    """Return whether every request for a host or wildcard also matches `wide`."""
    if not wide or wide == host:
        return True
    return wide.startswith("*.") and host.removeprefix("*").endswith(wide[1:])


def intersection(one: str, other: str) -> str | None:
    """Return the more specific of two host names if they overlap, else None."""
    if covers(one, other):
        return other
    return one if covers(other, one) else None


def shared_hosts(listener: str, route: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts that a listener and a route have in common; the empty string means every host.

    Args:
        listener: The hostname of the listener.
        route: The hostnames of the route; without any, every host.
    """
    shared = (intersection(listener, host.lower()) for host in (tuple(route) or ("",)))
    return tuple(dict.fromkeys(host for host in shared if host is not None))


def pattern(host: str) -> str:
    """Return the regular expression, without anchors, of the server names that a listener's hostname matches."""
    escaped = "".join(char if char.isalnum() else f"\\{char}" for char in host.removeprefix("*"))
    return f".+{escaped}" if host.startswith("*") else escaped
