"""Reflectors: each keeps the store of one kind in sync with the API server.

::

    list ──complete──► store ──► watch ──ends, cut off, 429, 5xx──► watch from the last version, after a backoff
      ▲                            │
      └──── 410, rollback ─────────┘   rollback: an old event, or found by the check after outages and silent watches
    the first list is stored page by page
    404 on list: check the API group; if the kind stays absent, empty the store and check again periodically
    403: what is stored stays; `problem` names the missing permission

`relist` applies lists to the store, `store_writer` decodes and stores objects, `watch_state` counts what went wrong.
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
from apisix_ingress.kube.informer.watch_state import WatchState
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import KubeObject
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.tasks import ends_within
from apisix_ingress.state.namespaced_store import Fillable

log = structlog.get_logger()

LONGEST_PAUSE = 120.0
"""Upper limit in seconds of a Retry-After that comes with a 429."""
LONGEST_OUTAGE_PAUSE = 15.0
"""Upper limit of any other Retry-After. A server that is down cannot predict when it is back, and its return must be
noticed soon."""
RETURN_SPREAD = 0.25
"""After an outage, the kinds reconnect at random times within this many seconds."""
_SETTLED_PAUSES = 10
"""A watch that delivers an event after this many base delays works. One that breaks earlier grows the backoff."""
_ROLLED_BACK = "the API server went back in time"


class Reflector:
    """Keeps one store up to date.

    Args:
        resource: The kind.
        store: Its store, or a namespace's part of it; nothing else writes it.
        api: The API server.
        clock: For delays and ages.
        rng: For jitter.
        namespace: The namespace to read; empty for all.
        collections: How many reflectors share the API server.
        options: Sizes and times.
        observer: Called for what metrics count.
        silent: Called with each object that replaced an equal one, for which the store sends no notification.
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
        """The namespace that is read; empty for all."""
        self.synced = asyncio.Event()
        """Set once the store has been complete for the first time, or the kind is absent."""
        self.absent = False
        """Whether the API server does not serve the kind."""
        self._store = store
        self._api = api
        self._clock = clock
        self._rng = rng
        self._options = options
        self._watch_seconds = watch_seconds(options, collections)
        self._health = WatchHealth(resource.kind, clock=clock, rng=rng, options=options, observer=observer)
        self._writer = StoreWriter(resource, store, observer=observer, silent=silent, yield_every=options.yield_every)
        self._relist = Relist(api, store, self._writer, self._health, clock=clock, options=options, observer=observer)
        self._versions = tuple(resource.versions())
        self._path = resource.path(self.namespace)
        self._fields = f"metadata.name={resource.only.name}" if resource.only else ""
        self._state = WatchState()

    @property
    def resource(self) -> Resource:
        """The kind, in the API version that is read now."""
        return self._writer.resource

    @property
    def problem(self) -> str:
        """Why the store is not up to date, as text; empty if it is."""
        return self._health.problem

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            await self._pause(await self._cycle())

    async def _pause(self, seconds: float) -> None:
        """Wait; during an outage at most until any request succeeds, such as the elector's."""
        if not self._api.outage:
            await self._clock.sleep(seconds)
            return
        if not await ends_within(self._api.end_of_outage(), seconds, clock=self._clock):
            return
        self._health.forget_failures()
        await self._clock.sleep(self._rng.uniform(0.0, RETURN_SPREAD))

    def age(self) -> float:
        """Return the seconds since the API server last sent anything about this kind."""
        return self._health.age()

    async def _cycle(self) -> float:
        """List if necessary, watch until the watch ends, and return the seconds to wait."""
        try:
            if self._state.needs_check and (problem := await self._check()):
                return self._roll_back(problem)
            if self._state.version is None and not await self._is_needed():
                return await self._handle_absent_companion()
            if self.absent and not await self._served():
                return await self._handle_absent_kind()
            if self._state.version is None and not await self._list():
                return self._options.hold_seconds
            return await self._watch(self._state.version or "")
        except KubeGone:
            self._state.require_list()
            return self._health.fail("gone", "the resourceVersion expired; relisting")
        except KubeForbidden as error:
            if self.resource.may_be_forbidden and (self.absent or not self.synced.is_set()):
                await self._become_absent(self._permission(error))
                return self._absent_pause()
            return self._health.fail("forbidden", self._permission(error))
        except KubeNotFound:
            return await self._find_kind()
        except KubeUnavailable as error:
            self._count(error)
            delay = self._health.fail("unavailable", str(error), already_logged=isinstance(error, KubeUnreachable))
            longest = LONGEST_PAUSE if error.status == HTTPStatus.TOO_MANY_REQUESTS else LONGEST_OUTAGE_PAUSE
            return max(delay, min(error.retry_after or 0.0, longest))
        except KubeError as error:
            self._state.require_list()
            return self._health.fail("refused", str(error))

    async def _list(self) -> bool:
        """List and update the store; return False if deletes are held back."""
        found = await self._relist.run(self._path, self._fields)
        if found is None:
            return False
        self._state.listed(found.version, confirm_after=(1, self._options.confirm_watches) if found.unusual else ())
        self._become_synced(absent=False, objects=len(found.seen))
        return True

    def _become_synced(self, *, absent: bool, objects: int) -> None:
        if not self.synced.is_set() or absent != self.absent:
            line = log.debug if self.resource.only else log.info
            line("reflector.synced", kind=self.resource.kind, objects=objects, absent=absent)
        self.absent = absent
        self._store.synced = True
        self.synced.set()

    # Watching.

    async def _watch(self, version: str) -> float:
        """Run one watch until it ends; return the seconds to wait before the next."""
        options = self._options
        began = self._clock.monotonic()
        seconds = max(1, round(self._rng.uniform(*self._watch_seconds)))
        where = f"watch of {self.resource.plural}"
        events = 0
        self._state.watch_requested()
        stream = self._api.watch(
            self._path,
            version=version,
            seconds=seconds,
            margin=options.watch_margin,
            fields=self._fields,
            labels=self.resource.labels,
        )
        async with stream as lines:
            self._state.watch_opened(self._clock.monotonic())
            self._health.answered()
            async for line in lines:
                event = await self._read(line, where)
                if is_rolled_back(self._state.version or "", event.version):
                    return self._roll_back("a watch sent an old event")
                self._apply(event)
                events += 1
                if events % self._options.yield_every == 0:
                    await asyncio.sleep(0)
        return await self._after_watch(events, self._clock.monotonic() - began, seconds)

    async def _read(self, line: bytes, where: str) -> WatchEvent:
        try:
            return parse_event(line, where)
        except MalformedEvent:
            # It may only be nested too deeply. Cutting may take long, so it must not block the event loop.
            shallow = await asyncio.to_thread(cut, line)
        try:
            return parse_event(shallow, where)
        except MalformedEvent as error:
            raise KubeUnavailable(f"{where}: a line is not a watch event ({error})") from None

    def _apply(self, event: WatchEvent) -> None:
        """Apply one event and continue from its version."""
        self._health.heard()
        self._state.event_received()
        lasted = self._clock.monotonic() - self._state.opened_at
        self._health.forget_failures(relists=lasted >= _SETTLED_PAUSES * self._options.backoff_base)
        if event.type == "DELETED":
            key = key_of(self.resource, event.item)
            if key is not None:
                self._writer.remove(key)
        elif event.type in ("ADDED", "MODIFIED"):
            item = self._writer.decode(event.item)
            if item is not None:
                self._writer.put(item)
        self._state.version = event.version

    async def _after_watch(self, events: int, lasted: float, asked: float) -> float:
        """Return the seconds to wait; slow down watches that end early, check for a rollback after silent ones."""
        self._state.watch_ended()
        if events:
            if lasted < 1:
                return self._options.backoff_base
            self._health.forget_failures()
            return 0.0
        if lasted < asked / 2:
            self._state.watch_malformed()
            return self._health.fail("empty", "the API server ends watches immediately")
        self._health.forget_failures()
        if self._state.watch_silent(self._options.silent_watches) and await self._is_rolled_back():
            return self._roll_back()
        return 0.0

    async def _check(self) -> str:
        """Find out why watches get no response; return the reason to list, or empty."""
        if await self._is_rolled_back():
            return _ROLLED_BACK
        return "the API server responds to lists, but not to watches" if self._state.check_passed() else ""

    async def _is_rolled_back(self) -> bool:
        """Return whether the API server's version is older than ours, as after the restore of an etcd backup.

        A watch does not show this: from a future version it stays silent.
        """
        known = self._state.version
        labels = self.resource.labels
        current = (
            (await self._api.page(self._path, limit=1, fields=self._fields, labels=labels)).version if known else ""
        )
        self._state.version_checked()
        return is_rolled_back(known or "", current)

    def _roll_back(self, problem: str = _ROLLED_BACK) -> float:
        """Require a list, which is right whether a backup was restored or old events were repeated."""
        self._state.require_list()
        return self._health.fail("rolled_back", f"{problem}; relisting")

    def _count(self, error: KubeUnavailable) -> None:
        """Count a failed watch. Failed lists are not counted, nor is 429, which is a response."""
        if self._state.version is None or error.status == HTTPStatus.TOO_MANY_REQUESTS:
            return
        if not self._state.is_open:
            self._state.watch_unanswered()
        elif not isinstance(error, KubeUnreachable | KubeTimeout):
            self._state.watch_malformed()

    # Failures.

    def _permission(self, error: KubeForbidden) -> str:
        if error.status == 401:
            return f"the credentials are not accepted: {error}"
        name = f"{self.resource.plural}.{self.resource.group}" if self.resource.group else self.resource.plural
        where = f" in namespace {self.namespace}" if self.namespace else ""
        return f"listing {name} is forbidden: grant list, watch on {name}{where} ({error})"

    async def _find_kind(self) -> float:
        """Handle a 404. The kind is absent only if the API group's list agrees, for some time if objects are stored."""
        self._state.require_list()
        try:
            served = await self._served()
        except KubeError as error:
            return self._health.fail("unavailable", str(error), already_logged=isinstance(error, KubeUnreachable))
        if not served:
            return await self._handle_absent_kind()
        if self.resource not in served:
            self._writer.resource = served[0]
            self._path = self.resource.path(self.namespace)
            log.info("reflector.version", kind=self.resource.kind, version=self.resource.version)
            return 0.0
        self._state.kind_served()
        return self._health.fail("unavailable", f"the API server serves {self.resource.plural} but does not list them")

    async def _served(self) -> list[Resource]:
        """Return the kind in the versions that the API server serves."""
        serves = self._api.discovery.serves
        return [each for each in self._versions if await serves(each, was_absent=self.absent)]

    async def _handle_absent_kind(self) -> float:
        """Handle a kind that the API server does not serve; return the seconds until the next check."""
        self._health.heard()
        now = self._clock.monotonic()
        since = self._state.kind_absent(now)
        problem = f"the API server does not serve {self.resource.api_version} {self.resource.plural}"
        if not self.resource.optional:
            return self._health.fail("absent", problem)
        if len(self._store) and now < since + self._options.absent_hold:
            kept = f"{len(self._store)} objects without a delete event stay for {self._options.absent_hold:g} s"
            self._health.fail("absent", f"{problem}: {kept}")
            return self._options.hold_seconds
        await self._become_absent(f"{problem}: install the CRDs")
        return self._absent_pause()

    def _absent_pause(self) -> float:
        """Return the seconds until the next check. All kinds check at the same times, so one list serves them all."""
        return self._options.absent_poll - self._clock.monotonic() % self._options.absent_poll

    async def _is_needed(self) -> bool:
        """Return whether the kind must be read: some kinds are only used by objects of another kind."""
        needs = self.resource.needs
        serves = self._api.discovery.serves
        return not needs or any([await serves(each, was_absent=self.absent) for each in RESOURCES[needs].versions()])

    async def _handle_absent_companion(self) -> float:
        await self._become_absent(f"not needed: the API server does not serve {self.resource.needs}")
        return self._absent_pause()

    async def _become_absent(self, problem: str) -> None:
        await self._writer.empty()
        self._relist.forget_missing()
        self._health.forget_failures()
        self._become_synced(absent=True, objects=0)
        self._health.problem = problem
