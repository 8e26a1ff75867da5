"""Lists one kind and replaces the content of the store, except for deletes that are held back.

The first list is stored page by page, so that objects are translated while the API server prepares the next page; the
store counts as complete after the last one. Every other list has an effect only when it is complete. Objects may be
missing from a list without a delete event; from a first list if an earlier attempt failed after some pages. If these
are unusually many, or the list is empty, their deletes are held back until a second list confirms them and GET finds
none of a sample of them: a proxy in front of the API server may truncate two lists in a row. `reflector` decides when
to list.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import structlog

from apisix_ingress.errors import KubeForbidden, KubeGone, KubeNotFound, KubeUnavailable
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.informer.health import WatchHealth
from apisix_ingress.kube.informer.store_writer import StoreWriter
from apisix_ingress.kube.informer.watch_events import ReflectorObserver, ReflectorOptions, key_of
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import discard, in_turns
from apisix_ingress.state.namespaced_store import Fillable

log = structlog.get_logger()

PROBES = 5
"""Size of the sample of objects missing from two lists that are requested by name."""
_EXPIRED_LIMIT = 2
"""After this many lists in a row whose continue token expired, the next list is one page."""


@dataclass(slots=True)
class WholeList:
    """A complete list.

    Attributes:
        items: The objects that could be decoded and are not stored yet.
        seen: The keys of all objects, including objects that could not be decoded.
        version: The resourceVersion from which a watch continues.
        unusual: Whether the list confirmed deletes that were held back, or was the first list and empty although every
            API server has such objects.
    """

    items: list[KubeObject] = field(default_factory=list)
    seen: set[ObjectKey] = field(default_factory=set)
    version: str = ""
    unusual: bool = False


class Relist:
    """Lists one kind and remembers between two lists which objects the first one lacked.

    Args:
        api: The API server.
        store: The store to update; only `writer` writes it.
        writer: Decodes and stores objects.
        health: Records responses and deletes that are held back.
        clock: Measures the duration of lists.
        options: Page size, and which deletes are unusual.
        observer: Called for lists and for deletes that are held back.
    """

    def __init__(
        self,
        api: KubeApi,
        store: Fillable,
        writer: StoreWriter,
        health: WatchHealth,
        *,
        clock: Clock,
        options: ReflectorOptions,
        observer: ReflectorObserver,
    ) -> None:
        self._api = api
        self._store = store
        self._writer = writer
        self._health = health
        self._clock = clock
        self._options = options
        self._observer = observer
        self._missing: frozenset[ObjectKey] = frozenset()
        self._expired = 0

    async def run(self, path: str, fields: str) -> WholeList | None:
        """List the kind and update the store; return the list, or None if deletes are held back.

        Raises:
            KubeError: The list did not complete. Objects of a first list may already be stored; otherwise the store is
                unchanged.
        """
        began = self._clock.monotonic()
        found = await self._read(path, fields)
        await self._replace(found)
        self._observer.listed(self._writer.resource.kind, len(found.seen), self._clock.monotonic() - began)
        return None if self._missing else found

    def forget_missing(self) -> None:
        """Forget what earlier lists lacked, so that the next list is the first of two."""
        self._missing = frozenset()

    async def _read(self, path: str, fields: str) -> WholeList:
        """Return all pages; the API server prepares the next page while one is decoded."""
        found, more = WholeList(), ""
        limit = self._options.page_size if self._expired < _EXPIRED_LIMIT else 0
        page_of = partial(self._api.page, path, limit=limit, fields=fields, labels=self._writer.resource.labels)
        request = asyncio.create_task(page_of())
        try:
            while True:
                try:
                    page = await request
                except KubeGone:
                    self._expired += bool(more)
                    raise
                self._health.heard()
                if page.more and page.more == more:
                    raise KubeUnavailable(f"list of {self._writer.resource.plural}: the continue token repeats")
                if more := page.more:
                    request = asyncio.create_task(page_of(more=more))
                await self._take(page.items, found)
                if not more:
                    found.version = page.version
                    self._expired = 0
                    return found
        finally:
            await discard(request)

    async def _take(self, page: Sequence[JsonObject], found: WholeList) -> None:
        """Decode a page; store its objects if this is the first list."""
        async for raw in in_turns(page, every=self._writer.yield_every):
            key = key_of(self._writer.resource, raw)
            if key is not None:
                found.seen.add(key)
            item = self._writer.decode(raw)
            if item is None:
                continue
            if self._store.synced:
                found.items.append(item)
            else:
                self._writer.put(item)

    async def _replace(self, found: WholeList) -> None:
        """Store the objects of a list, then delete the missing ones; yield to the event loop in between."""
        async for item in in_turns(found.items, every=self._writer.yield_every):
            self._writer.put(item)
        missing = frozenset(self._store.keys()) - found.seen
        twice = missing & self._missing
        is_first = not self._store.synced
        found.unusual = bool(twice) or (is_first and not found.seen and self._writer.resource.never_empty)
        if twice and await self._is_contradicted(twice):
            problem = "are missing from lists, but GET finds them: a proxy in front of the API server truncates lists"
            self._hold_back(missing, problem)
            return
        confirmed = self._confirmed(missing, is_empty=not found.seen)
        async for key in in_turns(confirmed, every=self._writer.yield_every):
            self._writer.delete(key)
        if not self._missing:
            self._writer.keep_reports(found.seen)

    def _confirmed(self, missing: frozenset[ObjectKey], *, is_empty: bool) -> frozenset[ObjectKey]:
        """Return the objects that may be deleted now; remember the others until the next list.

        An object is deleted if two lists in a row lack it, or if a list lacks only few objects. One empty list is never
        enough: a kind may have few objects, all of them important, such as the addresses of a few Services.
        """
        twice = missing & self._missing
        once = missing - twice
        options = self._options
        many = len(once) > options.hold_count and len(once) > options.hold_share * len(self._store)
        unusual = bool(once) and (many or is_empty)
        if not unusual:
            if self._missing:
                self._observer.held(self._writer.resource.kind, 0)
            self._missing = frozenset()
            return missing
        self._hold_back(once, "are missing from the list without delete events: checking again")
        return twice

    def _hold_back(self, missing: frozenset[ObjectKey], problem: str) -> None:
        """Keep the missing objects until the next list, and report them."""
        kind, before = self._writer.resource.kind, self._health.problem
        if len(missing) != len(self._missing):
            self._observer.held(kind, len(missing))
        self._missing = missing
        self._health.problem = f"{len(missing)} objects {problem}"
        if self._health.problem != before:
            remedy = (
                f"no action needed: relisting in {self._options.hold_seconds:g} s;"
                " only objects missing from both lists and from GET are deleted"
            )
            log.warning(
                "relist.deletes_held_back",
                kind=kind,
                missing=len(missing),
                objects=len(self._store),
                problem=problem,
                remedy=remedy,
            )

    async def _is_contradicted(self, missing: frozenset[ObjectKey]) -> bool:
        """Return whether GET finds one of a sample of the objects that two lists lacked."""
        keys = sorted(missing)
        for key in keys[:: math.ceil(len(keys) / PROBES)]:
            if await self._exists(key):
                return True
        return False

    async def _exists(self, key: ObjectKey) -> bool:
        """Return whether an object exists: by GET, or by a list with a field selector if GET is forbidden.

        Raises:
            KubeError: It could not be determined.
        """
        resource, labels = self._writer.resource, self._writer.resource.labels
        by_name = partial(self._api.page, resource.path(key.namespace), limit=1, fields=f"metadata.name={key.name}")
        if labels:  # GET would find an object that has lost its labels
            return bool((await by_name(labels=labels)).items)
        try:
            raw = await self._api.get(resource.path(key.namespace, key.name))
        except KubeNotFound:
            return False
        except KubeForbidden:
            return bool((await by_name()).items)
        if key_of(resource, raw) != key:
            raise KubeUnavailable(f"{key}: the response is a different object")
        return True
