"""A gateway cluster of a simulation: the Admin API's rules in memory, behind a network that delays, loses and resets.

It replaces the connections below `AiohttpTransport`, so that client and transport are the real ones. Every
write that takes effect is checked immediately: its writer, its term, and references to the record.
"""

from __future__ import annotations

import asyncio
import copy
import math
import random
import zlib
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import aiohttp
import orjson

from apisix_ingress.runtime.raw_http import RawRequest
from tests.simulation.loop import PROCESS, Process, running_loop
from tests.simulation.network import refused
from tests.simulation.trace import Trace

Body = dict[str, Any]
Key = tuple[str, str]
KINDS = (
    "ssls",
    "upstreams",
    "plugin_metadata",
    "plugin_configs",
    "consumers",
    "global_rules",
    "routes",
    "stream_routes",
)
ADMIN_KEY = "canary-of-the-admin-key"
GIVEN_UP_SECONDS = 5.0
"""Seconds after which a write is given up (`sync.timeout`)."""
STOP_SECONDS = 0.5
"""Seconds after a rejected key until no write may use it."""
MANAGED = {"managed-by": "apisix-ingress-controller"}


@dataclass(slots=True)
class AdminFaults:
    """Shares of requests (0 to 1) that fail, by kind of failure.

    Attributes:
        deaf: Share of the records whose writes are applied and not answered; it applies to all records that are
            new, and to no others.
        curt: Retries of these writes are rejected with 429.
        late: Seconds by which each write takes effect late.
        guard_lag: Seconds by which the gateway notices removed references late.
    """

    error: float = 0.0
    throttled: float = 0.0
    lost_request: float = 0.0
    lost_reply: float = 0.0
    slow: float = 0.0
    hang: float = 0.0
    deaf: float = 0.0
    curt: bool = False
    late: float = 0.0
    guard_lag: float = 0.0
    is_down: bool = False
    refuses_key: bool = False


@dataclass(slots=True, frozen=True)
class Write:
    """A write that took effect: its process, the term in which it was sent, and whether it was given up."""

    time: float
    writer: tuple[str, int]
    method: str
    key: Key
    body: Body | None
    given_up: bool


