"""Reflectors: each keeps the store of one kind equal to what the API server has. They decide nothing else.

::

    list ──complete──► store ──► watch ──ends, cut, 429, 5xx──► watch from the last version, after a backoff
      ▲                            │
      └──── 410, roll-back ────────┘   an event of the past; looked for after an outage, and when watches stay silent
    404 on list: look at the API group as well; gone for long: the kind is absent, its store empty, look again
    403: the store stays as it is, the missing permission is in `problem`

What a list does to the store is known to `listing`, what an object has to go through to `intake`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from http import HTTPStatus

import structlog

from apisix_ingress.errors import (
    KubeError,
    KubeForbidden,
    KubeGone,
    KubeNotFound,
    KubeTimeout,
    KubeUnavailable,
    KubeUnreachable,
)
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.client.json_depth import cut
from apisix_ingress.kube.informer.health import WatchHealth
from apisix_ingress.kube.informer.relist import Relist
from apisix_ingress.kube.informer.store_writer import StoreWriter
from apisix_ingress.kube.informer.watch_events import (
    MalformedEvent,
    ReflectorObserver,
    ReflectorOptions,
    WatchEvent,
    is_rolled_back,
    key_of,
    parse_event,
    watch_seconds,
)
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import bounded
from apisix_ingress.state.namespaced_store import Fillable

log = structlog.get_logger()

LONGEST_PAUSE = 120.0
"""A Retry-After beyond this many seconds is not believed,"""
LONGEST_OUTAGE_PAUSE = 15.0
"""nor beyond these unless it comes with 429: who is away can't tell when it returns, which is to be noticed soon."""
RETURN_SPREAD = 0.25
"""Within so many seconds after an outage the kinds come back, one by one."""
_MALFORMED_LIMIT = 4
_DOUBTFUL = 2
"""After so many watches in a row without an answer the API server is taken to have been away.

After so many looks that find it where it was, the kind is listed: changes come late then, but they come.
"""
_SETTLED_PAUSES = 10
"""A watch that tells something after so many first pauses works; one that broke before is paused for longer."""
_ROLLED_BACK = "the API server went back in time"


