"""Kubernetes Events about conditions (v1-behaviour.md §7), and how they are sent.

Recording only queues. Sending is bounded, rate limited and abandoned after a few attempts. Equal Events of one object
become one Event with a count.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import structlog

from apisix_ingress.errors import KubeError, KubeForbidden, KubeNotFound, KubeUnavailable
from apisix_ingress.kube.status.interface import GatewayLoad, Idle, StatusObserver
from apisix_ingress.kube.status.text_limits import bounded_message, timestamp
from apisix_ingress.model.condition import SYNCED, Cause, Condition
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.resource import Resource
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.model.objects import Meta
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.runtime.queue.rate_limiters import Bucket
from apisix_ingress.runtime.term import Term

log = structlog.get_logger()

COMPONENT = "ApisixIngress"
SYNCED_EVENT = "ApisixIngress synced successfully"
FAILED_EVENT = "ApisixIngress synced failed, with error: "
EventType = Literal["Normal", "Warning"]

_QUEUE_LIMIT = 1000
_EVENTS_A_SECOND, _BURST = 10.0, 50
"""Average Events per second, and the burst."""
_PAUSE_SECONDS = 1.0
"""Minimum pause once the burst is used up: waking an idle process costs more than sending one more Event."""
BESIDE_CHANGES_SECONDS = 0.5
"""Seconds before each Event of a success while gateways are being changed: it costs the API server as much as one."""
_REMEMBERED = 2000
_SAME_FOR_SECONDS = 600.0
SEND_SECONDS = 5.0
"""Timeout of one request in seconds, unless a shorter lease requires less."""
_TRIES = 3
_LONGEST_NAME = 230
_TERMINATING = "is being terminated"
"""The API server's error for a namespace that is being deleted: no permission is missing."""


class EventApi(Protocol):
    """The methods of `api.KubeApi` that the recorder uses."""

    async def create(self, path: str, body: JsonObject, *, timeout: float = ...) -> JsonObject:
        """Create an object."""

    async def patch(self, path: str, body: object, *, timeout: float = ...) -> JsonObject:
        """Merge-patch an object."""


class _News(NamedTuple):
    """Events with equal signatures are counted as one."""

    meta_key: tuple[str, str, str, str]
    type: EventType
    reason: str
    message: str


@dataclass(slots=True)
class _Sent:
    """An Event in the API server."""

    path: str
    count: int
    at: float


