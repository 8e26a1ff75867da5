"""The latest known status and resourceVersion of each object: from the store, or a newer write of ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from apisix_ingress.errors import KubeNotFound
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.objects import Meta


class ReadApi(Protocol):
    """The methods of `api.KubeApi` that are used here."""

    async def get(self, path: str, *, timeout: float = ...) -> JsonObject:
        """Return an object."""


@dataclass(frozen=True, slots=True)
class Held:
    """The status of an object in the API server: newer than the store until the watch returns our own write.

    `seen` is the version in the store when this was received. Once the store has another version, the store is newer.
    """

    seen: str
    version: str
    status: FrozenJson


class KnownStatus:
    """The status of each object in the API server.

    Args:
        api: The API server.
        timeout: Timeout of one request in seconds.
    """

    def __init__(self, api: ReadApi, *, timeout: float) -> None:
        self._api = api
        self._timeout = timeout
        self._held: dict[ObjectKey, Held] = {}
        self._outdated: set[ObjectKey] = set()

    async def of(self, resource: Resource, item: Any) -> Held:
        """Return the status of an object in the API server; it is read if the known one is outdated.

        Raises:
            KubeError: The object could not be read.
        """
        key, version = item.meta.key, item.meta.resource_version
        if key in self._outdated:
            raw = await self.look(resource, item.meta)
            self._outdated.discard(key)
            self.learn(key, version, raw)
        held = self._held.get(key)
        if held is not None and held.seen == version:
            return held
        self._held.pop(key, None)
        return Held(version, version, getattr(item, "status", {}))

    async def look(self, resource: Resource, meta: Meta) -> JsonObject:
        """Read the object from the API server.

        Raises:
            KubeNotFound: It was deleted; a new object of that name may exist that the store does not have yet.
        """
        raw = await self._api.get(resource.path(meta.key.namespace, meta.key.name), timeout=self._timeout)
        if (raw.get("metadata") or {}).get("uid") != meta.uid:
            raise KubeNotFound(f"{meta.key} was deleted and re-created")
        return raw

    def learn(self, key: ObjectKey, seen: str, raw: JsonObject) -> Held:
        """Record a raw object that the API server returned while the store had version `seen` of it."""
        meta, status = raw.get("metadata") or {}, raw.get("status")
        held = Held(seen, str(meta.get("resourceVersion") or ""), status if isinstance(status, dict) else {})
        self._held[key] = held
        return held

    def mark_outdated(self, key: ObjectKey) -> None:
        """Mark the known status as outdated: another client wrote, or the response to our write was lost."""
        self._outdated.add(key)

    def forget(self, key: ObjectKey) -> None:
        """Forget a deleted object."""
        self._held.pop(key, None)
        self._outdated.discard(key)
