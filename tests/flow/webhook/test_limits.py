"""Clients that send too much, too slowly or nothing: API servers still get correct responses."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import aiohttp

from apisix_ingress.webhook.admission import Limits
from apisix_ingress.webhook.review import Verdict
from tests.flow.webhook.harness import (
    BAD,
    BOUND,
    GOOD,
    HOST,
    PATIENT,
    Client,
    Gateway,
    hang_up,
    head,
    judging,
    review,
    serving,
)
from tests.unit.apisix_ingress.webhook.worlds import manifest, plugin, route_spec
from tests.waiting import until

QUICK = Limits(deadline=1.0, handshake=2.0, first=0.5, idle=0.5)


async def test_a_body_that_is_too_long_is_rejected_before_it_is_sent(client: Client) -> None:
    reader, writer = await client.connect()
    writer.write(head(Limits().body + 1))
    async with asyncio.timeout(BOUND):
        assert b" 413 " in await reader.readline()
        await reader.read()
    await hang_up(writer)
    assert client.seen.results == {("", "oversized"): 1}


async def test_body_without_a_length_is_cut_off_when_it_is_too_long(client: Client) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield b" " * 1024 * 1024

    try:
        status, _ = await client.post(endless())
    except aiohttp.ClientOSError:
        status = 413  # it hung up while the rest was being sent
    assert status == 413
    assert client.seen.results == {("", "oversized"): 1}
    assert (await client.ask(GOOD))["allowed"]


async def test_large_object_is_checked_like_a_small_one(client: Client) -> None:
    rules = [{**route_spec()["http"][0], "name": f"r{number}"} for number in range(1000)]
    assert await client.ask(manifest({"http": rules})) == {"uid": "u1", "allowed": True}
    rules[-1] = {**rules[-1], "plugins": [plugin("limit-cuont")]}
    got = await client.ask(manifest({"http": rules}))
    assert (
        got["status"]["message"] == "spec.http[999].plugins[0]: unknown plugin limit-cuont; did you mean limit-count?"
    )


async def test_each_request_of_a_burst_gets_its_own_response(client: Client) -> None:
    async def one(number: int) -> bool:
        got = await client.ask(BAD if number % 2 else GOOD, uid=f"u{number}")
        return bool(got["allowed"]) == (number % 2 == 0)

    assert all(await asyncio.gather(*(one(number) for number in range(500))))
    assert client.seen.results == {("ApisixRoute", "allowed"): 250, ("ApisixRoute", "denied"): 250}


async def test_requests_beyond_the_memory_limit_are_rejected_immediately(tmp_path: Path) -> None:
    limits = replace(PATIENT, memory=200_000)  # half of it for this client
    async with judging(tmp_path, lambda review: Verdict(), limits) as client:
        _, holder = await client.connect()
        holder.write(head(90_000))
        await holder.drain()
        body = review(manifest(route_spec(plugin("redirect", {"x": "y" * 20_000}))))
        answers: list[int] = []

        async def refused() -> bool:
            answers.append((await client.post(body))[0])
            return answers[-1] == 429

        async with asyncio.timeout(BOUND):
            while not await refused():  # the holder's headers may be on their way
                pass
        assert (await client.ask(GOOD))["allowed"]
        await hang_up(holder)
        await until(lambda: client.seen.results["", "aborted"] == 1, "the end of the request")
        assert (await client.post(body))[0] == 200


async def test_a_missing_body_times_out_without_delaying_other_requests(tmp_path: Path) -> None:
    async with serving(tmp_path, Gateway(), QUICK, lambda: True) as client:
        slow = []
        for _ in range(20):
            slow.append(await client.connect())
            # At once: who says nothing for long is not waited for until all are there.
            slow[-1][1].write(head(1000) + b'{"kind"')
        assert not (await client.ask(BAD))["allowed"]
        async with asyncio.timeout(BOUND):
            lines = [await reader.readline() for reader, _ in slow]
        assert {line.split()[1] for line in lines} == {b"408"}
        for _, writer in slow:
            await hang_up(writer)
        assert client.seen.results["", "slow"] == 20


async def test_missing_headers_close_the_connection(tmp_path: Path) -> None:
    async with serving(tmp_path, Gateway(), QUICK, lambda: True) as client:
        reader, writer = await client.connect()
        ended = asyncio.create_task(reader.read())

        async def dribble() -> None:
            for byte in head(10):
                if ended.done():
                    return
                writer.write(bytes([byte]))
                await asyncio.sleep(0.1)

        async with asyncio.timeout(BOUND):
            await dribble()
            assert await ended == b""
        await hang_up(writer)


async def test_excess_handshakes_end_the_oldest_ones_and_no_connection(tmp_path: Path) -> None:
    limits = replace(PATIENT, handshakes=4, connections=2)
    async with judging(tmp_path, lambda review: Verdict(), limits) as client:
        reader, writer = await client.connect()  # it has finished its handshake, and stays connected
        begun = []
        for _ in range(12):
            begun.append(await asyncio.open_connection("127.0.0.1", client.port))
            begun[-1][1].write(b"\x16\x03\x01\x02\x00\x01")
        async with asyncio.timeout(BOUND):
            assert [await each.read() for each, _ in begun[:8]] == [b""] * 8
        assert (await client.ask(GOOD))["allowed"]
        writer.write(head(2) + b"{}")
        async with asyncio.timeout(BOUND):
            assert (await reader.readline()).startswith(b"HTTP/1.1 ")
        for _, each in (*begun, (reader, writer)):
            await hang_up(each)


async def test_idle_connections_are_closed_and_delay_no_client(tmp_path: Path) -> None:
    # The connection that has asked stays open, so that the last question does not meet its end half-way.
    async with serving(tmp_path, Gateway(), replace(QUICK, first=2.0, idle=BOUND), lambda: True) as client:
        idle = await asyncio.gather(*(client.connect() for _ in range(200)))
        assert not (await client.ask(BAD))["allowed"]
        assert (await client.ask(GOOD))["allowed"]
        async with asyncio.timeout(BOUND):
            assert [await reader.read() for reader, _ in idle] == [b""] * 200
        for _, writer in idle:
            await hang_up(writer)
        assert (await client.ask(GOOD))["allowed"]


async def test_connections_beyond_the_limit_replace_the_idlest(tmp_path: Path) -> None:
    async with judging(tmp_path, lambda review: Verdict(), replace(PATIENT, connections=20)) as client:
        idle = [await client.connect() for _ in range(40)]
        assert (await client.ask(GOOD))["allowed"]
        async with asyncio.timeout(BOUND):
            assert [await reader.read() for reader, _ in idle[:20]] == [b""] * 20
        assert not idle[-1][0].at_eof()
        for _, writer in idle:
            await hang_up(writer)


async def test_socket_that_never_speaks_tls_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path, Gateway(), QUICK, lambda: True) as client:
        silent, plain = [await asyncio.open_connection(HOST, client.port) for _ in range(2)]
        plain[1].write(b"GET / HTTP/1.1\r\n\r\n")
        async with asyncio.timeout(BOUND):
            for reader, writer in (silent, plain):
                with suppress(ConnectionResetError):
                    await reader.read()
                await hang_up(writer)
        assert (await client.ask(GOOD))["allowed"]
