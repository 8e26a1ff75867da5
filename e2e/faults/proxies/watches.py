"""Forwards the body of a watch through the API proxy line by line, and injects faults of streams.

Actions are described in `e2e.faults.proxies.api_proxy`.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from e2e.faults.proxies.rules import FaultLog, Rule, RuleFile

ENDINGS = frozenset(("cut", "end", "inject", "gone"))
FILTERS = frozenset(("drop_bookmarks", "repeat"))
WATCH_ACTIONS = ENDINGS | FILTERS | {"stall"}
POLL = 0.1
GONE = {
    "type": "ERROR",
    "object": {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": "Expired",
        "code": 410,
        "message": "too old resource version",
    },
}


class _Lines:
    """Splits a body into lines of any length."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content
        self._rest = b""

    async def next(self) -> bytes:
        """Return the next line with its line break; at the end of the body the rest, then nothing."""
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            part = await self._content.readany()
            if not part:
                self._rest = b""
                return b"".join(parts)
            parts.append(part)
        line, end, self._rest = b"".join(parts).partition(b"\n")
        return line + end


@dataclass(frozen=True, slots=True)
class Relayed:
    """One watch: the request, the API server's response, and the attributes that rules match."""

    request: web.BaseRequest
    reply: aiohttp.ClientResponse
    headers: Mapping[str, str]
    about: Mapping[str, str]
    number: int


class WatchRelay:
    """Forwards the lines of one watch."""

    def __init__(self, relayed: Relayed, rules: RuleFile, log: FaultLog) -> None:
        self._relayed = relayed
        self._rules = rules
        self._log = log
        self._events = 0
        self._ending: Rule | None = None
        self._noted: set[str] = set()
        self._lines = _Lines(relayed.reply.content)
        self._response = web.StreamResponse(status=relayed.reply.status, headers=dict(relayed.headers))

    async def run(self) -> web.StreamResponse:
        """Forward lines until either side or a rule ends the watch."""
        await self._response.prepare(self._relayed.request)
        line: asyncio.Task[bytes] | None = None
        try:
            while not self._is_alone():
                line = line or asyncio.create_task(self._lines.next())
                await asyncio.wait((line,), timeout=POLL)
                await self._stall()
                if self._is_alone() or await self._end():
                    break
                if line.done():
                    content, line = line.result(), None
                    if not content:
                        break
                    await self._pass(content)
        except (ConnectionError, aiohttp.ClientError):
            # One side closed the connection: the other one sees a broken stream.
            self._break(b"")
        finally:
            if line is not None:
                line.cancel()
            self._leave()
        return self._response

    def _leave(self) -> None:
        """Abort the API server's side immediately: a stopped server would not acknowledge a TLS shutdown."""
        connection = self._relayed.reply.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()

    async def _stall(self) -> None:
        while not self._is_alone() and (rule := self._take({"stall"})) is not None:
            self._note(rule)
            await asyncio.sleep(POLL)

    async def _end(self) -> bool:
        """Apply a rule that ends the watch when it is due; return whether the watch is over."""
        self._ending = self._ending or self._take(ENDINGS)
        if self._ending is None or self._events < int(self._ending.options.get("after", 0)):
            return False
        self._note(self._ending)
        match self._ending.action:
            case "cut":
                self._break(b'{"type":"MODIFIED","object":{"kind":"Some')
            case "inject":
                await self._response.write(str(self._ending.options["line"]).encode() + b"\n")
            case "gone":
                await self._response.write(json.dumps(GONE).encode() + b"\n")
        return True

    async def _pass(self, line: bytes) -> None:
        is_bookmark = b'"type":"BOOKMARK"' in line[:64]
        rule = self._take({"drop_bookmarks"}) if is_bookmark else None
        if rule is not None:
            self._note(rule)
            return
        self._events += not is_bookmark
        twice = self._take({"repeat"})
        if twice is not None:
            self._note(twice)
        await self._response.write(line if twice is None else line + line)

    def _is_alone(self) -> bool:
        """Whether the client has disconnected: such a watch must not use up rules."""
        transport = self._relayed.request.transport
        return transport is None or transport.is_closing()

    def _take(self, among: frozenset[str] | set[str]) -> Rule | None:
        return self._rules.take(self._relayed.about, among)

    def _note(self, rule: Rule) -> None:
        """Log a fault, once for each watch."""
        if rule.text not in self._noted:
            self._noted.add(rule.text)
            self._log.note("fault", number=self._relayed.number, action=rule.action, events=self._events)

    def _break(self, part: bytes) -> None:
        """Close the connection inside a chunk: its announced length is too large."""
        transport = self._relayed.request.transport
        if transport is None:
            return
        if part:
            transport.write(b"%x\r\n" % (len(part) + 1000) + part)
            transport.close()
        else:
            transport.abort()
