"""Servers in this process, over real HTTP on the loopback address."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from aiohttp import web


class Listening(ABC):
    """A server; an async context manager."""

    def __init__(self) -> None:
        self.port = 0
        self._runner: web.AppRunner | None = None

    @abstractmethod
    def _app(self) -> web.Application:
        """Return the handler."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; after a `stop`, on the same port with the same content."""
        self._runner = web.AppRunner(self._app(), shutdown_timeout=0.0, handler_cancellation=True)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Close every connection and stop listening."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()
