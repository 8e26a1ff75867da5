"""Which outstanding writes a delete waits for: the scopes of a write, and the scopes that a delete waits for. Pure.

A delete waits for every write that could take over what the record serves: writes of its own namespace, and writes of
other namespaces with the same host. Other writes do not delay it, so thousands of writes in one namespace do not delay
the deletes of another. `plan` takes references to the record into account.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import TypeAlias

from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import Former, Record

Scope: TypeAlias = Hashable
"""A set of writes; a write belongs to several."""

EVERYTHING: Scope = "everything"

_HOSTS: dict[RecordKind, tuple[str, ...]] = {"routes": ("hosts", "host"), "ssls": ("snis",), "stream_routes": ()}
"""Kind → the fields with its hosts. Only records of these kinds can be replaced by another record: upstreams and plugin
configs serve the records that refer to them.
"""

_AFTER_ALL: frozenset[RecordKind] = frozenset({"global_rules", "plugin_metadata"})
"""Records that apply to every request: any record of any namespace may replace them."""

_MOST_HOSTS, _MOST_LABELS = 16, 10
"""A delete of a record with more hosts or labels waits for all writes."""


def scopes_of(record: Record | None, namespace: str) -> tuple[Scope, ...]:
    """Return the scopes of the write of a record (None if unknown) whose owner is in a namespace."""
    common = (EVERYTHING, _of_namespace(namespace))
    if record is None or record.key.kind not in _HOSTS:
        return common
    return (*common, *dict.fromkeys(_host_scopes(record.key.kind, record)))


def awaited(key: RecordKey, former: Former) -> tuple[Scope, ...]:
    """Return the scopes whose writes the delete of a record waits for; writes that are ordered later are ignored.

    The delete of a consumer does not wait: it revokes a credential, and no other record can replace it.

    Args:
        key: The record.
        former: What its owner wanted before; if the record is not part of it, it may have served any host.
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
    found = (pattern for host in hosts for pattern in _patterns(host))
    return (own, _of_host(key.kind, "*"), *dict.fromkeys(_of_host(key.kind, pattern) for pattern in found))


def _of_namespace(namespace: str) -> Scope:
    return f"namespace {namespace}"


def _of_host(kind: RecordKind, host: str) -> Scope:
    return f"{kind} {host}"


def _host_scopes(kind: RecordKind, record: Record) -> Iterator[Scope]:
    """Yield a scope for each host or wildcard; records for all hosts, or with other patterns, are in scope `*`."""
    hosts = list(_hosts(record)) or ["*"]
    for host in hosts:
        yield _of_host(kind, host if host.startswith("*.") or "*" not in host else "*")


def _hosts(record: Record) -> Iterator[str]:
    for field in _HOSTS[record.key.kind]:
        found = record.body.get(field)
        for host in [found] if isinstance(found, str) else found or ():
            yield str(host).lower()


def _are_few(hosts: list[str]) -> bool:
    """Return whether these are hosts, not patterns, and few enough to check each."""
    return 0 < len(hosts) <= _MOST_HOSTS and all("*" not in host and host.count(".") < _MOST_LABELS for host in hosts)


def _patterns(host: str) -> Iterable[str]:
    """Yield the host and the wildcards that match it."""
    yield host
    while "." in host:
        host = host.partition(".")[2]
        yield f"*.{host}"