class EventRecorder:
    """Queues Events and sends them within a term.

    Args:
        api: The API server.
        clock: Used for rates, windows and the times in Events.
        rng: Used for names and jitter.
        resources: Kind → resource.
        observer: Notified of each dropped Event.
        gateways: The load of the gateways: Events of successes are sent slowly while they are being changed.
        timeout: Timeout of one request in seconds; the term must last at least that long when a request begins.
    """

    def __init__(
        self,
        api: EventApi,
        *,
        clock: Clock,
        rng: random.Random,
        resources: Mapping[str, Resource] = RESOURCES,
        observer: StatusObserver | None = None,
        gateways: GatewayLoad | None = None,
        timeout: float = SEND_SECONDS,
    ) -> None:
        self._timeout = timeout
        self._api = api
        self._clock = clock
        self._rng = rng
        self._resources = resources
        self._observer = observer or StatusObserver()
        self._gateways = gateways or Idle()
        self._bucket: Bucket[str] = Bucket(_EVENTS_A_SECOND, _BURST, clock=clock)
        # Warnings are sent first: they must neither wait for the successes of a start nor be dropped in favor of them.
        self._queues: dict[EventType, OrderedDict[_News, tuple[Meta, int]]] = {
            "Warning": OrderedDict(),
            "Normal": OrderedDict(),
        }
        self._sent: OrderedDict[_News, _Sent] = OrderedDict()
        self._filled = asyncio.Event()
        self._problem = ""

    def record(self, meta: Meta, type: EventType, reason: str, message: str) -> None:
        """Queue an Event about an object; repetitions only increase its count.

        If there are too many, the oldest is dropped; a warning only if nothing else is queued.
        """
        news = _News((*meta.key, meta.uid), type, reason, bounded_message(message))
        queue = self._queues[type]
        _, count = queue.get(news, (meta, 0))
        queue[news] = (meta, count + 1)
        if len(self) > _QUEUE_LIMIT:
            (self._queues["Normal"] or self._queues["Warning"]).popitem(last=False)
            self._observer.event_dropped()
        self._filled.set()

    def __len__(self) -> int:
        """Return the number of queued Events."""
        return sum(map(len, self._queues.values()))

    async def run(self, term: Term) -> None:
        """Send queued Events until cancelled.

        Raises:
            LeadershipLost: the term is over.
        """
        while True:
            while len(self):
                if (pause := self._bucket.when("")) > 0:
                    await self._clock.sleep(max(pause, _PAUSE_SECONDS))
                if self._gateways.load != "idle" and not self._queues["Warning"]:
                    await self._clock.sleep(BESIDE_CHANGES_SECONDS)
                queue = self._queues["Warning"] or self._queues["Normal"]
                news, (meta, count) = queue.popitem(last=False)
                await self._deliver(term, news, meta, count)
            self._filled.clear()
            await self._filled.wait()

    async def _deliver(self, term: Term, news: _News, meta: Meta, count: int) -> None:
        """Send one Event; give up after a few attempts."""
        for left in reversed(range(_TRIES)):
            term.check(self._timeout)
            try:
                await self._send(news, meta, count)
            except KubeUnavailable as error:
                if not left:
                    self._drop(error)
                    return
                await self._clock.sleep(min(error.retry_after or 0.5, SEND_SECONDS) * (1 + self._rng.random()))
            except KubeError as error:
                self._drop(error)
                return
            else:
                self._problem = ""
                return

    async def _send(self, news: _News, meta: Meta, count: int) -> None:
        now = self._clock.monotonic()
        known = self._sent.pop(news, None)
        if known is not None and now - known.at < _SAME_FOR_SECONDS:
            total = known.count + count
            patch = {"count": total, "lastTimestamp": timestamp(self._clock.now())}
            try:
                await self._api.patch(known.path, patch, timeout=self._timeout)
            except KubeNotFound:
                pass  # it has expired in the API server: create a new one
            else:
                self._remember(news, _Sent(known.path, total, now))
                return
        namespace = meta.namespace or "default"
        body = self._body(news, meta, namespace, count)
        collection = f"/api/v1/namespaces/{namespace}/events"
        await self._api.create(collection, body, timeout=self._timeout)
        self._remember(news, _Sent(f"{collection}/{body['metadata']['name']}", count, now))

    def _remember(self, news: _News, sent: _Sent) -> None:
        self._sent[news] = sent
        if len(self._sent) > _REMEMBERED:
            self._sent.popitem(last=False)

    def _body(self, news: _News, meta: Meta, namespace: str, count: int) -> dict[str, Any]:
        now = timestamp(self._clock.now())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{meta.name[:_LONGEST_NAME]}.{self._rng.getrandbits(64):016x}",
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": self._resources[meta.kind].api_version,
                "kind": meta.kind,
                "namespace": meta.namespace,
                "name": meta.name,
                "uid": meta.uid,
            },
            "type": news.type,
            "reason": news.reason,
            "message": news.message,
            "source": {"component": COMPONENT},
            "reportingComponent": COMPONENT,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": count,
        }

    def _drop(self, error: KubeError) -> None:
        self._observer.event_dropped()
        if isinstance(error, KubeForbidden) and _TERMINATING in str(error):
            log.debug("event.dropped", problem=str(error))
            return
        remedy = "grant create, patch on events" if isinstance(error, KubeForbidden) else ""
        if (problem := type(error).__name__) != self._problem:
            self._problem = problem
            log.warning("event.dropped", problem=str(error), remedy=remedy)


class ConditionEvents:
    """Records Events for changed conditions.

    Args:
        recorder: Receives them; None disables Events.
        began: The start of this process in the API server's time format.
    """

    def __init__(self, recorder: EventRecorder | None, *, began: str) -> None:
        self._recorder = recorder
        self._began = began
        self._announced: dict[ObjectKey, tuple[str, str]] = {}
        self._warned: dict[ObjectKey, tuple[str, int, str]] = {}

    def announce(self, meta: Meta, condition: Condition) -> None:
        """Record an Event for a changed condition; one for each cause of a failure."""
        if self._recorder is None:
            return
        if condition.reason == SYNCED:
            self._recorder.record(meta, "Normal", SYNCED, SYNCED_EVENT)
            return
        for cause in condition.causes or (Cause(condition.reason, condition.message),):
            self._recorder.record(meta, "Warning", cause.reason, f"{FAILED_EVENT}{cause.message}")

    def announce_once(self, meta: Meta, condition: Condition) -> None:
        """Record an Event unless it repeats the last one, or reports success of an object older than this process.

        Warnings are a separate Event, once per version of the object.
        """
        news = (condition.reason, condition.message)
        before = self._announced.get(meta.key)
        self._announced[meta.key] = news
        old = before is None and condition.reason == SYNCED and meta.created < self._began
        if before != news and not old:
            self.announce(meta, condition)
        self._warn_once(meta, condition)

    def _warn_once(self, meta: Meta, condition: Condition) -> None:
        """Record an Event about the warnings unless it repeats the last one, or they are older than this process.

        The generation alone does not identify a version: edits of annotations do not change it.
        """
        warning = condition.warning
        news = (meta.uid, condition.generation, warning.message if warning else "")
        before = self._warned.get(meta.key)
        self._warned[meta.key] = news
        is_old = before is None and meta.created < self._began
        if self._recorder is not None and warning is not None and before != news and not is_old:
            self._recorder.record(meta, "Warning", warning.reason, warning.message)

    def forget(self, key: ObjectKey) -> None:
        """Forget a deleted object."""
        self._announced.pop(key, None)
        self._warned.pop(key, None)