class Reflector:
    """Fills one store, for ever.

    Args:
        resource: The kind.
        store: Its store, or the portion of it for a namespace; nobody else writes it.
        api: The API server.
        clock: For delays and ages.
        rng: For jitter.
        namespace: The one that is read; empty: all.
        collections: How many reflectors share the API server.
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
        collections: int = 1,
        options: ReflectorOptions | None = None,
        observer: ReflectorObserver | None = None,
        silent: Callable[[KubeObject], None] = lambda item: None,
    ) -> None:
        options, observer = options or ReflectorOptions(), observer or ReflectorObserver()
        self.namespace = resource.only.namespace if resource.only else namespace
        """Of the objects that are read; empty: all."""
        self.synced = asyncio.Event()
        """Set once the store has been complete for the first time, also when the kind is absent."""
        self.absent = False
        """Whether the API server does not know the kind."""
        self._store = store
        self._api = api
        self._clock = clock
        self._rng = rng
        self._options = options
        self._watch_seconds = watch_seconds(options, collections)
        self._standing = WatchHealth(resource.kind, clock=clock, rng=rng, options=options, observer=observer)
        self._intake = StoreWriter(resource, store, observer=observer, silent=silent, yield_every=options.yield_every)
        self._listing = Relist(
            api, store, self._intake, self._standing, clock=clock, options=options, observer=observer
        )
        self._versions = tuple(resource.versions())
        self._path = resource.path(self.namespace)
        self._fields = f"metadata.name={resource.only.name}" if resource.only else ""
        self._version: str | None = None
        # So many watches in a row; those that were told to wait do not count.
        self._unanswered = 0
        self._opened = False
        self._opened_at = 0.0
        self._looks = 0
        self._absent_since: float | None = None
        self._silent_watches = 0
        self._malformed = 0
        # After so many watches the kind is listed to see whether an unusual list was right.
        self._confirmations: list[int] = []

    @property
    def resource(self) -> Resource:
        """The kind in the version that is read now."""
        return self._intake.resource

    @property
    def problem(self) -> str:
        """Why the store is not kept up to date right now, for people; empty: it is."""
        return self._standing.problem

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
        self._standing.forget_failures()
        await self._clock.sleep(self._rng.uniform(0.0, RETURN_SPREAD))

    def age(self) -> float:
        """Return the seconds since the API server last said anything about this kind."""
        return self._standing.age()

    async def _cycle(self) -> float:
        """List if need be, watch until the watch ends, and return the seconds to wait."""
        try:
            if self._unanswered >= _DOUBTFUL and (problem := await self._look()):
                return self._go_back(problem)
            if self._version is None and not await self._is_needed():
                return await self._miss_companion()
            if self._version is None and not await self._list():
                return self._options.hold_seconds
            return await self._watch(self._version or "")
        except KubeGone:
            self._version = None
            return self._standing.fail("gone", "its history is gone, it is listed anew")
        except KubeForbidden as error:
            if self.resource.may_be_forbidden and (self.absent or not self.synced.is_set()):
                await self._become_absent(self._permission(error))
                return self._absent_pause()
            return self._standing.fail("forbidden", self._permission(error))
        except KubeNotFound:
            return await self._look_for_kind()
        except KubeUnavailable as error:
            self._count(error)
            delay = self._standing.fail("unavailable", str(error), told=isinstance(error, KubeUnreachable))
            longest = LONGEST_PAUSE if error.status == HTTPStatus.TOO_MANY_REQUESTS else LONGEST_OUTAGE_PAUSE
            return max(delay, min(error.retry_after or 0.0, longest))
        except KubeError as error:
            self._version = None
            return self._standing.fail("refused", str(error))

    async def _list(self) -> bool:
        """Make the store equal to a list; return False if some of its deletes are held back."""
        found = await self._listing.run(self._path, self._fields)
        if found is None:
            return False
        self._version = found.version
        if found.unusual:
            self._confirmations = [1, self._options.confirm_watches]
        self._absent_since = None
        self._become_synced(absent=False, objects=len(found.seen))
        return True

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
        seconds = max(1, round(self._rng.uniform(*self._watch_seconds)))
        where = f"watch of {self.resource.plural}"
        words = 0
        self._opened = False
        stream = self._api.watch(
            self._path, version=version, seconds=seconds, margin=options.watch_margin, fields=self._fields
        )
        async with stream as lines:
            self._opened, self._unanswered, self._looks = True, 0, 0
            self._opened_at = self._clock.monotonic()
            self._standing.answered()
            async for line in lines:
                event = await self._read(line, where)
                if is_rolled_back(self._version or "", event.version):
                    return self._go_back("a watch told of the past")
                self._take(event)
                words += 1
                if words % self._options.yield_every == 0:
                    await asyncio.sleep(0)
        return await self._after_watch(words, self._clock.monotonic() - began, seconds)

    async def _read(self, line: bytes, where: str) -> WatchEvent:
        try:
            return parse_event(line, where)
        except MalformedEvent:
            # Perhaps it is only nested too deep. Cutting may take long: the loop goes on meanwhile.
            shallow = await asyncio.to_thread(cut, line)
        try:
            return parse_event(shallow, where)
        except MalformedEvent as error:
            raise KubeUnavailable(f"{where}: a line is no event ({error})") from None

    def _take(self, event: WatchEvent) -> None:
        """Apply one event and go on from its version."""
        self._standing.heard()
        self._malformed = self._silent_watches = 0
        lasted = self._clock.monotonic() - self._opened_at
        self._standing.forget_failures(costly=lasted >= _SETTLED_PAUSES * self._options.backoff_base)
        if event.type == "DELETED":
            key = key_of(self.resource, event.item)
            if key is not None:
                self._intake.remove(key)
        elif event.type in ("ADDED", "MODIFIED"):
            item = self._intake.decode(event.item)
            if item is not None:
                self._intake.put(item)
        self._version = event.version

    async def _after_watch(self, words: int, lasted: float, asked: float) -> float:
        """A watch that ended early by itself is slowed down; one that never says a word is looked into."""
        if self._confirmations:
            self._confirmations[0] -= 1
            if not self._confirmations[0]:
                self._confirmations.pop(0)
                self._version = None
        if words:
            if lasted < 1:
                return self._options.backoff_base
            self._standing.forget_failures()
            return 0.0
        if lasted < asked / 2:
            self._distrust()
            return self._standing.fail("empty", "the API server ends watches at once")
        self._standing.forget_failures()
        self._silent_watches += 1
        if self._silent_watches >= self._options.silent_watches:
            self._silent_watches = 0
            if await self._is_rolled_back():
                return self._go_back()
        return 0.0

    async def _look(self) -> str:
        """Find out why watches are not answered; return the reason to list anew, empty: there is none."""
        if await self._is_rolled_back():
            return _ROLLED_BACK
        self._looks += 1
        return "lists are answered, but watches are not" if self._looks >= _DOUBTFUL else ""

    async def _is_rolled_back(self) -> bool:
        """Look whether the API server knows less than we do: it was away, and a backup may have been restored.

        A watch would not tell: from a version of the future it is silent.
        """
        known = self._version
        current = (await self._api.page(self._path, limit=1, fields=self._fields)).version if known else ""
        self._unanswered = 0
        return is_rolled_back(known or "", current)

    def _go_back(self, problem: str = _ROLLED_BACK) -> float:
        """Have the kind listed, whether an old backup was restored or old events came again: a list tells."""
        self._version = None
        return self._standing.fail("rolled_back", f"{problem}, it is listed anew")

    def _count(self, error: KubeUnavailable) -> None:
        """Count a watch that was not answered, or not with events; lists do not count, and to wait is an answer."""
        if self._version is None or error.status == HTTPStatus.TOO_MANY_REQUESTS:
            return
        if not self._opened:
            self._unanswered += 1
        elif not isinstance(error, KubeUnreachable | KubeTimeout):
            self._distrust()

    def _distrust(self) -> None:
        """Note that a watch was answered, but not with events; after some in a row the list is read again."""
        self._malformed += 1
        if self._malformed >= _MALFORMED_LIMIT:
            self._malformed = 0
            self._version = None

    # What goes wrong.

    def _permission(self, error: KubeForbidden) -> str:
        if error.status == 401:
            return f"the credentials are not accepted: {error}"
        name = f"{self.resource.plural}.{self.resource.group}" if self.resource.group else self.resource.plural
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"listing {name} is forbidden: grant list, watch on {name}{where} ({error})"

    async def _look_for_kind(self) -> float:
        """Find out what a 404 means. The API group's own list has to agree, and for long if objects would go."""
        self._version = None
        try:
            served = [each for each in self._versions if await self._api.serves(each)]
        except KubeError as error:
            return self._standing.fail("unavailable", str(error), told=isinstance(error, KubeUnreachable))
        if not served:
            return await self._miss_kind()
        if self.resource not in served:
            self._intake.resource = served[0]
            self._path = self.resource.path(self.namespace)
            log.info("reflector.version", kind=self.resource.kind, version=self.resource.version)
            return 0.0
        self._absent_since = None
        return self._standing.fail("unavailable", f"the API server knows {self.resource.plural} but does not list them")

    async def _miss_kind(self) -> float:
        """Deal with a kind that the API server does not know; return the seconds until the next look."""
        self._standing.heard()
        now = self._clock.monotonic()
        since = self._absent_since = now if self._absent_since is None else self._absent_since
        problem = f"the API server does not know {self.resource.api_version} {self.resource.plural}"
        if not self.resource.optional:
            return self._standing.fail("absent", problem)
        if len(self._store) and now < since + self._options.absent_hold:
            kept = f"{len(self._store)} objects that nobody deleted stay for {self._options.absent_hold:g} s"
            self._standing.fail("absent", f"{problem}: {kept}")
            return self._options.hold_seconds
        await self._become_absent(f"{problem}: install the CRDs")
        return self._absent_pause()

    def _absent_pause(self) -> float:
        return self._options.absent_poll * self._rng.uniform(0.75, 1.25)

    async def _is_needed(self) -> bool:
        """Say whether the kind is read at all: some are only for objects of another kind."""
        needs = self.resource.needs
        return not needs or any([await self._api.serves(each) for each in RESOURCES[needs].versions()])

    async def _miss_companion(self) -> float:
        await self._become_absent(f"the API server does not know {self.resource.needs}, which it is read for")
        return self._absent_pause()

    async def _become_absent(self, problem: str) -> None:
        await self._intake.empty()
        self._listing.forget_missing()
        self._standing.forget_failures()
        self._become_synced(absent=True, objects=0)
        self._standing.problem = problem
