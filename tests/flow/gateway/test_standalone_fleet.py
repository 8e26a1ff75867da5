"""Several standalone gateways under traffic, while they restart, are cut off, and leaders are killed or return late.

`FLEET` sets their number, and `CUT_SECONDS` how long one is cut off. Requests for a gateway count from when it has a
document, since it is not ready before.
"""

import asyncio
import os
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager

import pytest

from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record
from e2e.devgateway.process import DevGateway
from tests.fakes.gateway import FakeWanted, make_record
from tests.flow.gateway.engine import until_applied
from tests.flow.gateway.standalone import connected, document, ids, leading, put
from tests.waiting import until

FLEET = int(os.environ.get("FLEET", "3"))
CUT_SECONDS = float(os.environ.get("CUT_SECONDS", "3"))
ROUTES = 20
TIMEOUT = 2.0


@pytest.fixture
def fleet() -> Iterator[list[DevGateway]]:
    with ExitStack() as stack:
        yield [stack.enter_context(DevGateway(standalone=True, stream=False)) for _ in range(FLEET)]


class Traffic:
    """Requests to every gateway, one after the other."""

    def __init__(self, gateways: list[DevGateway]) -> None:
        self.gateways = gateways
        self.answers: Counter[int] = Counter()
        self.wrong: list[str] = []
        self.down: set[DevGateway] = set()

    async def run(self) -> None:
        """Send requests until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for gateway in self.gateways:
                group.create_task(self._send_to(gateway))

    async def _send_to(self, gateway: DevGateway) -> None:
        number = 0
        while True:
            number = (number + 1) % ROUTES
            if gateway not in self.down and await asyncio.to_thread(_is_ready, gateway):
                status = await asyncio.to_thread(_status, f"{gateway.proxy_url}/{number}")
                if gateway not in self.down:
                    self.answers[status] += 1
                    if status != 200:
                        self.wrong.append(f"{gateway.proxy_address}/{number}: {status}")
            await asyncio.sleep(0.02)


def _is_ready(gateway: DevGateway) -> bool:
    request = urllib.request.Request(
        f"{gateway.admin_url}/configs", headers={"X-API-KEY": gateway.admin_key}, method="HEAD"
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            return "X-Digest" in response.headers
    except OSError:
        return False


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@asynccontextmanager
async def _service() -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, ConnectionResetError):
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


def _records(port: int, *, version: int = 0) -> list[Record]:
    nodes = [{"host": "127.0.0.1", "port": port, "weight": 1}]
    upstream = make_record(RecordKey("upstreams", "u"), type="roundrobin", nodes=nodes)
    routes = [
        make_record(RecordKey("routes", f"r{number}"), uri=f"/{number}", upstream_id="u", desc=str(version))
        for number in range(ROUTES)
    ]
    return [upstream, *routes]


async def _restart(gateway: DevGateway, traffic: Traffic) -> None:
    traffic.down.add(gateway)
    await asyncio.to_thread(gateway.restart)
    traffic.down.discard(gateway)
    await until(lambda: len(ids(gateway, "routes")) == ROUTES, "the routes of a restarted gateway")


async def _cut_off(gateway: DevGateway, traffic: Traffic) -> None:
    traffic.down.add(gateway)
    gateway.pause()
    await asyncio.sleep(CUT_SECONDS)
    gateway.resume()
    traffic.down.discard(gateway)


def _has(gateway: DevGateway, version: int) -> bool:
    return {route["desc"] for route in document(gateway)["routes"]} == {str(version)}


async def test_a_fleet_answers_rightly_whatever_happens_to_gateways_and_leaders(fleet: list[DevGateway]) -> None:
    traffic = Traffic(fleet)
    async with _service() as port, asyncio.TaskGroup() as group:
        requests = group.create_task(traffic.run())
        wanted = FakeWanted(_records(port, version=1))
        async with connected(*fleet) as killed, leading(killed, wanted) as sync:
            await until_applied(sync, _records(port, version=1))
            for gateway in fleet:
                await _restart(gateway, traffic)
            stale = document(fleet[0])
            sync.mark_dirty(wanted.replace(_records(port, version=2)))  # killed while it writes
        wanted = FakeWanted(_records(port, version=3))
        async with connected(*fleet) as backend, leading(backend, wanted) as sync:
            await until_applied(sync, _records(port, version=3))
            assert {put(gateway, stale) for gateway in fleet} == {400}
            cut = group.create_task(_cut_off(fleet[0], traffic))
            sync.mark_dirty(wanted.replace(_records(port, version=4)))
            await until_applied(sync, _records(port, version=4))
            await cut
            for gateway in fleet:
                await until(lambda: _has(gateway, 4), "the last records")  # noqa: B023
        requests.cancel()

    assert traffic.wrong == []
    assert traffic.answers[200] > FLEET
