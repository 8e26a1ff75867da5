"""Lists that never arrive: a gateway accepts a connection and sends nothing, or one byte at a time. Sockets are real,
time is virtual: it passes only while no data arrives.
"""

import asyncio
import selectors
from collections.abc import Coroutine

import pytest
from pydantic import SecretStr

from apisix_ingress.errors import GatewayUnavailable
from apisix_ingress.gateway.adminapi.client import AdminClient, AdminKey
from tests.unit.apisix_ingress.gateway.adminapi.transport.servers import Behaviour, read_request, serving

SILENCE, WHOLE = 10.0, 60.0


class _PatientSelector(selectors.SelectSelector):
    """Lets the loop's time jump to its next timer when no socket has data."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("everybody waits and no timer is set")
        self.time += 0.0 if ready else max(0.0, timeout or 0.0)
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._patient = _PatientSelector()
        super().__init__(self._patient)

    def time(self) -> float:
        return self._patient.time


def seconds_to_notice(behaviour: Behaviour) -> float:
    """Return the seconds after which a list from such a gateway is given up."""

    async def list_from_it() -> float:
        async with serving(behaviour) as url:
            key = AdminKey(lambda: SecretStr("sesame-key"))
            backend = AdminClient(url, key, controller="apisix-ingress", timeout=5.0, concurrency=2)
            began = asyncio.get_running_loop().time()
            try:
                with pytest.raises(GatewayUnavailable):
                    await backend.list_managed(())
                return asyncio.get_running_loop().time() - began
            finally:
                await backend.aclose()

    return on_its_own_time(list_from_it())


def on_its_own_time(work: Coroutine[None, None, float]) -> float:
    loop = _Loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    await asyncio.sleep(100_000)


async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(SILENCE / 2)


def test_a_list_without_a_response_is_given_up_after_its_silence() -> None:
    got = seconds_to_notice(say_nothing)
    assert SILENCE <= got <= SILENCE + 1


def test_list_that_trickles_is_given_up_in_the_end() -> None:
    got = seconds_to_notice(trickle)
    assert WHOLE <= got <= WHOLE + 1
