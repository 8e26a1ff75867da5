"""Counts the requests of each client and the bytes of their bodies, so that one client cannot take the room of all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


class Full(Exception):
    """There is no room for a request."""


@dataclass(slots=True)
class Room:
    """The room for concurrent requests: a client gets at most half of what the others leave.

    Attributes:
        requests: Maximum number of requests.
        memory: Maximum bytes of their bodies.
    """

    requests: int
    memory: int
    _requests: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _memory: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _all_requests: int = 0
    _all_memory: int = 0

    @contextmanager
    def taken(self, client: str, size: int) -> Iterator[None]:
        """Count a request while it is handled.

        Raises:
            Full: There is no room for it.
        """
        requests, memory = self._requests[client], self._memory[client]
        if 2 * (requests + 1) > self.requests - self._all_requests + requests:
            raise Full
        if 2 * (memory + size) > self.memory - self._all_memory + memory:
            raise Full
        self._add(client, 1, size)
        try:
            yield
        finally:
            self._add(client, -1, -size)
            if not self._requests[client]:
                del self._requests[client], self._memory[client]

    def _add(self, client: str, requests: int, size: int) -> None:
        self._requests[client] += requests
        self._memory[client] += size
        self._all_requests += requests
        self._all_memory += size
