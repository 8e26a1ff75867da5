"""Which outstanding writes a delete waits for: scopes that a write is in, and scopes that a delete waits for. Pure.

A record that is to go waits for every write that could take over what it serves: of its own namespace, and of another
one if it has the same host. What refers to a record is looked at elsewhere. Other writes are none of its business, so
that a namespace with thousands of them delays no delete of another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import Former, Record

Scope: TypeAlias = str
"""A set of writes; a write is in several."""

EVERYTHING: Scope = "everything"

_HOSTS: dict[RecordKind, tuple[str, ...]] = {"routes": ("hosts", "host"), "ssls": ("snis",), "stream_routes": ()}
"""Where a record says for which hosts it answers. Another record can take over from one of these kinds, and no other:
what an upstream or a plugin config does, it does for what refers to it.
"""

_AFTER_ALL: frozenset[RecordKind] = frozenset({"global_rules", "plugin_metadata"})
"""Records for every request: what takes over for them may be in any record of any namespace."""

_MOST_HOSTS, _MOST_LABELS = 16, 10
"""A delete with more is not worth the look at each: it waits for all writes."""


def scopes_of(record: Record | None, namespace: str) -> tuple[Scope, ...]:
    """Return the scopes of the write of a record, None if that is not known, whose owner is in a namespace."""
    common = (EVERYTHING, _of_namespace(namespace))
    if record is None or record.key.kind not in _HOSTS:
        return common
    return (*common, *dict.fromkeys(_host_scopes(record.key.kind, record)))


def awaited(key: RecordKey, former: Former) -> tuple[Scope, ...]:
    """Return the scopes whose writes the delete of a record waits for; the writes marked later do not count.

    A consumer waits for none: to delete one takes a credential back, and nothing can take over for it.

    Args:
        key: The record.
        former: What its owner wanted before; without the record it may have served anything.
    """
    if key.kind == "consumers":
        return ()
    record = former.records.get(key)
    if record is None or key.kind in _AFTER_ALL:
        return (EVERYTHING,)
    own = _of_namespace(former.namespace)
    if key.kind not in _HOSTS:
        return (own,)
    hosts = list(_hosts(record))
    if key.kind != "stream_routes" and not _are_few(hosts):
        return (EVERYTHING,)
    patterns = (pattern for host in hosts for pattern in _patterns(host))
    return (own, _of_host(key.kind, "*"), *dict.fromkeys(_of_host(key.kind, pattern) for pattern in patterns))


def _of_namespace(namespace: str) -> Scope:
    return f"namespace {namespace}"


def _of_host(kind: RecordKind, host: str) -> Scope:
    return f"{kind} {host}"


def _host_scopes(kind: RecordKind, record: Record) -> Iterator[Scope]:
    """Yield a scope for each host or wildcard; a record for all hosts, or for odd patterns, is in that of `*`."""
    hosts = list(_hosts(record)) or ["*"]
    for host in hosts:
        yield _of_host(kind, host if host.startswith("*.") or "*" not in host else "*")


def _hosts(record: Record) -> Iterator[str]:
    for field in _HOSTS[record.key.kind]:
        found = record.body.get(field)
        for host in [found] if isinstance(found, str) else found or ():
            yield str(host).lower()


def _are_few(hosts: list[str]) -> bool:
    """Say whether these are hosts, not patterns, and so few that each can be looked at."""
    return 0 < len(hosts) <= _MOST_HOSTS and all("*" not in host and host.count(".") < _MOST_LABELS for host in hosts)


def _patterns(host: str) -> Iterable[str]:
    """Yield the host and the wildcards that stand for it."""
    yield host
    while "." in host:
        host = host.partition(".")[2]
        yield f"*.{host}"
