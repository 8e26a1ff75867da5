"""A gateway cluster of a simulation: the Admin API's rules in memory.

Every write that takes effect is checked immediately: its writer, its term, and references to the record. `gateway_link`
carries the requests.
"""

from __future__ import annotations

import asyncio
import copy
import math
import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.simulation.checking.trace import Trace
from tests.simulation.loop import Process

Body = dict[str, Any]
Key = tuple[str, str]
KINDS = (
    "ssls",
    "upstreams",
    "plugin_metadata",
    "plugin_configs",
    "consumer_groups",
    "consumers",
    "protos",
    "secrets",
    "global_rules",
    "routes",
    "stream_routes",
)
ADMIN_KEY = "canary-of-the-admin-key"
STOP_SECONDS = 0.5
"""Seconds after a rejected key during which writes may still use it."""
READS = frozenset({"GET", "HEAD", "POST"})
"""Methods of requests that write nothing: POST validates records."""
MANAGED = {"managed-by": "apisix-ingress-controller"}


@dataclass(slots=True)
class AdminFaults:
    """Shares of requests (0 to 1) that fail, by kind of failure.

    Attributes:
        deaf: Share of the records whose writes are applied without a response; all new records, and no others.
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
        accepted: The number of accepted writes; one write of a standalone gateway has all records.
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
    accepted: int = 0
    lists: int = 0
    cut_at: dict[tuple[Process, str], float] = field(default_factory=dict)
    _revision: int = 1
    _revisions: dict[Key, int] = field(default_factory=dict)
    _saved: list[tuple[dict[str, dict[str, Body]], dict[Key, int]]] = field(default_factory=list)
    _freed: dict[Key, float] = field(default_factory=dict)
    _refused: dict[Process, float] = field(default_factory=dict)
    _unheard: set[str] = field(default_factory=set)

    # Manual changes.

    def meddle(self, key: Key, body: Body | None) -> None:
        """Change a record, or remove it with None."""
        kind, id_ = key
        self.trace.note(self.name, f"another client {'removes' if body is None else 'edits'} {kind}/{id_}")
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

    def headers(self) -> dict[str, str]:
        """Return additional headers of every response."""
        return {}

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
        self.accepted += 1
        self._note(Write(asyncio.get_running_loop().time(), writer, method, (kind, id_), body, given_up))
        if body is None:
            self._free(references(kind, self.records[kind].pop(id_)))
            if given_up:
                self.excused.add((kind, id_))
            return 200, {"key": f"/apisix/{path}", "deleted": "1"}
        status = 200 if id_ in self.records[kind] else 201
        self._free(references(kind, self.records[kind].get(id_, {})))
        self.records[kind][id_] = body
        self._bump((kind, id_))
        (self.excused.add if given_up else self.excused.discard)((kind, id_))
        return status, {"key": f"/apisix/{path}", "value": body}

    def is_deaf_to(self, method: str, path: str, status: int) -> bool:
        """Return whether the fault suppresses the response to a write."""
        if not self.fault.deaf or method == "GET" or status == 429:
            return False
        if status == 201:
            self._unheard.add(path)
        return path in self._unheard or zlib.crc32(path.encode()) % 1000 < 1000 * self.fault.deaf

    def has_missed(self, path: str) -> bool:
        """Return whether the first write of a record was applied without a response."""
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
            self.trace.violate(self.name, f"{process.name} continues to write with a rejected key")

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
        if error := invalid(body):
            return 400, {"error_msg": error}
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


def invalid(body: Body) -> str:
    """Return what is wrong with a body; empty: nothing."""
    is_wrong = any(isinstance(each, dict) and each.get("count") == 0 for each in body.get("plugins", {}).values())
    return 'failed to check the configuration of plugin limit-count err: property "count"' if is_wrong else ""


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
