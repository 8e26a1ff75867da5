"""Reflectors: each keeps the store of one kind equal to what the API server has. They decide nothing else.

::

    list ──complete──► store ──► watch ──ends, cut, 429, 5xx──► watch from the last version, after a backoff
      ▲                            │
      └──── 410, roll-back ────────┘
    404 on list: look at the API group as well; gone twice: the kind is absent, its store empty, look again
    403: the store stays as it is, the missing permission is in `problem`

A list is acted upon when it is complete. Deletes that a list implies and no event announced are held back when they
are unusually many, or the list is empty, until a second list confirms them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, NoReturn

import structlog

from apisix_ingress.errors import KubeError, KubeForbidden, KubeGone, KubeNotFound, KubeUnavailable, KubeUnreachable
from apisix_ingress.kube.api import KubeApi
from apisix_ingress.kube.depth import check_depth, cut
from apisix_ingress.kube.watching import (
    NO_OBSERVER,
    MalformedEvent,
    ReflectorObserver,
    ReflectorOptions,
    WatchEvent,
    is_rolled_back,
    key_of,
    parse_event,
    version_of,
)
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kube import KubeObject
from apisix_ingress.model.resources import CUSTOM_GROUP, DECODE_ERRORS, Resource
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.ratelimit import ExponentialBackoff
from apisix_ingress.runtime.tasks import bounded
from apisix_ingress.state.portion import Fillable

log = structlog.get_logger()

LONGEST_PAUSE = 120.0
"""A Retry-After beyond this many seconds is not believed."""
RETURN_SPREAD = 0.25
"""Within so many seconds after an outage the kinds come back, one by one."""
_MALFORMED_LIMIT = 3


class Reflector:
    """Fills one store, for ever.

    Args:
        resource: The kind.
        store: Its store, or the portion of it for a namespace; nobody else writes it.
        api: The API server.
        clock: For delays and ages.
        rng: For jitter.
        namespace: The one that is read; empty: all.
        options: Sizes and times.
        observer: Told what a metric may want to know.
        silent: Told of each object that the store took without telling anybody: it is equal in all that is compared.
    """

    def __init__(
        self,
        resource: Resource,
        store: Fillable,
        api: KubeApi,
        *,
        clock: Clock,
        rng: random.Random,
        namespace: str = "",
        options: ReflectorOptions | None = None,
        observer: ReflectorObserver = NO_OBSERVER,
        silent: Callable[[KubeObject], None] = lambda item: None,
    ) -> None:
        self.resource = resource
        self.namespace = resource.only.namespace if resource.only else namespace
        """Of the objects that are read; empty: all."""
        self.synced = asyncio.Event()
        """Set once the store has been complete for the first time, also when the kind is absent."""
        self.absent = False
        """Whether the API server does not know the kind."""
        self.problem = ""
        """Why the store is not kept up to date right now, for people; empty: it is."""
        self._store = store
        self._api = api
        self._clock = clock
        self._rng = rng
        self._options = options or ReflectorOptions()
        self._observer = observer
        self._silent = silent
        self._backoff: ExponentialBackoff[str] = ExponentialBackoff(
            self._options.backoff_base, self._options.backoff_cap, 0.5, rng=rng
        )
        self._failing: set[str] = set()
        self._versions = tuple(resource.versions())
        self._path = self._collection()
        self._fields = f"metadata.name={resource.only.name}" if resource.only else ""
        self._version: str | None = None
        self._heard_at = clock.monotonic()
        self._missing: frozenset[ObjectKey] = frozenset()
        self._absent_looks = 0
        self._silent_watches = 0
        self._malformed = 0
        self._undecodable: dict[ObjectKey, str] = {}

    def _collection(self) -> str:
        return self.resource.path(self.namespace)

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            await self._pause(await self._cycle())

    async def _pause(self, seconds: float) -> None:
        """Wait; during an outage no longer than it lasts, which others may notice sooner: the lease is tried often."""
        if not self._api.outage:
            await self._clock.sleep(seconds)
            return
        try:
            await bounded(self._api.end_of_outage(), seconds, clock=self._clock)
        except TimeoutError:
            return
        self._forget_failures()
        await self._clock.sleep(self._rng.uniform(0.0, RETURN_SPREAD))

    def age(self) -> float:
        """Return the seconds since the API server last said anything about this kind."""
        return self._clock.monotonic() - self._heard_at

    async def _cycle(self) -> float:
        """List if need be, watch until the watch ends, and return the seconds to wait."""
        try:
            if self._version is None:
                await self._list()
                if self._missing:
                    return self._options.hold_seconds
            return await self._watch(self._version or "")
        except KubeGone:
            self._version = None
            return self._fail("gone", "its history is gone, it is listed anew")
        except KubeForbidden as error:
            return self._fail("forbidden", self._permission(error))
        except KubeNotFound:
            return await self._look_for_kind()
        except KubeUnavailable as error:
            delay = self._fail("unavailable", str(error), told=isinstance(error, KubeUnreachable))
            return max(delay, min(error.retry_after or 0.0, LONGEST_PAUSE))
        except KubeError as error:
            self._version = None
            return self._fail("refused", str(error))

    # Listing.

    async def _list(self) -> None:
        """Read every page, then make the store equal to them; leaves `_missing` set if deletes are held back."""
        began = self._clock.monotonic()
        items: list[KubeObject] = []
        seen: set[ObjectKey] = set()
        more = ""
        while True:
            page = await self._api.page(self._path, limit=self._options.page_size, more=more, fields=self._fields)
            self._heard_at = self._clock.monotonic()
            await self._decode_page(page.items, items, seen)
            if not (more := page.more):
                break
        await self._replace(items, seen)
        self._observer.listed(self.resource.kind, len(seen), self._clock.monotonic() - began)
        if not self._missing:
            self._version = page.version
            self._finish_list(len(seen))

    async def _decode_page(self, page: Any, items: list[KubeObject], seen: set[ObjectKey]) -> None:
        for number, raw in enumerate(page, 1):
            key = key_of(self.resource, raw)
            if key is not None:
                seen.add(key)
            item = self._decode(key, raw)
            if item is not None:
                items.append(item)
            await self._breathe(number)

    async def _replace(self, items: list[KubeObject], seen: set[ObjectKey]) -> None:
        """Store what is there, then delete what is not; in steps, since the whole may take a while."""
        for number, item in enumerate(items, 1):
            self._set(item)
            await self._breathe(number)
        gone = frozenset(self._store.keys()) - seen
        for number, key in enumerate(self._confirmed(gone, is_empty=not seen), 1):
            self._delete(key)
            await self._breathe(number)
        if not self._missing:
            self._forget_undecodable(seen)

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
            self._observer.held(self.resource.kind, len(once) if unusual else 0)
        self._missing = once if unusual else frozenset()
        if unusual:
            self.problem = f"{len(once)} objects are missing from the list without delete events: checking again"
            log.warning(
                "reflector.held",
                kind=self.resource.kind,
                missing=len(once),
                objects=len(self._store),
                remedy=f"none: listed again in {options.hold_seconds:g} s, and what is missing then too is deleted",
            )
        return twice if unusual else gone

    def _finish_list(self, objects: int) -> None:
        self._absent_looks = 0
        self._become_synced(absent=False, objects=objects)

    def _become_synced(self, *, absent: bool, objects: int) -> None:
        if not self.synced.is_set() or absent != self.absent:
            log.info("reflector.synced", kind=self.resource.kind, objects=objects, absent=absent)
        self.absent = absent
        self._store.synced = True
        self.synced.set()

    # Watching.

    async def _watch(self, version: str) -> float:
        """Follow one watch to its end; return the seconds to wait before the next."""
        options = self._options
        began = self._clock.monotonic()
        seconds = max(1, round(self._rng.uniform(options.watch_shortest, options.watch_longest)))
        where = f"watch of {self.resource.plural}"
        words = 0
        stream = self._api.watch(
            self._path, version=version, seconds=seconds, margin=options.watch_margin, fields=self._fields
        )
        async with stream as lines:
            self._heard()
            async for line in lines:
                self._take(await self._read(line, where))
                words += 1
                await self._breathe(words)
        return await self._after_watch(words, self._clock.monotonic() - began)

    async def _read(self, line: bytes, where: str) -> WatchEvent:
        try:
            return parse_event(line, where)
        except MalformedEvent:
            # Perhaps it is only nested too deep. Cutting may take long: the loop goes on meanwhile.
            shallow = await asyncio.to_thread(cut, line)
        try:
            return parse_event(shallow, where)
        except MalformedEvent as error:
            self._refuse_line(str(error))

    def _heard(self) -> None:
        """Note that the API server answers."""
        self._heard_at = self._clock.monotonic()
        if self.problem:
            log.info("reflector.recovered", kind=self.resource.kind)
            self.problem = ""

    def _take(self, event: WatchEvent) -> None:
        """Apply one event and go on from its version."""
        self._heard_at = self._clock.monotonic()
        self._malformed = self._silent_watches = 0
        self._forget_failures()
        key = key_of(self.resource, event.item)
        if event.type == "DELETED" and key is not None:
            self._undecodable.pop(key, None)
            self._delete(key)
        elif event.type in ("ADDED", "MODIFIED"):
            item = self._decode(key, event.item)
            if item is not None:
                self._set(item)
        self._version = event.version

    async def _after_watch(self, words: int, lasted: float) -> float:
        """A watch that ended early by itself is slowed down; one that never says a word is looked into."""
        if words:
            return self._options.backoff_base if lasted < 1 else 0.0
        if lasted < self._options.watch_shortest / 2:
            return self._fail("empty", "the API server ends watches at once")
        self._forget_failures()
        self._silent_watches += 1
        if self._silent_watches >= self._options.silent_watches:
            self._silent_watches = 0
            page = await self._api.page(self._path, limit=1, fields=self._fields)
            if is_rolled_back(self._version or "", page.version):
                self._version = None
                return self._fail("rolled_back", "the API server went back in time, it is listed anew")
        return 0.0

    def _refuse_line(self, reason: str) -> NoReturn:
        """Leave a watch that talks nonsense; after some of them in a row the list is read again."""
        self._malformed += 1
        if self._malformed >= _MALFORMED_LIMIT:
            self._malformed = 0
            self._version = None
        raise KubeUnavailable(f"watch of {self.resource.plural}: a line is no event ({reason})")

    # Objects.

    def _decode(self, key: ObjectKey | None, raw: JsonObject) -> KubeObject | None:
        """Return the trimmed object, or None for one that can't be read: what was stored of it stays."""
        try:
            # Only custom resources have fields of any shape; notes on these in the metadata are not read.
            if self.resource.group == CUSTOM_GROUP:
                check_depth({**raw, "metadata": None})
            item = self.resource.decode(raw)
        except DECODE_ERRORS as error:
            self._report(key, raw, error)
            return None
        self._undecodable.pop(item.meta.key, None)
        return item

    def _report(self, key: ObjectKey | None, raw: JsonObject, error: Exception) -> None:
        """Tell of an object that can't be read, once for each version of it."""
        name = key or ObjectKey(self.resource.kind, "", "?")
        version = version_of(raw) if key else ""
        if self._undecodable.get(name) == version:
            return
        self._undecodable[name] = version
        self._observer.undecodable(self.resource.kind)
        # The text of some errors quotes the value; of a Secret the class has to be enough.
        detail = "" if self.resource.kind == "Secret" else f": {str(error)[:200]}"
        log.warning("object.undecodable", object=str(name), version=version, error=type(error).__name__ + detail)

    def _forget_undecodable(self, seen: set[ObjectKey]) -> None:
        self._undecodable = {key: version for key, version in self._undecodable.items() if key in seen}

    def _set(self, item: KubeObject) -> None:
        known = self._store.get(item.meta.key) is not None
        if self._store.set(item):
            self._observer.changed(self.resource.kind, "update" if known else "add")
        else:
            self._silent(item)

    def _delete(self, key: ObjectKey) -> None:
        if self._store.delete(key):
            self._observer.changed(self.resource.kind, "delete")

    async def _breathe(self, number: int) -> None:
        if number % self._options.yield_every == 0:
            await asyncio.sleep(0)

    # What goes wrong.

    def _fail(self, reason: str, problem: str, *, told: bool = False) -> float:
        """Note a failure, log it if it is news that nobody told yet, and return the seconds to wait."""
        if problem != self.problem:
            line = log.debug if told else log.warning
            line("reflector.failed", kind=self.resource.kind, reason=reason, problem=problem)
        self.problem = problem
        self._observer.failed(self.resource.kind, reason)
        self._failing.add(reason)
        # Of its own for each reason: after an outage, a first 410 is listed for at once.
        return self._backoff.when(reason)

    def _forget_failures(self) -> None:
        for reason in self._failing:
            self._backoff.forget(reason)
        self._failing.clear()

    def _permission(self, error: KubeForbidden) -> str:
        if error.status == 401:
            return f"the credentials are not accepted: {error}"
        name = f"{self.resource.plural}.{self.resource.group}" if self.resource.group else self.resource.plural
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"listing {name} is forbidden: grant list, watch on {name}{where} ({error})"

    async def _look_for_kind(self) -> float:
        """Find out what a 404 means. The API group's own list has to agree, twice if objects would go."""
        self._version = None
        try:
            served = [each for each in self._versions if await self._api.serves(each)]
        except KubeError as error:
            return self._fail("unavailable", str(error), told=isinstance(error, KubeUnreachable))
        if served and self.resource not in served:
            self.resource = served[0]
            self._path = self._collection()
            log.info("reflector.version", kind=self.resource.kind, version=self.resource.version)
            return 0.0
        if served:
            self._absent_looks = 0
            return self._fail("unavailable", f"the API server knows {self.resource.plural} but does not list them")
        self._heard_at = self._clock.monotonic()
        self._absent_looks += 1
        name = f"{self.resource.api_version} {self.resource.plural}"
        problem = f"the API server does not know {name}"
        if not self.resource.optional:
            return self._fail("absent", problem)
        if len(self._store) and self._absent_looks < 2:
            self._fail("absent", f"{problem}: checking again")
            return self._options.hold_seconds
        await self._become_absent(f"{problem}: install the CRDs")
        return self._options.absent_poll * self._rng.uniform(0.75, 1.25)

    async def _become_absent(self, problem: str) -> None:
        for number, key in enumerate(self._store.keys(), 1):
            self._delete(key)
            await self._breathe(number)
        self._missing = frozenset()
        self._forget_failures()
        self._become_synced(absent=True, objects=0)
        self.problem = problem
