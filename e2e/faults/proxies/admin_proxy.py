"""A proxy in front of a gateway's Admin API: it injects the faults of a rule file and records requests in a journal.

Rules may match `method`, `path` (with its query) and `writer` (the identity in the User-Agent). Actions, with their own
keys:

==============  =====================================================================================================
status          not forwarded; the response has `status`, and `retry_after` and `body` if given
drop            not forwarded; the connection is reset
hang            not forwarded; there is no response
delay           forwarded after `seconds`
late            forwarded immediately; the response is delayed by `seconds`
drop_reply      forwarded; then the connection is reset
half            forwarded; the connection is closed after half of the response
wrong_key       forwarded with another admin key, so that the gateway rejects it
wipe            all records of the gateway are deleted before it is forwarded
restore         the records of the gateway are replaced by those of the dump `file` before it is forwarded
kill_before     the process `pid` gets `signal` (default: 9) once it has sent the request, which is not forwarded
kill_during     the same, but the request is forwarded
kill_after      forwarded; then the process gets the signal, and there is no response
==============  =====================================================================================================

It only knows HTTP and the header with the key.
`python -m e2e.faults.proxies.admin_proxy URL` runs one until Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import ssl
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from e2e.devgateway.dataplane.http1 import HEAD_LIMIT, BadMessage, Message, read_body, read_head
from e2e.faults import dumps
from e2e.faults.proxies.connections import ClientConnection, GatewayConnection
from e2e.faults.proxies.journal import Entry, Journal, describe, read, writer_of
from e2e.faults.proxies.rules import Rule, RuleFile

ACTIONS = frozenset(
    (
        *("status", "drop", "hang", "delay", "late", "drop_reply", "half", "wrong_key", "wipe", "restore"),
        *("kill_before", "kill_during", "kill_after"),
    )
)
LOST = ("drop_reply", "kill_after")
"""Actions without a response."""
START_TIMEOUT = 10.0
SETTLES = 5.0
"""Seconds that a reader of the journal waits for the gateway's responses."""
T = TypeVar("T")


