"""Reads objects of one kind by name, each only while a translation refers to it.

A watch by name needs no permission on other objects, and the API server has an index for it, as kubelets use it for
the Secrets of their Pods. Names come from users' objects: only valid ones are requested, and a limited number in each
namespace.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection

import structlog

from apisix_ingress.kube.informer.reflector import Reflector
from apisix_ingress.model.formats.object_names import LABEL, SUBDOMAIN
from apisix_ingress.model.keys import ObjectKey, Read
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.state.namespaced_store import ObjectPart
from apisix_ingress.state.world import World

log = structlog.get_logger()

LARGEST_NAMESPACE = 50
"""Maximum number of watches in one namespace, since users decide about their number.

Each needs a connection and about 0.35 MB here and 0.1 MB in the API server; a watch of a namespace with 1,000 Secrets
of 5 KB needs 14 MB.
"""
MANY = 1000
"""The number of collections that determines how long these watches last: there may be many, and they are quiet."""


class ReferencedObjects:
    """The reflectors of the objects that translations refer to.

    Args:
        resource: The kind of the objects.
        world: The store to fill, and the reads to follow.
        namespaces: The namespaces to read; empty: all.
        reflector: Returns a new reflector for a kind and a part of its store.
    """

    def __init__(
        self, resource: Resource, world: World, namespaces: Collection[str], reflector: Callable[..., Reflector]
    ) -> None:
        self.reflectors: dict[ObjectKey, Reflector] = {}
        self._resource = resource
        self._store = world.stores[resource.kind]
        self._store.synced = True
        self._namespaces = namespaces
        self._reflector = reflector
        self._counts: Counter[str] = Counter()
        self._waiting: dict[ObjectKey, None] = {}
        self._tasks: dict[ObjectKey, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        world.dependents.follow(self._referenced, self._unreferenced)

    async def run(self) -> None:
        """List and watch every object that a translation refers to, until cancelled."""
        async with asyncio.TaskGroup() as self._group:
            for key, reflector in self.reflectors.items():
                self._start(key, reflector)
            await asyncio.Event().wait()

    async def loaded(self) -> bool:
        """Wait until every object that translations refer to was listed; return whether one was not."""
        missing = [each for each in self.reflectors.values() if not each.synced.is_set()]
        for each in missing:
            await each.synced.wait()
        return bool(missing)

    def _referenced(self, read: Read) -> None:
        if isinstance(read, ObjectKey) and read.kind == self._resource.kind and self._is_readable(read):
            self._add(read)

    def _is_readable(self, key: ObjectKey) -> bool:
        """Return whether the name can be one of an object to read; it may be any text."""
        is_valid = LABEL.fits(key.namespace) and SUBDOMAIN.fits(key.name)
        return is_valid and (not self._namespaces or key.namespace in self._namespaces)

    def _add(self, key: ObjectKey) -> None:
        kind, namespace = self._resource.kind, key.namespace
        if self._counts[namespace] >= LARGEST_NAMESPACE:
            if not self._waiting:
                log.warning("references.limited", kind=kind, namespace=namespace, limit=LARGEST_NAMESPACE)
            self._waiting[key] = None
            return
        self._counts[namespace] += 1
        part = ObjectPart(self._store, key)
        self.reflectors[key] = reflector = self._reflector(self._resource.restricted(key), part, collections=MANY)
        self._start(key, reflector)

    def _start(self, key: ObjectKey, reflector: Reflector) -> None:
        if self._group is not None:
            self._tasks[key] = self._group.create_task(reflector.run(), name=f"reflector-{key}")

    def _unreferenced(self, read: Read) -> None:
        if not isinstance(read, ObjectKey):
            return
        self._waiting.pop(read, None)
        if (reflector := self.reflectors.pop(read, None)) is None:
            return
        reflector.synced.set()  # it is not needed any more
        if task := self._tasks.pop(read, None):
            task.cancel()
        self._store.delete(read)
        self._counts[read.namespace] -= 1
        if following := next((key for key in self._waiting if key.namespace == read.namespace), None):
            del self._waiting[following]
            self._add(following)
