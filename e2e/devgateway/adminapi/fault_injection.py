"""Injects faults on request and logs writes, for tests of clients; under `/devgateway/` on the admin listener."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from e2e.devgateway.dataplane.error_pages import JSON, error_page
from e2e.devgateway.dataplane.http1 import Connection, Request

ACTIONS = ("reset", "drop_reply", "status", "delay", "hang")
WRITES = ("PUT", "POST", "PATCH", "DELETE")
HANG_LIMIT = 3600.0
LOG_LIMIT = 1_000_000

Answerer = Callable[[Request], Awaitable[tuple[int, list[tuple[str, str]], bytes]]]


def seconds(text: str | float) -> float:
    """Parse `200ms`, `1.5s` or a number of seconds; raises ValueError."""
    found = re.fullmatch(r"([\d.]+)(ms|s|m)?", str(text).strip())
    if found is None:
        raise ValueError(f"{text!r} is not a duration")
    return float(found.group(1)) * {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}[found.group(2)]


@dataclass(slots=True)
class Fault:
    """A fault for the next matching requests; `times` counts down, None is unlimited.

    `reset`: the connection is closed before the request is processed. `drop_reply`: the request is processed, then the
    connection is closed. `hang`: the request is not processed and gets no response. `status`: the request is not
    processed, and the response has this status. `delay`: the request is processed, and the response is delayed.
    """

    method: re.Pattern[str]
    path: re.Pattern[str]
    action: str
    status: int = 503
    delay: float = 0.0
    body: str | None = None
    times: int | None = None

    @classmethod
    def parse(cls, raw: dict[str, Any]) -> Fault:
        """Parse one rule; raises ValueError or KeyError."""
        match = raw.get("match", {})
        if raw["action"] not in ACTIONS:
            raise ValueError(f"action must be one of {', '.join(ACTIONS)}")
        return cls(
            method=re.compile(match.get("method", ".*")),
            path=re.compile(match.get("path", ".*")),
            action=raw["action"],
            status=int(raw.get("status", 503)),
            delay=seconds(raw.get("delay", 0)),
            body=raw.get("body"),
            times=raw.get("times"),
        )

    def takes(self, request: Request) -> bool:
        """Return whether it applies, and count the request."""
        if self.times == 0 or not self.method.fullmatch(request.method) or not self.path.fullmatch(request.target):
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass(slots=True)
class Control:
    """Wraps the Admin API: injects faults, records writes, and serves its own paths."""

    answer: Answerer
    wipe: Callable[[], Awaitable[object]]
    enabled: bool = False
    faults: list[Fault] = field(default_factory=list)
    log: list[dict[str, Any]] = field(default_factory=list)
    requests_per_connection: int = 1000

    async def handle(self, request: Request, connection: Connection) -> None:
        """Handle one request of the admin listener."""
        if connection.requests >= self.requests_per_connection:
            connection.open = False
        if self.enabled and request.target.startswith("/devgateway/"):
            status, body = await self._own(request)
            await connection.respond(status, JSON, orjson.dumps(body))
            return
        received = time.monotonic()
        fault = next((fault for fault in self.faults if fault.takes(request)), None)
        if fault is not None and await self._play(fault, connection):
            self._note(request, None, received)
            return
        status, headers, content = await self.answer(request)
        self._note(request, status, received)
        if fault is not None and fault.action == "drop_reply":
            connection.abort()
            return
        await connection.respond(status, headers, content, head_only=request.method == "HEAD")

    async def _play(self, fault: Fault, connection: Connection) -> bool:
        """Apply the part of a fault before the request is processed; return True if it must not be processed."""
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.action == "reset":
            connection.abort()
        elif fault.action == "status":
            body = error_page(fault.status) if fault.body is None else fault.body.encode()
            await connection.respond(fault.status, JSON, body)
        elif fault.action == "hang":
            await asyncio.sleep(HANG_LIMIT)
        else:
            return False
        return True

    def _note(self, request: Request, status: int | None, received: float) -> None:
        """Log a write when the response is sent; no status means that a fault prevented the write."""
        if not self.enabled or request.method not in WRITES or len(self.log) >= LOG_LIMIT:
            return
        self.log.append(
            {
                "seq": len(self.log) + 1,
                "received": received,
                "monotonic": time.monotonic(),
                "time": time.time(),
                "method": request.method,
                "path": request.target,
                "status": status,
                "user_agent": request.get("user-agent"),
                "writer": request.get("x-writer"),
            }
        )

    async def _own(self, request: Request) -> tuple[int, Any]:
        path, _, query = request.target.partition("?")
        operation = (request.method, path.removeprefix("/devgateway/"))
        if operation == ("POST", "faults"):
            try:
                raw = orjson.loads(request.body)
                self.faults.extend(Fault.parse(rule) for rule in (raw if isinstance(raw, list) else [raw]))
            except (ValueError, KeyError, TypeError, re.error) as error:
                return 400, {"error": f"bad fault: {error}"}
            return 200, {"faults": len(self.faults)}
        if operation == ("DELETE", "faults"):
            self.faults.clear()
            return 200, {"faults": 0}
        if operation == ("GET", "log"):
            after = int(query.removeprefix("after=") or 0) if query.startswith("after=") else 0
            return 200, self.log[after:]
        if operation == ("POST", "wipe"):
            await self.wipe()
            self.faults.clear()
            self.log.clear()
            return 200, {}
        return 404, {"error": "no such operation"}
