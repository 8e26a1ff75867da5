"""The ledger of records without labels, stored in a ConfigMap. `gateway` defines and uses the ledger.

::

    apiVersion: v1
    kind: ConfigMap
    metadata: {name: apisix-ingress-ledger}
    data:
      default: '["global_rules/3b5c2a1f","plugin_metadata/http-logger"]'      # gateway cluster: records

It is read once per term and written only when it changes. Optimistic locking prevents a former leader from undoing
what the current leader wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import get_args

import orjson
import structlog

from apisix_ingress.errors import KubeConflict, KubeNotFound, KubeUnavailable
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.kinds.table import RESOURCES

log = structlog.get_logger()

ATTEMPTS = 5
"""Attempts to write a change before conflicts with other writers make it fail."""

REQUEST_SECONDS = 3.0

_KINDS: Mapping[str, RecordKind] = {kind: kind for kind in get_args(RecordKind)}

Entry = tuple[str, RecordKey]
"""Cluster and record."""


@dataclass(frozen=True, slots=True)
class _Stored:
    """The content of the API server.

    Attributes:
        entries: The records of all clusters.
        version: resourceVersion of the ConfigMap; empty if it does not exist.
    """

    entries: frozenset[Entry] = field(default_factory=frozenset)
    version: str = ""


class ConfigMapLedger:
    """A persistent ledger.

    Changes that arrive during a write go into the next write together.

    Args:
        api: The API server.
        namespace: Of the ConfigMap.
        controller: Name of this controller; each controller has its own ConfigMap.
    """

    def __init__(self, api: KubeApi, namespace: str, controller: str) -> None:
        self._api = api
        name = f"{controller}-ledger"
        self._meta = {
            "name": name,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/managed-by": controller},
        }
        self._collection = RESOURCES["ConfigMap"].path(namespace)
        self._path = RESOURCES["ConfigMap"].path(namespace, name)
        self._stored: _Stored | None = None
        self._waiting: list[Mapping[Entry, bool]] = []
        """Requested changes in the order of the calls: entry → whether it should exist."""
        # Held during requests: concurrent writes of this process would conflict with each other.
        self._lock = asyncio.Lock()

    def renew(self) -> None:
        """Read the ConfigMap again at the next use."""
        self._stored = None

    async def keys(self, cluster: str) -> frozenset[RecordKey]:
        """Return the records of a cluster.

        Raises:
            KubeError: The ConfigMap could not be read.
        """
        async with self._lock:
            stored = await self._known()
        return frozenset(key for name, key in stored.entries if name == cluster)

    async def note(self, cluster: str, keys: Collection[RecordKey]) -> bool:
        """Add records; return whether that needed a write.

        Raises:
            KubeError: The ConfigMap could not be written.
        """
        return await self._change({(cluster, key): True for key in keys})

    async def forget(self, cluster: str, keys: Collection[RecordKey]) -> None:
        """Remove records.

        Raises:
            KubeError: The ConfigMap could not be written.
        """
        await self._change({(cluster, key): False for key in keys})

    async def _change(self, changes: Mapping[Entry, bool]) -> bool:
        """Apply changes to the stored ledger; a later call overrides an earlier one."""
        if self._reflects(changes) and not any(other.keys() & changes.keys() for other in self._waiting):
            return False
        self._waiting.append(changes)
        try:
            async with self._lock:
                # The previous holder of the lock may have written these changes, too.
                if not self._reflects(changes):
                    await self._flush()
        finally:
            self._waiting = [other for other in self._waiting if other is not changes]
        return True

    def _reflects(self, changes: Mapping[Entry, bool]) -> bool:
        return self._stored is not None and _changed(self._stored.entries, changes) == self._stored.entries

    async def _flush(self) -> None:
        """Write the changes of all waiting callers; retry after conflicts with other processes."""
        for attempt in range(1, ATTEMPTS + 1):
            stored = await self._known()
            wanted: dict[Entry, bool] = {}
            for changes in self._waiting:
                wanted.update(changes)
            # Unknown if the write fails or is cancelled.
            self._stored = None
            try:
                self._stored = await self._write(_Stored(_changed(stored.entries, wanted), stored.version))
                return
            except (KubeConflict, KubeNotFound):
                if attempt == ATTEMPTS:
                    raise

    async def _known(self) -> _Stored:
        if self._stored is None:
            self._stored = await self._read()
        return self._stored

    async def _read(self) -> _Stored:
        try:
            found = await self._api.get(self._path, timeout=REQUEST_SECONDS)
        except KubeNotFound:
            return _Stored()
        version, data = self._version_of(found), found.get("data") or {}
        if not isinstance(data, dict):
            raise KubeUnavailable(f"ledger {self._path}: the response is not this ConfigMap")
        return _Stored(frozenset(_parse(data)), version)

    async def _write(self, wanted: _Stored) -> _Stored:
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**self._meta, **({"resourceVersion": wanted.version} if wanted.version else {})},
            "data": _render(wanted.entries),
        }
        if wanted.version:
            answer = await self._api.update(self._path, body, timeout=REQUEST_SECONDS)
        else:
            answer = await self._api.create(self._collection, body, timeout=REQUEST_SECONDS)
        version = self._version_of(answer)
        log.info("ledger.written", records=len(wanted.entries))
        return _Stored(wanted.entries, version)

    def _version_of(self, answer: JsonObject) -> str:
        """Return the ledger's resourceVersion from a response.

        Raises:
            KubeUnavailable: The response is not the ledger: a proxy may respond with 200 to everything.
        """
        meta = answer.get("metadata") or {}
        if meta.get("name") != self._meta["name"] or not isinstance(version := meta.get("resourceVersion"), str):
            raise KubeUnavailable(f"ledger {self._path}: the response is not this ConfigMap")
        return version


def _changed(entries: frozenset[Entry], changes: Mapping[Entry, bool]) -> frozenset[Entry]:
    """Return the entries after some changes."""
    added = {entry for entry, is_wanted in changes.items() if is_wanted}
    return (entries | added) - (changes.keys() - added)


def _render(entries: Iterable[Entry]) -> dict[str, str]:
    data: dict[str, list[str]] = {}
    for cluster, key in sorted(entries):
        data.setdefault(cluster, []).append(str(key))
    return {cluster: orjson.dumps(keys).decode() for cluster, keys in data.items()}


def _parse(data: Mapping[str, str]) -> Iterable[Entry]:
    """Yield the valid entries; someone may have edited the ConfigMap."""
    for cluster, text in data.items():
        try:
            items = orjson.loads(text)
        except orjson.JSONDecodeError:
            items = None
        if not isinstance(items, list):
            log.warning("ledger.unreadable", cluster=cluster, reason="the value is not a JSON list; it is ignored")
            continue
        for item in items:
            kind, _, id_ = item.partition("/") if isinstance(item, str) else ("", "", "")
            if kind in _KINDS and id_:
                yield cluster, RecordKey(_KINDS[kind], id_)
