"""Servers whose responses never end: every command ends within its time limit, and reports what it was reading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import product

import pytest

from apisix_ingress.diagnostics.collect import running_controller
from tests.flow.commandline import BOUND, QUICKSTART, Cli
from tests.waiting import until

PIECES = {
    "interim responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "endless headers": (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
    "slow body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" "),
    "silence": (b"", b""),
}
"""The beginning of a response, and the part that is repeated endlessly."""

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: it
contexts: [{{name: it, context: {{cluster: it, user: it}}}}]
clusters: [{{name: it, cluster: {{server: "{url}"}}}}]
users: [{{name: it, user: {{token: of-a-test}}}}]
"""


@asynccontextmanager
async def endless(name: str) -> AsyncIterator[str]:
    """Provide the address of a server that responds to any request in this way."""
    (beginning, piece), over, active = PIECES[name], asyncio.Event(), set[asyncio.StreamWriter]()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        active.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(beginning)
            while not over.is_set():
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()
        active.discard(writer)

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    try:
        yield "{}:{}".format(*server.sockets[0].getsockname()[:2])
    finally:
        over.set()
        await until(lambda: not active, "the end of all responses", state=lambda: active)
        server.close()


@pytest.mark.parametrize(
    ("command", "name"), [*product(["diff"], PIECES), *product(["orphans", "explain", "adopt"], ["interim responses"])]
)
async def test_a_command_does_not_wait_forever_for_a_gateway(command: str, name: str, cli: Cli) -> None:
    files = ("-f", str(QUICKSTART))
    arguments = {"explain": ("web.example.org/",), "adopt": ("routes/1", *files)}.get(command, files)
    async with endless(name) as place:
        admin = ("--admin-url", f"http://{place}/apisix/admin", "--admin-key", "of-a-test", "--timeout", "400ms")
        got = await asyncio.wait_for(cli.beside(command, *arguments, *admin), BOUND)
    assert (got.returncode, got.stdout) == (2, "")
    assert "not finished within 0.4 s" in got.stderr
    assert "increase --timeout" in got.stderr


@pytest.mark.parametrize(
    ("command", "name"),
    [
        *product(["status"], PIECES),
        *product(["tree", "bundle", "doctor", "migrate", "lint", "verify"], ["interim responses"]),
    ],
)
async def test_a_command_does_not_wait_forever_for_an_api_server(command: str, name: str, cli: Cli) -> None:
    more = {
        "bundle": ("-o", "json"),
        "lint": (str(QUICKSTART), "--live"),
        "verify": ("127.0.0.1:9", "127.0.0.1:9", "--live"),
    }
    async with endless(name) as place:
        cli.write("kubeconfig", KUBECONFIG.format(url=f"http://{place}"))
        options = ("--kubeconfig", "kubeconfig", "--timeout", "400ms")
        got = await asyncio.wait_for(cli.beside(command, *more.get(command, ()), *options), BOUND)
    assert (got.returncode, got.stdout) == (2, "")
    assert "not finished within 0.4 s" in got.stderr


@pytest.mark.parametrize("name", PIECES)
async def test_status_does_not_wait_forever_for_a_controller(
    name: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_controller, "SECONDS", 0.4)
    async with endless(name) as place:
        got = await asyncio.wait_for(cli.beside("status", "--url", place), BOUND)
    assert got.returncode == 2
    assert f"controller at http://{place}: no " in got.stderr


COMMANDS = {
    "status": '{"healthy": 1, "objects": [[]], "clusters": 7}',
    "explain": '{"outcome": null, "answer": []}',
    "tree": '{"items": [{"kind": "routes", "id": "1", "owner": null, "body": []}]}',
    "hosts": '{"items": [7], "pages": []}',
    "changes": '{"items": {"a": null}, "pages": 1e400}',
    "certificates": '{"items": [{"host": {}}]}',
}
"""Command → a document that has fields of other types than the page of a controller."""


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_reports_a_document_with_other_types(command: str, cli: Cli) -> None:
    body = COMMANDS[command].encode()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        place = "{}:{}".format(*server.sockets[0].getsockname()[:2])
        asked = [command, "shop.example/"] if command == "explain" else [command]
        got = await asyncio.wait_for(cli.beside(*asked, "--url", place), BOUND)

    assert got.returncode == 2
    assert "use the version of apisix-ingress that the controller has" in got.stderr
    assert "Traceback" not in got.stderr


@pytest.mark.parametrize("command", [["status"], ["explain", "shop.example/"]])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_command_does_not_follow_a_redirect_of_a_controller(status: int, command: list[str], cli: Cli) -> None:
    visitors: list[bytes] = []

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitors.append(await reader.readuntil(b"\r\n\r\n"))
        place = "{}:{}".format(*elsewhere.sockets[0].getsockname()[:2])
        writer.write(f"HTTP/1.1 {status} Moved\r\nLocation: http://{place}/\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()

    elsewhere = await asyncio.start_server(redirect, "127.0.0.1", 0)
    async with elsewhere, await asyncio.start_server(redirect, "127.0.0.1", 0) as server:
        place = "{}:{}".format(*server.sockets[0].getsockname()[:2])
        got = await asyncio.wait_for(cli.beside(*command, "--url", place), BOUND)

    assert (got.returncode, len(visitors)) == (2, 1)
    assert f"controller at http://{place}: {status}: redirects are not followed" in got.stderr


@pytest.mark.parametrize("name", PIECES)
async def test_verify_treats_an_endless_response_as_missing(name: str, cli: Cli) -> None:
    async with endless(name) as place:
        cli.write("requests", f"http://{place}/page\n")
        options = ("--requests", "requests", "--request-timeout", "200ms")
        status, document = await asyncio.wait_for(cli.json("verify", place, place, *options), BOUND)
    assert (status, document["requests"], document["different"]) == (0, 1, 0)
