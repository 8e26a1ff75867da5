"""An API server in this process, over real HTTP: enough of the protocol for clients that watch, and faults on demand.

Lists with limit and continue, watches with replay and bookmarks, 410 after a compaction, CRUD with optimistic locking,
merge patches and the status subresource behave as kube-apiserver does; the cases in
`e2e/stories/platform/test_fake_apiserver_contract.py` also run against the real one. Admission, defaulting, RBAC and
schemas are absent: faults replace them.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from tests.canary import marked
from tests.fakes.kube import wire
from tests.fakes.kube.faults import Fault, Refusal, Seen
from tests.fakes.kube.kinds import KINDS, Kind, Manifest
from tests.fakes.kube.objects import Change, Objects
from tests.fakes.kube.wire import error_event
from tests.fakes.listening import Listening

__all__ = ["KINDS", "FakeApiServer", "Fault", "Kind", "Manifest", "Refusal", "Seen", "error_event"]


@dataclass(slots=True, eq=False)
class _Watch:
    """An open watch; `orders` are changes to send, raw bytes, or a word."""

    plural: str
    namespace: str
    since: int
    orders: "asyncio.Queue[Change | bytes | str]"


class FakeApiServer(Objects, Listening):
    """The server."""

    def __init__(self, kinds: Iterable[Kind] = KINDS, *, token: str = "") -> None:
        Objects.__init__(self, kinds)
        Listening.__init__(self)
        self.token = token
        """The accepted bearer token; empty accepts any token, or none."""
        self.bookmarks = True
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        self._watches: set[_Watch] = set()

    # Life.

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=16 * 2**20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def stop(self) -> None:
        """Close every connection, open watches too, and stop listening."""
        for watch in list(self._watches):
            watch.orders.put_nowait("cut")
        await super().stop()

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    def kubeconfig(self, path: Path, *, user: Mapping[str, Any] | None = None) -> Path:
        """Write a kubeconfig for it."""
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
                    "users": [{"name": "tester", "user": dict(user or {"token": self.token or marked("api-token")})}],
                    "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "tester"}}],
                    "current-context": "fake",
                }
            )
        )
        return path

    # Open watches, from outside.

    def order(self, plural: str, order: bytes | str) -> int:
        """Send raw bytes, `end`, `cut`, `bookmark` or `stall` to the open watches of a kind; return their number."""
        chosen = [watch for watch in self._watches if watch.plural == plural]
        for watch in chosen:
            watch.orders.put_nowait(order)
        return len(chosen)

    def watching(self, plural: str) -> int:
        """Return how many watches of a kind are open."""
        return sum(watch.plural == plural for watch in self._watches)

    def count(self, verb: str, plural: str) -> int:
        """Return how many requests of a kind came in."""
        return sum(seen.verb == verb and seen.plural == plural for seen in self.seen)

    # HTTP.

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        seen = await self._note(request)
        for fault in self.faults:
            if fault.hits(seen):
                return await self._fail(fault, request, seen)
        return await self._answer(request, seen)

    async def _note(self, request: web.Request) -> Seen:
        text = await request.text()
        plural, _, name, _ = self.parse(request.path)
        verb = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}.get(request.method, "get")
        if verb == "get" and plural and not name:
            verb = "watch" if request.query.get("watch") in ("true", "1") else "list"
        body = json.loads(text) if text else None
        seen = Seen(verb, plural, request.path, dict(request.query), dict(request.headers), body)
        self.seen.append(seen)
        return seen

    async def _fail(self, fault: Fault, request: web.Request, seen: Seen) -> web.StreamResponse:
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.apply:
            await self._answer(request, seen)
        if fault.hang:
            await asyncio.Event().wait()
        if fault.cut:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if not fault.status:
            return await self._answer(request, seen)
        headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
        if fault.body is not None:
            return web.Response(status=fault.status, text=fault.body, content_type="text/html", headers=headers)
        return _refuse(Refusal(fault.status, "Fault", f"fault: {seen.verb} {seen.plural}"), headers)

    async def _answer(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        try:
            if self.token and request.headers.get("Authorization") != f"Bearer {self.token}":
                raise Refusal(401, "Unauthorized", "Unauthorized")
            if seen.verb == "watch" and seen.plural in self.kinds:
                return await self._watch(request, seen)
            return web.json_response(self.respond(seen), status=201 if seen.verb == "create" else 200)
        except Refusal as refusal:
            return _refuse(refusal)

    # Watches.

    async def _watch(self, request: web.Request, seen: Seen) -> web.StreamResponse:
        kind = self.kinds[seen.plural]
        since = int(seen.query.get("resourceVersion") or 0)
        if since < self.compacted:
            raise Refusal(410, "Expired", f"too old resource version: {since} ({self.compacted})")
        namespace = self.parse(seen.path)[1]
        watch = _Watch(kind.plural, namespace, self.version, asyncio.Queue())
        for change in self._changes:
            if change.plural == kind.plural and change.version > since and _is_in(namespace, change.item):
                watch.orders.put_nowait(change)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        self._watches.add(watch)
        try:
            await response.prepare(request)
            await self._serve(watch, kind, request, response, float(seen.query.get("timeoutSeconds") or 300))
        finally:
            self._watches.discard(watch)
        return response

    async def _serve(
        self, watch: _Watch, kind: Kind, request: web.Request, response: web.StreamResponse, seconds: float
    ) -> None:
        try:
            async with asyncio.timeout(seconds) as bound:
                while True:
                    order = await watch.orders.get()
                    if order == "end":
                        return
                    if order == "stall":
                        bound.reschedule(None)
                        await asyncio.Event().wait()
                    if order == "cut":
                        if request.transport is not None:
                            request.transport.abort()
                        return
                    await response.write(self._line(kind, order))
        except TimeoutError:
            # A bookmark covers every change before it: send all of them first.
            while not watch.orders.empty() and not isinstance(order := watch.orders.get_nowait(), str):
                await response.write(self._line(kind, order))
            # Like the real one, which sends only versions newer than the start of the watch.
            if self.bookmarks and any(change.version > watch.since for change in self._of(kind.plural)):
                await response.write(self._line(kind, "bookmark"))

    def _publish(self, type: str, plural: str, item: Manifest) -> Change:
        change = super()._publish(type, plural, item)
        for watch in self._watches:
            if watch.plural == plural and _is_in(watch.namespace, item):
                watch.orders.put_nowait(change)
        return change


def _refuse(refusal: Refusal, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.json_response(wire.status(refusal), status=refusal.code, headers=dict(headers or {}))


def _is_in(namespace: str, item: Manifest) -> bool:
    return namespace in ("", item["metadata"].get("namespace"))
