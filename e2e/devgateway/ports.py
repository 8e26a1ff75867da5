"""Loopback addresses: free ports and `host:port` strings."""

from __future__ import annotations

import itertools
import os
import socket

# Below the range of ports for outgoing connections (net.ipv4.ip_local_port_range begins at 32768): a port of that range
# may be taken after it is chosen and before a process listens on it.
PORTS = range(10_240, 21_000)
INNER_PORTS = range(21_000, 32_000)
"""For a process that got ports from its parent: these look free, because no process listens there yet."""
_STRIDE = 211
# Processes that choose at the same time begin at different ports.
_turns = itertools.count(os.getpid() * 7919)


def free_port(host: str = "127.0.0.1", *, among: range = PORTS) -> int:
    """Return a free TCP port that this process has not returned before.

    Args:
        host: The address to listen on.
        among: The ports to choose from, e.g. `INNER_PORTS`.

    Raises:
        OSError: None of a thousand ports is free.
    """
    for turn in itertools.islice(_turns, 1000):
        port = among[turn * _STRIDE % len(among)]
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port on {host}")


def split_address(text: str) -> tuple[str, int]:
    """Split `host:port` or `[v6]:port`; raises ValueError."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not host:port")
    return host.strip("[]"), int(port)
