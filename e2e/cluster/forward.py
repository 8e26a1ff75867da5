"""Forwards TCP connections from a listening socket to an address, to publish ports of a network namespace.

A socket belongs to the namespace in which it was created: a listener from outside and a connection from inside connect
the two.
"""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Sequence

CHUNK = 64 * 1024


async def forward(listeners: Sequence[socket.socket]) -> None:
    """Accept on every listener and forward each connection to the same port on 127.0.0.1, until cancelled."""
    async with contextlib.AsyncExitStack() as stack:
        for listener in listeners:
            port = listener.getsockname()[1]
            await stack.enter_async_context(await asyncio.start_server(_Carrier(port), sock=listener))
        await asyncio.Event().wait()


class _Carrier:
    """Serves the connections of one port."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            # Nothing listens inside: the client's connection is closed, as with any stopped server.
            writer.close()
            return
        try:
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        finally:
            back.close()
            writer.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(CHUNK):
            sink.write(data)
            await sink.drain()
        sink.write_eof()
    except OSError:
        # A reset on either side: no more data can be exchanged, so the other direction is closed as well.
        sink.close()


async def run_with_ports(command: Sequence[str], listeners: Sequence[socket.socket]) -> int:
    """Run a command while connections to the listeners are forwarded, and return its exit status.

    SIGTERM and SIGINT are forwarded to the command, except a Ctrl-C at the terminal, which reaches it anyway.
    """
    loop = asyncio.get_running_loop()
    child = await asyncio.create_subprocess_exec(*command)

    def interrupt() -> None:
        if not _hears_terminal():
            child.send_signal(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, interrupt)
    loop.add_signal_handler(signal.SIGTERM, child.terminate)
    carrier = asyncio.create_task(forward(listeners), name="forward")
    try:
        status = await child.wait()
    finally:
        carrier.cancel()
        await asyncio.gather(carrier, return_exceptions=True)
    return status if status >= 0 else 128 - status


def _hears_terminal() -> bool:
    """Return whether a Ctrl-C reaches this process and its children: a second SIGINT would interrupt their cleanup."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
