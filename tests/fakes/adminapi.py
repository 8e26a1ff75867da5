"""An Admin API in this process, over real HTTP: a working one, with faults on demand.

It stores any body; schemas and references are not checked. `e2e/devgateway` validates them.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.canary import marked
from tests.fakes.listening import Listening

WRITES = frozenset({"PUT", "PATCH", "DELETE"})
Instead = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


@dataclass(slots=True)
class AdminFault:
    """A fault for matching requests.

    Attributes:
        method: Regular expression that the whole method must match.
        path: Regular expression searched for in the path, e.g. `routes/`.
        status: Status of the response; 0: the usual response, after the delay.
        delay: Seconds before anything happens.
        cut: Close the connection instead of responding.
        apply: Apply the request nevertheless: only its response is lost.
        times: Number of requests that it affects; None: all.
    """

    method: str = ".*"
    path: str = ""
    status: int = 0
    delay: float = 0.0
    cut: bool = False
    apply: bool = False
    times: int | None = None

    def hits(self, method: str, path: str) -> bool:
        """Return whether it applies to a request, and count it if so."""
        if self.times == 0 or not re.fullmatch(self.method, method) or not re.search(self.path, path):
            return False
        if self.times is not None:
            self.times -= 1
        return True


class FakeAdminApi(Listening):
    """The server."""

    def __init__(self, key: str = marked("admin-key")) -> None:
        super().__init__()
        self.key = key
        self.records: dict[str, dict[str, dict[str, Any]]] = {}
        """Kind → id → body."""
        self.seen: list[tuple[str, str]] = []
        """(method, path below the Admin API) of every request."""
        self.agents: set[str] = set()
        """The User-Agents of clients."""
        self.faults: list[AdminFault] = []
        self.invalid: dict[str, str] = {}
        """Id → error of the records that `configs/validate` rejects."""
        self.instead: Instead | None = None
        """Overrides the response to a request if it returns one."""
        self._revision = 1
        self._revisions: dict[str, int] = {}

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=16 * 2**20)
        app.router.add_route("*", "/apisix/admin/{path:.*}", self._handle)
        return app

    @property
    def url(self) -> str:
        """Of the Admin API."""
        return f"http://127.0.0.1:{self.port}/apisix/admin"

    @property
    def writes(self) -> list[tuple[str, str]]:
        """The requests that write."""
        return [seen for seen in self.seen if seen[0] in WRITES]

    def ids(self, kind: str) -> set[str]:
        """Return the ids of the records of a kind."""
        return set(self.records.get(kind, ()))

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method, path = request.method, request.match_info["path"]
        self.seen.append((method, path))
        self.agents.add(request.headers.get("User-Agent", ""))
        body = await request.read()
        fault = next((fault for fault in self.faults if fault.hits(method, path)), AdminFault())
        await asyncio.sleep(fault.delay)
        if self.instead is not None and (reply := await self.instead(request)) is not None:
            return reply
        if fault.status and not fault.apply:
            return web.json_response({"error_msg": "fault"}, status=fault.status)
        if request.headers.get("X-API-KEY") != self.key:
            return web.json_response({"description": "wrong apikey", "error_msg": "failed to check token"}, status=401)
        done = self._answer(method, path, body) if fault.apply or not fault.cut else web.Response()
        if fault.cut and request.transport is not None:
            request.transport.abort()
        return done

    def _answer(self, method: str, path: str, body: bytes) -> web.Response:
        if path == "configs/validate":
            return self._validated(json.loads(body))
        kind, _, id_ = path.partition("/")
        records = self.records.setdefault(kind, {})
        if method == "PUT":
            status = 200 if id_ in records else 201
            records[id_] = json.loads(body)
            self._revision += 1
            self._revisions[path] = self._revision
            return web.json_response({"key": f"/apisix/{path}", "value": records[id_]}, status=status)
        if method == "PATCH":
            if id_ not in records:
                return web.json_response({"message": "Key not found"}, status=404)
            records[id_] = _merged(records[id_], json.loads(body))
            return web.json_response({"key": f"/apisix/{path}", "value": records[id_]})
        if method == "DELETE":
            found = records.pop(id_, None)
            return web.json_response(
                {"deleted": "1"} if found else {"message": "Key not found"}, status=200 if found else 404
            )
        if id_ and id_ not in records:
            return web.json_response({"message": "Key not found"}, status=404)
        if id_:
            return web.json_response(self._item(kind, id_))
        listed = [self._item(kind, key) for key in records]
        return web.json_response({"total": len(listed), "list": listed})

    def _validated(self, document: dict[str, Any]) -> web.Response:
        """Validate a document of records, like APISIX 3.17 and newer."""
        errors = [
            {"resource_type": kind, "index": index, "resource_id": body.get("id"), "error": self.invalid[body["id"]]}
            for kind, bodies in document.items()
            for index, body in enumerate(bodies)
            if body.get("id") in self.invalid
        ]
        if not errors:
            return web.json_response({})
        return web.json_response({"error_msg": "Configuration validation failed", "errors": errors}, status=400)

    def _item(self, kind: str, id_: str) -> dict[str, Any]:
        path = f"{kind}/{id_}"
        revision = self._revisions.get(path, 1)
        return {"key": f"/apisix/{path}", "value": self.records[kind][id_], "modifiedIndex": revision}


def _merged(body: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """Return a body with a change merged into it, level by level (contract: Admin API fact 9)."""
    merged = dict(body)
    for name, value in change.items():
        inner = merged.get(name)
        merged[name] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return merged
