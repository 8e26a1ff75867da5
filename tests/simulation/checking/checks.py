"""The invariants of a story, checked at each write that takes effect and at each log line."""

from __future__ import annotations

import asyncio
from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any

import structlog

from tests.simulation.checking.oracle import Need, Oracle, crc, is_ours
from tests.simulation.checking.trace import Trace
from tests.simulation.loop import PROCESS
from tests.simulation.servers.gateway import ADMIN_KEY, Body, Key, SimGateway, Write
from tests.simulation.users import CORE, PASSWORDS, pair

KNOWN_SECONDS = 100.0
"""Seconds after which every working replica knows a desired record."""

BUGS = frozenset(
    {
        "record.crashed",
        "audit.crashed",
        "endpoints.crashed",
        "object.translate_failed",
        "status.failed",
        "term.failed",
    }
)
"""Log events that indicate a defect."""

CORE_KEYS: tuple[Key, ...] = (
    ("routes", crc(f"{CORE}_r0_rule")),
    ("upstreams", crc(f"{CORE}_web_80")),
    ("plugin_configs", crc(f"{CORE}_p")),
    ("ssls", crc(f"{CORE}_t")),
    ("consumers", f"{CORE}_c"),
    ("global_rules", crc(f"{CORE}_g")),
)
"""Records that must not change from beginning to end."""


class Checks:
    """The invariants of one story; a violation is added to the trace."""

    def __init__(self, trace: Trace, oracle: Oracle) -> None:
        self._trace = trace
        self._oracle = oracle
        self._reign: tuple[str, int] | None = None
        self._past: set[tuple[str, int]] = set()
        self._ready: set[str] = set()
        self._needed_since: dict[Need, float] = {}
        self._core: dict[Key, Body] = {}
        self._written: dict[Key, float] = {}
        self._secrets = [ADMIN_KEY, *PASSWORDS, *(pair(number)[1].decode().split("\n")[1] for number in range(3))]

    def begin(self) -> None:
        """Record the initial state: records needed now were always needed."""
        want = self._oracle.expect()
        self._needed_since = dict.fromkeys(want.needs, float("-inf"))
        self._core = {key: want.records[key] for key in CORE_KEYS}

    def look(self) -> None:
        """Record since when each object needs each of its records.

        A record that passes from one object to another may be deleted in between: their watches are independent.
        """
        now, want = asyncio.get_running_loop().time(), self._oracle.expect()
        self._needed_since = {need: self._needed_since.get(need, now) for need in want.needs}

    def write(self, gateway: SimGateway, write: Write) -> None:
        """Check a write when it takes effect."""
        key, who = write.key, f"{write.writer[0]} {write.method} {write.key[0]}/{write.key[1]}"
        self._check_reign(gateway, write)
        stored = gateway.records[key[0]].get(key[1])
        if stored is not None and not is_ours(key[0], stored):
            self._trace.violate(gateway.name, f"{who}: it is not managed")
        if write.writer[0] not in self._ready and not self._is_early_update(gateway, write, stored):
            self._trace.violate(gateway.name, f"{who}: it does not know the world yet: {str(write.body)[:200]}")
        self._check_width(gateway, write, who)
        if write.body is None:
            self._check_delete(gateway, write, who)
        elif any(write.body.get(name) != value for name, value in self._core.get(key, {}).items()):
            self._trace.violate(gateway.name, f"{who}: it was always wanted otherwise: {str(write.body)[:200]}")

    def log(self, _: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """Record and check a log line (a structlog processor)."""
        process = PROCESS.get()
        if process.is_gone:
            raise structlog.DropEvent
        name, level = event.pop("event"), event.pop("level")
        text = f"{level} {name} " + " ".join(f"{key}={value}" for key, value in event.items())
        if name == "term.started":
            process.terms += 1
        if name == "world.ready":
            self._ready.add(process.name)
        if any(secret in text for secret in self._secrets):
            self._trace.violate(process.name, f"a secret in the log: {name}")
        if name in BUGS:
            self._trace.violate(process.name, f"{name}: {event.get('exception')}")
        if name == "record.rejected" and event.get("status") == HTTPStatus.UNAUTHORIZED:
            self._trace.violate(process.name, f"{event['record']} counts as rejected, but only the key was refused")
        self._trace.note(process.name, text[:600])
        raise structlog.DropEvent

    def crashed(self, name: str, error: BaseException) -> None:
        """Record that a replica ended unexpectedly."""
        self._trace.violate(name, f"the program ended with {error!r}")

    def _check_delete(self, gateway: SimGateway, write: Write, who: str) -> None:
        since = min((since for (_, key), since in self._needed_since.items() if key == write.key), default=write.time)
        if write.time - since > KNOWN_SECONDS:
            self._trace.violate(gateway.name, f"{who}: it was always needed")
        users = [user for user in gateway.users(write.key) if user not in gateway.excused]
        if users and not write.given_up:
            self._trace.violate(gateway.name, f"{who}: {users} name it")

    def _is_early_update(self, gateway: SimGateway, write: Write, stored: Body | None) -> bool:
        """Return whether a write only gives an upstream other nodes: endpoints that its Service has, or has had."""
        if write.key[0] != "upstreams" or write.body is None or stored is None:
            return False
        former = [each.body for each in gateway.writes if each.key == write.key and each.body is not None]
        is_same = any(_without_nodes(write.body) == _without_nodes(body) for body in (stored, *former))
        addresses = tuple(node["host"] for node in write.body["nodes"])
        return is_same and bool(addresses) and self._oracle.has_had(write.body["name"], addresses)

    def _check_width(self, gateway: SimGateway, write: Write, who: str) -> None:
        """Check that a name gets a wide id only if a gateway has, or recently had, a record under its short one."""
        narrow = self._oracle.narrow.get(write.key)
        if write.body is not None and narrow is not None and write.key not in self._written:
            is_recent = write.time - self._written.get(narrow, float("-inf")) < KNOWN_SECONDS
            if not is_recent and not self._oracle.is_held(narrow):
                self._trace.violate(gateway.name, f"{who}: {narrow[1]} was free")
        self._written[write.key] = write.time

    def _check_reign(self, gateway: SimGateway, write: Write) -> None:
        """Check that no write takes effect after one of a later term, on any gateway."""
        if write.writer == self._reign:
            return
        if write.writer in self._past:
            self._trace.violate(gateway.name, f"{write.writer} writes {write.key} after {self._reign}")
        if self._reign is not None:
            self._past.add(self._reign)
        self._reign = write.writer


def _without_nodes(body: Body) -> Body:
    return {name: value for name, value in body.items() if name not in ("nodes", "create_time", "update_time")}