class AdminProxy:
    """The proxy, in its own thread. A context manager; through its URL and key it can be used like a gateway.

    Args:
        url: Base URL of the gateway (`http://host:port`, a path is ignored).
        key: Its admin key; needed for `wipe` and `restore` only.
        folder: Where the rule file and the journal are, named by `name`.
        tls: Serve TLS with this context.
        port: To listen on; 0: any. It stays the same over `stop` and `start`.
        mode: Of the gateway, as in `clusters[].mode`.
    """

    def __init__(
        self,
        url: str,
        key: str,
        folder: Path,
        *,
        name: str = "admin",
        tls: ssl.SSLContext | None = None,
        port: int = 0,
        mode: str = "apisix",
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.admin_key = key
        self.mode = mode
        self.port = port
        self.tls = tls
        self.most_in_flight = 0
        """The maximum number of concurrent requests."""
        self.rules = RuleFile(folder / f"{name}.rules.json", ACTIONS)
        self.journal_path = folder / f"{name}.jsonl"
        self._target = _address(url)
        self._journal = Journal(self.journal_path)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"proxy-{name}", daemon=True)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked: set[asyncio.Future[None]] = set()
        self._flying = 0

    @property
    def admin_url(self) -> str:
        """The base URL of the Admin API behind the proxy."""
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/apisix/admin"

    @property
    def gateway_url(self) -> str:
        """The base URL of the Admin API itself."""
        return f"http://{self._target[0]}:{self._target[1]}/apisix/admin"

    # --- life

    def __enter__(self) -> Self:
        self._thread.start()
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_TIMEOUT)
        self._loop.close()
        self._journal.close()

    def start(self) -> None:
        """Listen."""
        self._await(self._listen())

    def stop(self) -> None:
        """Reset every connection and stop listening, like a gateway that is down."""
        self._await(self._close())

    def lead_to(self, url: str, key: str, *, tls: ssl.SSLContext | None = None) -> None:
        """Reset every connection, then forward requests to another gateway, or serve with another TLS context."""
        self.stop()
        self._target, self.admin_key, self.tls = _address(url), key, tls
        self.start()

    def play(self, *rules: Mapping[str, Any]) -> None:
        """Replace the rules by writing the file; without rules, all faults end."""
        self.rules.write(rules)

    def entries(self, after: int = 0) -> list[Entry]:
        """Return the requests so far except the first ones, in the order in which they ended.

        Waits for requests in flight: the gateway may have processed a request that is not yet in the journal.
        """
        if self._thread.is_alive():
            self._await(self._settled())
        return read(self.journal_path, after)

    def writes(self, after: int = 0) -> list[Entry]:
        """Return the entries of write requests."""
        return [entry for entry in self.entries(after) if entry.is_write]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_TIMEOUT)

    async def _listen(self) -> None:
        server = await asyncio.start_server(
            self._accept, "127.0.0.1", self.port, ssl=self.tls, limit=HEAD_LIMIT, backlog=1024
        )
        self._server, self.port = server, server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- connections

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        client, gateway = ClientConnection(reader, writer), GatewayConnection(*self._target)
        try:
            while await self._serve(client, gateway):
                pass
        except (OSError, BadMessage):
            client.reset()
        except asyncio.CancelledError:
            client.reset()  # the proxy stops: only `_close` waits for this task
        finally:
            gateway.close()
            writer.close()

    async def _serve(self, client: ClientConnection, gateway: GatewayConnection) -> bool:
        """Forward one request; return whether the connection stays open."""
        head = await read_head(client.reader)
        if head is None:
            return False
        body = await read_body(client.reader, head)
        refs, digest = describe(body)
        entry = Entry(
            time.monotonic(),
            head.start[0],
            head.start[1],
            writer_of(head.get("user-agent") or ""),
            refs,
            digest,
            client.certificate,
        )
        rule = self.rules.take({"method": entry.method, "path": entry.path, "writer": entry.writer})
        entry.rule = rule.action if rule else ""
        self._flying += 1
        self.most_in_flight = max(self.most_in_flight, self._flying)
        try:
            await self._carry(entry, rule, _Exchange(head, body, client, gateway))
        except (OSError, BadMessage):
            self._note(entry)
            raise
        finally:
            self._flying -= 1
        return not client.closed

    def _note(self, entry: Entry) -> None:
        """Write the line of a request before the client gets the response: it may read the journal then."""
        entry.answered = time.monotonic()
        self._journal.write(entry)

    async def _carry(self, entry: Entry, rule: Rule | None, exchange: _Exchange) -> None:
        """Inject the faults before the request, forward it, and inject the faults after it."""
        options = rule.options if rule else {}
        if await self._before(entry, options, exchange):
            return
        reply, content = await self._ask(entry, exchange)
        is_lost = entry.rule in LOST
        if entry.rule == "late":
            await asyncio.sleep(options["seconds"])
        elif entry.rule == "kill_after":
            _kill(options)
        if is_lost:
            exchange.client.reset()
        else:
            await exchange.client.answer(reply, content, half=entry.rule == "half")

    async def _ask(self, entry: Entry, exchange: _Exchange) -> tuple[Message, bytes]:
        """Forward the request and record the response."""
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked.add(asked)
        try:
            key = "no-such-key" if entry.rule == "wrong_key" else None
            reply, content = await exchange.gateway.ask(exchange.head, exchange.body, key)
            entry.status = int(reply.start[1])
            entry.response = None if entry.rule in LOST or entry.rule == "half" else entry.status
            self._note(entry)
        finally:
            self._asked.discard(asked)
            asked.cancel()
        return reply, content

    async def _settled(self) -> None:
        """Wait until the current requests to the gateway are in the journal."""
        if self._asked:
            await asyncio.wait(tuple(self._asked), timeout=SETTLES)

    async def _before(self, entry: Entry, options: Mapping[str, Any], exchange: _Exchange) -> bool:
        """Inject the faults before the request; return whether the request must not be forwarded."""
        client = exchange.client
        match entry.rule:
            case "delay":
                await asyncio.sleep(options["seconds"])
            case "kill_during":
                _kill(options)
            case "wipe":
                await asyncio.to_thread(dumps.put_back, self.gateway_url, self.admin_key, {})
            case "restore":
                await asyncio.to_thread(dumps.load, self.gateway_url, self.admin_key, Path(options["file"]))
            case "status":
                entry.response = int(options.get("status", 503))
                self._note(entry)
                await client.refuse(entry.response, options)
                return True
            case "drop" | "hang" | "kill_before":
                self._note(entry)
                if entry.rule == "hang":
                    await client.reader.read(1)
                elif entry.rule == "kill_before":
                    _kill(options)
                client.reset()
                return True
        return False


@dataclass(frozen=True)
class _Exchange:
    """A request and its two connections."""

    head: Message
    body: bytes
    client: ClientConnection
    gateway: GatewayConnection


def _address(url: str) -> tuple[str, int]:
    where = urlsplit(url)
    return where.hostname or "127.0.0.1", where.port or 80


def _kill(options: Mapping[str, Any]) -> None:
    """Send the signal of a rule to its process, unless that has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(options["pid"]), int(options.get("signal", signal.SIGKILL)))


def main(argv: Sequence[str] | None = None) -> int:
    """Run one proxy until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="python -m e2e.faults.proxies.admin_proxy", description="Faults before an Admin API."
    )
    parser.add_argument("url", help="base URL of the gateway, e.g. http://127.0.0.1:9180")
    parser.add_argument("--listen", type=int, default=0, metavar="PORT", help="on 127.0.0.1; by default any")
    parser.add_argument("--key", default="", help="admin key, for wipe and restore")
    parser.add_argument("--folder", type=Path, default=Path(), help="of admin.rules.json and admin.jsonl")
    options = parser.parse_args(argv)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with AdminProxy(options.url, options.key, options.folder, port=options.listen) as proxy:
        print(f"{proxy.admin_url} → {proxy.gateway_url}, journal in {proxy.journal_path}", flush=True)
        ended.wait()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
