"""TLS handshakes of new connections: their number is limited, and only finished ones become connections of the server.

asyncio's server has no such limit. A handshake takes about 200 KiB of memory, which any Pod in the Kubernetes cluster
can request without a certificate, and for as long as the timeout.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable


class Handshakes:
    """The handshakes of one server; pass its `receiver` to `create_server`, without TLS.

    Args:
        context: For the server.
        accept: Returns the protocol of a connection whose handshake has succeeded.
        most: Maximum number of handshakes; one more ends the oldest one, which a client that is alive has finished.
        seconds: The time limit of a handshake.
        shutdown: The time limit for closing TLS, in seconds.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        accept: Callable[[], asyncio.Protocol],
        *,
        most: int,
        seconds: float,
        shutdown: float,
    ) -> None:
        self._context = context
        self._accept = accept
        self._most = most
        self._seconds = seconds
        self._shutdown = shutdown
        self._pending: dict[asyncio.Task[None], asyncio.Transport] = {}

    def __len__(self) -> int:
        """Return the number of handshakes."""
        return len(self._pending)

    def receiver(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        return _Receiver(self._begin)

    def close(self) -> None:
        """End all handshakes."""
        while self._pending:
            self._end_oldest()

    def _begin(self, receiver: _Receiver, transport: asyncio.Transport) -> None:
        if len(self._pending) >= self._most:
            self._end_oldest()
        work = self._finish(receiver, transport)
        task = asyncio.get_running_loop().create_task(work, name="webhook-handshake")
        self._pending[task] = transport
        task.add_done_callback(lambda done: self._pending.pop(done, None))

    def _end_oldest(self) -> None:
        task = next(iter(self._pending))
        self._pending.pop(task).abort()

    async def _finish(self, receiver: _Receiver, transport: asyncio.Transport) -> None:
        """Carry out a handshake, and connect the server to the client."""
        if transport.is_closing():
            return
        try:
            secure = await asyncio.get_running_loop().start_tls(
                transport,
                receiver,
                self._context,
                server_side=True,
                ssl_handshake_timeout=self._seconds,
                ssl_shutdown_timeout=self._shutdown,
            )
        except OSError:  # TLS errors, timeouts and lost connections: clients cause them at will
            transport.abort()
            return
        if secure is not None:
            receiver.hand_over(secure, self._accept())


class _Receiver(asyncio.Protocol):
    """Receives a new connection, and what arrives before the protocol of the server takes over."""

    def __init__(self, begin: Callable[[_Receiver, asyncio.Transport], None]) -> None:
        self._begin = begin
        self._early = bytearray()
        self._is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake."""
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()  # the handshake resumes it
        self._begin(self, transport)

    def data_received(self, data: bytes) -> None:
        """Keep what arrives in the step that ends the handshake."""
        self._early += data

    def connection_lost(self, error: Exception | None) -> None:
        """Note that there is nothing to hand over."""
        self._is_lost = True

    def hand_over(self, transport: asyncio.Transport, protocol: asyncio.Protocol) -> None:
        """Let the protocol of the server continue."""
        if self._is_lost:
            return
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if self._early:
            protocol.data_received(bytes(self._early))
