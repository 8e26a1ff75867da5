"""Lists: every page of one is read, then the store is made equal to them, but for deletes that are held back.

A list is acted upon when it is complete. Deletes that a list implies and no event announced are held back when they
are unusually many, or the list is empty, until a second list confirms them. When to list is decided in `reflector`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from apisix_ingress.kube.api import KubeApi
from apisix_ingress.kube.intake import Intake
from apisix_ingress.kube.standing import Standing
from apisix_ingress.kube.watching import ReflectorObserver, ReflectorOptions, key_of
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kube import KubeObject
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.state.portion import Fillable

log = structlog.get_logger()


@dataclass(slots=True)
class WholeList:
    """A complete list.

    Attributes:
        items: The objects that could be read.
        seen: The keys of all, also of those that could not.
        version: What a watch goes on from.
    """

    items: list[KubeObject] = field(default_factory=list)
    seen: set[ObjectKey] = field(default_factory=set)
    version: str = ""


class Listing:
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
        intake: Intake,
        standing: Standing,
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
        while True:
            page = await self._api.page(path, limit=self._options.page_size, more=more, fields=fields)
            self._standing.heard()
            await self._decode(page.items, found)
            if not (more := page.more):
                found.version = page.version
                return found

    async def _decode(self, page: Sequence[JsonObject], found: WholeList) -> None:
        for number, raw in enumerate(page, 1):
            key = key_of(self._intake.resource, raw)
            if key is not None:
                found.seen.add(key)
            item = self._intake.decode(raw)
            if item is not None:
                found.items.append(item)
            await self._intake.breathe(number)

    async def _replace(self, found: WholeList) -> None:
        """Store what is there, then delete what is not; in steps, since the whole may take a while."""
        for number, item in enumerate(found.items, 1):
            self._intake.put(item)
            await self._intake.breathe(number)
        gone = frozenset(self._store.keys()) - found.seen
        for number, key in enumerate(self._confirmed(gone, is_empty=not found.seen), 1):
            self._intake.delete(key)
            await self._intake.breathe(number)
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
        if unusual != bool(self._missing):
            self._observer.held(self._intake.resource.kind, len(once) if unusual else 0)
        self._missing = once if unusual else frozenset()
        if unusual:
            self._tell_held()
        return twice if unusual else gone

    def _tell_held(self) -> None:
        missing, wait = len(self._missing), self._options.hold_seconds
        self._standing.problem = f"{missing} objects are missing from the list without delete events: checking again"
        log.warning(
            "reflector.held",
            kind=self._intake.resource.kind,
            missing=missing,
            objects=len(self._store),
            remedy=f"none: listed again in {wait:g} s, and what is missing then too is deleted",
        )
