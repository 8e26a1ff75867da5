"""Selects the route for a request: by host level, then exact uri, then the longest prefix, then priority.

Updated for each watched record; a write does not rebuild it.
"""

from __future__ import annotations

import bisect
import ipaddress
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from e2e.devgateway.dataplane.expressions import ALWAYS, BadExpression, Expression, compile_rules
from e2e.devgateway.dataplane.request_context import Context
from e2e.devgateway.store import Record, Records

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Entry:
    """One uri of one route; `order` sorts routes with the same uri."""

    order: tuple[int, int]
    record: Record
    methods: frozenset[str]
    condition: Expression
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
    pattern: re.Pattern[str] | None

    def accepts(self, context: Context) -> bool:
        """Return whether everything beyond host and uri prefix matches."""
        if self.methods and context.request.method not in self.methods:
            return False
        if self.networks and not _in_any(context.remote_addr, self.networks):
            return False
        if self.pattern is not None and not self.pattern.fullmatch(context.uri):
            return False
        return self.condition.holds(context.lookup)


@dataclass(slots=True)
class Table:
    """The uris of one host level."""

    exact: dict[str, list[Entry]] = field(default_factory=dict)
    prefix: dict[str, list[Entry]] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)

    def add(self, uri: str, entry: Entry) -> None:
        key, is_prefix = _uri_key(uri)
        entries = (self.prefix if is_prefix else self.exact).setdefault(key, [])
        bisect.insort(entries, entry, key=lambda found: found.order)
        if is_prefix:
            self.lengths[len(key)] = self.lengths.get(len(key), 0) + 1

    def remove(self, uri: str, record: Record) -> None:
        """Remove every entry of a record with this key; several of its uris may share one: `/a/*`, `/a/*/*`."""
        key, is_prefix = _uri_key(uri)
        table = self.prefix if is_prefix else self.exact
        entries = table.pop(key, [])
        stay = [entry for entry in entries if entry.record.name != record.name]
        if stay:
            table[key] = stay
        if is_prefix and len(stay) < len(entries):
            self.lengths[len(key)] -= len(entries) - len(stay)
            if not self.lengths[len(key)]:
                del self.lengths[len(key)]

    def candidates(self, path: str) -> Iterator[Entry]:
        """Yield entries by precedence."""
        yield from self.exact.get(path, ())
        for length in sorted(self.lengths, reverse=True):
            if length <= len(path):
                yield from self.prefix.get(path[:length], ())

    def __bool__(self) -> bool:
        return bool(self.exact or self.prefix)


def _uri_key(uri: str) -> tuple[str, bool]:
    prefix, star, _ = uri.partition("*")
    return prefix, bool(star)


def _in_any(address: str, networks: tuple[Any, ...]) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in networks)


@dataclass(slots=True)
class _Placed:
    """The position of a route in the tables."""

    record: Record
    sequence: int
    hosts: tuple[str, ...]
    uris: tuple[str, ...]


class Router:
    """Watches routes and services in the store and matches requests."""

    def __init__(self, store: Records) -> None:
        self._store = store
        self._any = Table()
        self._exact: dict[str, Table] = {}
        self._wild: dict[str, Table] = {}
        self._placed: dict[str, _Placed] = {}
        self._of_service: dict[str, set[str]] = {}
        self._sequence = 0
        store.subscribe(self._changed)

    def match(self, context: Context) -> Record | None:
        """Return the route for a request, or None."""
        for table in self._tables(context.host):
            for entry in table.candidates(context.uri):
                if entry.accepts(context):
                    return entry.record
        return None

    def _tables(self, host: str) -> Iterator[Table]:
        if host in self._exact:
            yield self._exact[host]
        for start in range(len(host) + 1):
            if (table := self._wild.get(host[start:])) is not None:
                yield table
        yield self._any

    def _changed(self, kind: str, name: str, record: Record | None) -> None:
        if kind == "routes":
            old = self._placed.get(name)
            self._drop(name)
            if record is not None:
                keeps = old is not None and old.record.created == record.created
                self._place(record, old.sequence if old is not None and keeps else self._next())
        elif kind == "services":
            for route in sorted(self._of_service.get(name, ())):
                placed = self._placed[route]
                self._drop(route)
                self._place(placed.record, placed.sequence)

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def _place(self, record: Record, sequence: int) -> None:
        value = record.value
        uris = (value["uri"],) if "uri" in value else tuple(value.get("uris", ()))
        hosts = self._hosts(value)
        self._placed[record.name] = _Placed(record, sequence, hosts, uris)
        if "service_id" in value:
            self._of_service.setdefault(str(value["service_id"]), set()).add(record.name)
        if value.get("status", 1) == 0:
            return
        for uri in uris:
            entry = _entry(record, sequence, uri)
            for host in hosts:
                self._table(host).add(uri, entry)

    def _hosts(self, value: dict[str, Any]) -> tuple[str, ...]:
        """Return the hosts of a route, else of its service, else the empty host."""
        service = self._store.kind("services").get(str(value.get("service_id")))
        hosts = [value["host"]] if "host" in value else value.get("hosts")
        if not hosts and service is not None:
            hosts = service.value.get("hosts")
        return tuple(dict.fromkeys(host.lower() for host in hosts)) if hosts else ("",)

    def _table(self, host: str) -> Table:
        if not host:
            return self._any
        if host.startswith("*"):
            return self._wild.setdefault(host[1:], Table())
        return self._exact.setdefault(host, Table())

    def _drop(self, name: str) -> None:
        placed = self._placed.pop(name, None)
        if placed is None:
            return
        if "service_id" in placed.record.value:
            self._of_service[str(placed.record.value["service_id"])].discard(name)
        if placed.record.value.get("status", 1) == 0:
            return
        for host in placed.hosts:
            for uri in dict.fromkeys(placed.uris):
                self._table(host).remove(uri, placed.record)
            if host and not self._table(host):
                tables = self._wild if host.startswith("*") else self._exact
                tables.pop(host.removeprefix("*"), None)


def _entry(record: Record, sequence: int, uri: str) -> Entry:
    value = record.value
    addresses = [value["remote_addr"]] if "remote_addr" in value else value.get("remote_addrs", [])
    star = uri.find("*")
    pattern = None
    if 0 <= star < len(uri) - 1:
        pattern = _segments(uri)
    return Entry(
        order=(-int(value.get("priority", 0)), sequence),
        record=record,
        methods=frozenset(value.get("methods", ())),
        condition=_condition(record),
        networks=tuple(ipaddress.ip_network(address, strict=False) for address in addresses),
        pattern=pattern,
    )


def _segments(uri: str) -> re.Pattern[str] | None:
    """Return the pattern of a uri with a star inside (lua-resty-radixtree); None if its prefix is sufficient."""
    parts = uri.rstrip("/").split("/")
    if not any(part.startswith(("*", ":")) for part in parts):
        return None
    texts = ("(.*)" if part.startswith("*") else "([^/]+)" if part.startswith(":") else part for part in parts)
    return re.compile("/".join(texts) + ("/" if uri.endswith("/") else ""), re.DOTALL)


def _condition(record: Record) -> Expression:
    if "filter_func" in record.value:
        log.warning("route %s: filter_func needs Lua, the route never matches here", record.name)
        return Expression("!AND", (ALWAYS,))
    try:
        return compile_rules(record.value.get("vars", []))
    except BadExpression:
        return Expression("!AND", (ALWAYS,))