@dataclass(slots=True)
class SimGateway:
    """One cluster.

    Attributes:
        excused: Records that were changed manually: controllers cannot know references to them.
        before_write: Called with every write before it takes effect.
        cut_at: When a process' request to a path was last cut off.
    """

    name: str
    rng: random.Random
    trace: Trace
    before_write: Callable[[SimGateway, Write], None]
    records: dict[str, dict[str, Body]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    fault: AdminFaults = field(default_factory=AdminFaults)
    excused: set[Key] = field(default_factory=set)
    writes: list[Write] = field(default_factory=list)
    lists: int = 0
    cut_at: dict[tuple[Process, str], float] = field(default_factory=dict)
    _revision: int = 1
    _revisions: dict[Key, int] = field(default_factory=dict)
    _saved: list[tuple[dict[str, dict[str, Body]], dict[Key, int]]] = field(default_factory=list)
    _freed: dict[Key, float] = field(default_factory=dict)
    _refused: dict[Process, float] = field(default_factory=dict)
    _unheard: set[str] = field(default_factory=set)

    # Behind the controllers' back.

    def meddle(self, key: Key, body: Body | None) -> None:
        """Change a record, or remove it with None."""
        kind, id_ = key
        self.trace.note(self.name, f"somebody {'removes' if body is None else 'edits'} {kind}/{id_}")
        self.excused.add(key)
        if body is None:
            self.records[kind].pop(id_, None)
        else:
            self.records[kind][id_] = body
            self._bump(key)

    def _bump(self, key: Key) -> None:
        self._revision += 1
        self._revisions[key] = self._revision

    def backup(self) -> dict[str, dict[str, Body]]:
        """Return a copy of everything."""
        saved = copy.deepcopy(self.records)
        self._saved.append((saved, dict(self._revisions)))
        return saved

    def restore(self, records: dict[str, dict[str, Body]]) -> None:
        """Go back to a backup; an empty one is a wipe."""
        self._revisions = next((dict(revisions) for saved, revisions in self._saved if saved is records), {})
        self.trace.note(self.name, f"restored to {sum(map(len, records.values()))} records")
        for kind in KINDS:
            self.excused |= {(kind, id_) for id_ in {**self.records[kind], **records.get(kind, {})}}
            self.records[kind] = copy.deepcopy(records.get(kind, {}))

    # The Admin API.

    def answer(
        self, method: str, path: str, payload: bytes, writer: tuple[str, int], *, given_up: bool = False
    ) -> tuple[int, Body]:
        """Handle a request, which may have been given up; return status and body."""
        path, _, query = path.partition("?")
        kind, _, id_ = path.partition("/")
        if method == "GET":
            self.lists += not query and not id_
            return self._one(kind, id_) if id_ else self._list(kind, query)
        body = orjson.loads(payload) if payload else None
        refusal = self._refusal((kind, id_), body, given_up=given_up)
        if refusal is not None:
            self.trace.note(self.name, f"{writer[0]}#{writer[1]}: {method} {path}: {refusal[0]}")
            return refusal
        self._note(Write(asyncio.get_running_loop().time(), writer, method, (kind, id_), body, given_up))
        if body is None:
            self._free(references(kind, self.records[kind].pop(id_)))
            return 200, {"key": f"/apisix/{path}", "deleted": "1"}
        status = 200 if id_ in self.records[kind] else 201
        self._free(references(kind, self.records[kind].get(id_, {})))
        self.records[kind][id_] = body
        self._bump((kind, id_))
        (self.excused.add if given_up else self.excused.discard)((kind, id_))
        return status, {"key": f"/apisix/{path}", "value": body}

    def is_deaf_to(self, method: str, path: str, status: int) -> bool:
        """Return whether the fault keeps a write from being answered."""
        if not self.fault.deaf or method == "GET" or status == 429:
            return False
        if status == 201:
            self._unheard.add(path)
        return path in self._unheard or zlib.crc32(path.encode()) % 1000 < 1000 * self.fault.deaf

    def has_missed(self, path: str) -> bool:
        """Return whether the first write of a record was applied without an answer."""
        return path in self._unheard

    def note_key(self, process: Process, status: int) -> None:
        """Record what a process learns about its key from a response."""
        if status == 401:
            self._refused.setdefault(process, asyncio.get_running_loop().time())
        elif status < 400:
            self._refused.pop(process, None)

    def check_key(self, process: Process, path: str) -> None:
        """Check that a process whose key was rejected reads before it writes again.

        Requests in flight end soon, and are sent once more if they are cut off.
        """
        now = asyncio.get_running_loop().time()
        is_resent = now - self.cut_at.get((process, path), -math.inf) < STOP_SECONDS
        if now - self._refused.get(process, math.inf) > STOP_SECONDS and not is_resent:
            self.trace.violate(self.name, f"{process.name} goes on writing with a key that is refused")

    def users(self, key: Key) -> list[Key]:
        """Return the records that refer to this one."""
        return [
            (kind, id_)
            for kind in ("routes", "stream_routes", "plugin_configs", "consumers", "global_rules")
            for id_, body in self.records[kind].items()
            if key in references(kind, body)
        ]

    def _one(self, kind: str, id_: str) -> tuple[int, Body]:
        return (200, self._item(kind, id_)) if id_ in self.records[kind] else (404, {"message": "Key not found"})

    def _item(self, kind: str, id_: str) -> Body:
        value = {**_shown(kind, self.records[kind][id_]), "create_time": 1, "update_time": 2}
        return {"key": f"/apisix/{kind}/{id_}", "value": value, "modifiedIndex": self._revisions.get((kind, id_), 1)}

    def _list(self, kind: str, query: str) -> tuple[int, Body]:
        found = [self._item(kind, id_) for id_ in self.records[kind]]
        if query:
            found = found[:10]
        return 200, {"total": len(self.records[kind]), "list": found or {}}

    def _refusal(self, key: Key, body: Body | None, *, given_up: bool) -> tuple[int, Body] | None:
        """Return the response to a write that the Admin API rejects.

        When an abandoned write takes effect, its references may be deleted, or its record may be referred to again.
        """
        if body is None:
            return self._keeps(key, given_up=given_up)
        if any(isinstance(each, dict) and each.get("count") == 0 for each in body.get("plugins", {}).values()):
            return 400, {"error_msg": 'failed to check the configuration of plugin limit-count err: property "count"'}
        for kind, id_ in sorted(guarded(body)):
            if id_ not in self.records[kind]:
                if not given_up and (kind, id_) not in self.excused:
                    self.trace.violate(self.name, f"{key} is written without {kind}/{id_}")
                what = {"upstreams": "upstream", "plugin_configs": "plugin config"}[kind]
                return 400, {"error_msg": f"failed to fetch {what} info by {what} id [{id_}], response code: 404"}
        return None

    def _keeps(self, key: Key, *, given_up: bool) -> tuple[int, Body] | None:
        """Return the response to a delete that is rejected."""
        kind, id_ = key
        if id_ not in self.records[kind]:
            return 404, {"message": "Key not found"}
        named = [user for user in self.users(key) if key in guarded(self.records[user[0]][user[1]])]
        is_fresh = asyncio.get_running_loop().time() < self._freed.get(key, 0.0) + self.fault.guard_lag
        mine = [user for user in named if user not in self.excused and key not in self.excused]
        if mine and not given_up:
            self.trace.violate(self.name, f"{kind}/{id_} is to be deleted while {mine} name it")
        if named or is_fresh:
            user = named[0][1] if named else "?"
            return 400, {"error_msg": f"can not delete this {kind[:-1]}, route [{user}] is still using it now"}
        return None

    def _free(self, keys: set[Key]) -> None:
        """Record that a referring record was deleted: the gateway notices it later."""
        self._freed |= dict.fromkeys(sorted(keys), asyncio.get_running_loop().time())

    def _note(self, write: Write) -> None:
        self.before_write(self, write)
        kind, id_ = write.key
        self.trace.note(self.name, f"{write.writer[0]}#{write.writer[1]}: {write.method} {kind}/{id_} {_gist(write)}")
        self.writes.append(write)


Trap = Callable[[Process, str, SimGateway, str], bool]


class SimConnection:
    """Replaces `RawConnection` in every process.

    Args:
        gateways: By host.
        trap: Called in a process at `connect`, `sent` and `reply`, with the gateway and the method of the request; true
            if something happened to the process there.
    """

    def __init__(self, gateways: dict[str, SimGateway], trap: Trap) -> None:
        self._gateways = gateways
        self._trap = trap

    async def send(self, request: RawRequest, *_: object) -> SimAnswer:
        """Send a request and return the reply.

        Raises:
            aiohttp.ClientError, TimeoutError: There was none.
        """
        reply = await self._exchange(request)
        return SimAnswer(SimHead(reply.status, reply.headers), reply.body)

    async def _exchange(self, request: RawRequest) -> SimReply:
        method, url = request.method, request.target
        process, gateway = PROCESS.get(), self._gateways[url.host or ""]
        loop = asyncio.get_running_loop()
        if gateway.fault.is_down:
            await asyncio.sleep(0.001)
            raise refused(gateway.name)
        if gateway.rng.random() < 0.2:
            await asyncio.sleep(0.002 * gateway.rng.random())
        path = str(url.raw_path_qs).removeprefix("/apisix/admin/")
        if method != "GET":
            gateway.check_key(process, path)
        if self._trap(process, "connect", gateway, method):
            await asyncio.sleep(0)
        request.check()
        reply: asyncio.Future[SimReply] = loop.create_future()
        is_known = {name.lower(): value for name, value in request.headers}.get("x-api-key") == ADMIN_KEY
        call = _Call(method, path, request.body, (process.name, process.terms), process, is_known, loop.time())
        self._send(gateway, call, reply)
        self._trap(process, "sent", gateway, method)
        try:
            async with asyncio.timeout(request.timeout.sock_read):
                answer = await reply
        except TimeoutError:
            raise aiohttp.SocketTimeoutError from None
        except aiohttp.ServerDisconnectedError:
            gateway.cut_at[process, path] = loop.time()
            raise
        gateway.note_key(process, answer.status)
        if self._trap(process, "reply", gateway, method):
            await asyncio.sleep(0)
        return answer

    def _send(self, gateway: SimGateway, call: _Call, reply: asyncio.Future[SimReply]) -> None:
        loop, rng, fault, back = running_loop(), gateway.rng, gateway.fault, copy_context()
        share = rng.choice([0.5, 2.0, 4.5]) if rng.random() < fault.slow else 0.004
        there, home = rng.random() * share, rng.random() * share
        there += fault.late if call.method != "GET" else 0.0
        if call.process.is_gone:
            return
        if rng.random() < fault.lost_request:
            loop.call_later(there, _reset, reply, context=back)
            if call.method != "GET" and rng.random() < 0.3:
                # Whoever cut it off has a copy of it yet: no longer than the sender reckons with.
                there += rng.random() * (GIVEN_UP_SECONDS - there)
                late = replace(call, sent=-math.inf)
                loop.call_later(there, self._carry_out, gateway, late, reply, home, back, context=loop.world)
        else:
            loop.call_later(there, self._carry_out, gateway, call, reply, home, back, context=loop.world)

    def _carry_out(
        self, gateway: SimGateway, call: _Call, reply: asyncio.Future[SimReply], home: float, back: Context
    ) -> None:
        loop, rng, fault = asyncio.get_running_loop(), gateway.rng, gateway.fault
        given_up = loop.time() > call.sent + GIVEN_UP_SECONDS
        if fault.refuses_key or not call.is_known:
            answer: tuple[int, Body] = 401, {"error_msg": "failed to check token", "description": "wrong apikey"}
        elif rng.random() < fault.throttled or (fault.curt and gateway.has_missed(call.path)):
            answer = 429, {"error_msg": "slow down"}
        elif rng.random() < fault.error:
            if rng.random() < 0.5:
                gateway.answer(call.method, call.path, call.payload, call.writer, given_up=given_up)
            answer = rng.choice([500, 502, 503]), {"error_msg": "fault"}
        else:
            answer = gateway.answer(call.method, call.path, call.payload, call.writer, given_up=given_up)
        if rng.random() < fault.hang:
            return
        if gateway.is_deaf_to(call.method, call.path, answer[0]) or rng.random() < fault.lost_reply:
            loop.call_later(home, _reset, reply, context=back)
            return
        loop.call_later(home, _deliver, reply, SimReply(answer[0], orjson.dumps(answer[1])), context=back)


@dataclass(slots=True, frozen=True)
class _Call:
    """A request under way."""

    method: str
    path: str
    payload: bytes
    writer: tuple[str, int]
    process: Process
    is_known: bool
    sent: float


@dataclass(slots=True, frozen=True)
class SimReply:
    """A response for `AiohttpTransport`."""

    status: int
    body: bytes
    headers: ClassVar[Mapping[str, str]] = {"Server": "APISIX/3.18.0", "Content-Type": "application/json"}


@dataclass(slots=True, frozen=True)
class SimHead:
    """The head of a response of `RawConnection`."""

    code: int
    headers: Mapping[str, str]


@dataclass(slots=True, frozen=True)
class SimAnswer:
    """A response of `RawConnection`."""

    head: SimHead
    body: bytes
    is_cut: bool = False


def references(kind: str, body: Body) -> set[Key]:
    """Return all references of a body."""
    plugins = body.get("plugins") or {}
    split = plugins.get("traffic-split", {}).get("rules", [])
    targets = [target for rule in split for target in rule.get("weighted_upstreams", [])]
    return guarded(body) | {("upstreams", target["upstream_id"]) for target in targets if "upstream_id" in target}


def guarded(body: Body) -> set[Key]:
    """Return the references that the Admin API checks."""
    fields = {"upstream_id": "upstreams", "plugin_config_id": "plugin_configs"}
    return {(kind, str(body[name])) for name, kind in fields.items() if body.get(name)}


def _shown(kind: str, body: Body) -> Body:
    """Return a body as in a list: with encrypted private keys."""
    return {**body, "key": "encrypted"} if kind == "ssls" and "key" in body else body


def _gist(write: Write) -> str:
    body = write.body or {}
    nodes = [node["host"] for node in body.get("nodes") or []]
    fields = ("name", "uris", "upstream_id", "retries", "snis")
    shown: Body = {name: body[name] for name in fields if name in body}
    if "nodes" in body:
        shown["nodes"] = nodes
    return str(shown) if body else ""


def _reset(reply: asyncio.Future[SimReply]) -> None:
    if not reply.done():
        reply.set_exception(aiohttp.ServerDisconnectedError())


def _deliver(reply: asyncio.Future[SimReply], answer: SimReply) -> None:
    if not reply.done():
        reply.set_result(answer)
