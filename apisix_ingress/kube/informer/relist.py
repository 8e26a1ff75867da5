"""Lists: every page of one is read, then the store is made equal to them, but for deletes that are held back.

A list is acted upon when it is complete. Deletes that a list implies and no event announced are held back when they
are unusually many, or the list is empty, until a second list confirms them and none of a few of the objects is found
under its name: something before the API server may cut lists for longer than two of them take. When to list is
decided in `reflector`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

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
from apisix_ingress.runtime.tasks import in_turns
from apisix_ingress.state.namespaced_store import Fillable

log = structlog.get_logger()

PROBES = 5
"""So many of the objects that two lists lacked are looked for by name."""
_EXPIRED_LIMIT = 2
"""After so many lists in a row that expired between two pages, the next one is read as one page."""


@dataclass(slots=True)
class WholeList:
    """A complete list.

    Attributes:
        items: The objects that could be read.
        seen: The keys of all, also of those that could not.
        version: What a watch goes on from.
        unusual: Whether it confirmed deletes that were held back before, or was the first one and lacked what every
            API server has.
    """

    items: list[KubeObject] = field(default_factory=list)
    seen: set[ObjectKey] = field(default_factory=set)
    version: str = ""
    unusual: bool = False


class Relist:
    """Lists one kind, and remembers between two lists what the first one lacked.

    Args:
        api: The API server.
        store: What is made equal; only `intake` writes it.
        intake: Decodes and stores.
        standing: Told when the API server answers, and of deletes that are held back.
        clock: Times the lists.
        options: The size of a page, and which deletes are unusual.
        observer: Told of lists, and of deletes that are held back.
    """

    def __init__(
        self,
        api: KubeApi,
        store: Fillable,
        intake: StoreWriter,
        standing: WatchHealth,
        *,
        clock: Clock,
        options: ReflectorOptions,
        observer: ReflectorObserver,
    ) -> None:
        self._api = api
        self._store = store
        self._intake = intake
        self._standing = standing
        self._clock = clock
        self._options = options
        self._observer = observer
        self._missing: frozenset[ObjectKey] = frozenset()
        self._expired = 0

    async def run(self, path: str, fields: str) -> WholeList | None:
        """List, and make the store equal to what was found; return that, None if deletes are held back.

        Raises:
            KubeError: There was no complete list; the store is as it was.
        """
        began = self._clock.monotonic()
        found = await self._read(path, fields)
        await self._replace(found)
        self._observer.listed(self._intake.resource.kind, len(found.seen), self._clock.monotonic() - began)
        return None if self._missing else found

    def forget_missing(self) -> None:
        """Let no list of before count as the first of two."""
        self._missing = frozenset()

    async def _read(self, path: str, fields: str) -> WholeList:
        found = WholeList()
        more = ""
        limit = self._options.page_size if self._expired < _EXPIRED_LIMIT else 0
        while True:
            try:
                page = await self._api.page(path, limit=limit, more=more, fields=fields)
            except KubeGone:
                self._expired += bool(more)
                raise
            self._standing.heard()
            await self._decode(page.items, found)
            if page.more and page.more == more:
                raise KubeUnavailable(f"list of {self._intake.resource.plural}: its pages have no end")
            if not (more := page.more):
                found.version = page.version
                self._expired = 0
                return found

    async def _decode(self, page: Sequence[JsonObject], found: WholeList) -> None:
        async for raw in in_turns(page, every=self._intake.yield_every):
            key = key_of(self._intake.resource, raw)
            if key is not None:
                found.seen.add(key)
            item = self._intake.decode(raw)
            if item is not None:
                found.items.append(item)

    async def _replace(self, found: WholeList) -> None:
        """Store what is there, then delete what is not; in steps, since the whole may take a while."""
        async for item in in_turns(found.items, every=self._intake.yield_every):
            self._intake.put(item)
        gone = frozenset(self._store.keys()) - found.seen
        twice = gone & self._missing
        is_first = not self._store.synced
        found.unusual = bool(twice) or (is_first and not found.seen and self._intake.resource.never_empty)
        if twice and await self._is_contradicted(twice):
            self._hold(gone, "are missing from lists, but found by name: what stands before the API server is at fault")
            return
        confirmed = self._confirmed(gone, is_empty=not found.seen)
        async for key in in_turns(confirmed, every=self._intake.yield_every):
            self._intake.delete(key)
        if not self._missing:
            self._intake.keep_reports(found.seen)

    def _confirmed(self, gone: frozenset[ObjectKey], *, is_empty: bool) -> frozenset[ObjectKey]:
        """Return what may be deleted now; the rest is remembered until the next list.

        One list that lacks much of a kind is no proof: an object goes when two lists in a row lack it, or when few do.
        An empty list is never believed at once: the addresses of a few Services may be all that there is.
        """
        twice = gone & self._missing
        once = gone - twice
        options = self._options
        many = len(once) > options.hold_count and len(once) > options.hold_share * len(self._store)
        unusual = bool(once) and (many or is_empty)
        if not unusual:
            if self._missing:
                self._observer.held(self._intake.resource.kind, 0)
            self._missing = frozenset()
            return gone
        self._hold(once, "are missing from the list without delete events: checking again")
        return twice

    def _hold(self, missing: frozenset[ObjectKey], problem: str) -> None:
        """Keep objects that a list lacks until the next list, and say so."""
        kind, before = self._intake.resource.kind, self._standing.problem
        if len(missing) != len(self._missing):
            self._observer.held(kind, len(missing))
        self._missing = missing
        self._standing.problem = f"{len(missing)} objects {problem}"
        if self._standing.problem != before:
            remedy = (
                f"none: listed again in {self._options.hold_seconds:g} s; deleted is what no list and no name finds"
            )
            objects = len(self._store)
            log.warning(
                "reflector.held", kind=kind, missing=len(missing), objects=objects, problem=problem, remedy=remedy
            )

    async def _is_contradicted(self, missing: frozenset[ObjectKey]) -> bool:
        """Look for some of the objects that two lists lacked; say whether one of them is there."""
        keys = sorted(missing)
        for key in keys[:: math.ceil(len(keys) / PROBES)]:
            if await self._exists(key):
                return True
        return False

    async def _exists(self, key: ObjectKey) -> bool:
        """Ask for one object by its name; who may only list asks for a list of it.

        Raises:
            KubeError: Nobody knows.
        """
        resource = self._intake.resource
        try:
            raw = await self._api.get(resource.path(key.namespace, key.name))
        except KubeNotFound:
            return False
        except KubeForbidden:
            page = await self._api.page(resource.path(key.namespace), limit=1, fields=f"metadata.name={key.name}")
            return bool(page.items)
        if key_of(resource, raw) != key:
            raise KubeUnavailable(f"{key}: the answer is another object")
        return True
