"""The list and watch protocol: options, the observer interface, and parsing of watch events.

Nothing here does I/O. `reflector` decides when to list and watch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from apisix_ingress.errors import KubeError
from apisix_ingress.kube.client.api import NO_VERSIONS
from apisix_ingress.kube.client.api_errors import error_of
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.resource import Resource

Operation = Literal["add", "update", "delete"]


class ReflectorObserver:
    """Receives what metrics count; this base class does nothing. Calls are synchronous: be quick and do not raise."""

    def listed(self, kind: str, objects: int, seconds: float) -> None:
        """Record a complete list."""

    def changed(self, kind: str, operation: Operation) -> None:
        """Record a change of the store."""

    def undecodable(self, kind: str) -> None:
        """Record a version of an object that cannot be decoded."""

    def failed(self, kind: str, reason: str) -> None:
        """Record a failed list or watch; `reason` is a constant."""

    def held(self, kind: str, objects: int) -> None:
        """Record how many deletes are held back now."""


@dataclass(frozen=True, slots=True)
class ReflectorOptions:
    """How a reflector lists and watches; times in seconds.

    Attributes:
        page_size: Objects per page of a list.
        watch_shortest: Minimum duration that a watch requests.
        watch_longest: Maximum duration. The duration is random, so that kinds do not reconnect together. The next watch
            continues from the last version: it needs no list and delivers what a stalled watch held back.
        watch_margin: A watch is given up if nothing arrived for its duration plus this. With `watch_longest` this
            limits any silence to 19.5 s.
        crowd: With more collections (kinds times namespaces) than this, watches last proportionally longer, so that
            the API server gets at most three requests per second.
        crowd_longest: Upper limit of this longer duration.
        backoff_base: First delay after a failure; it doubles with each failure, with jitter.
        backoff_cap: Maximum delay. One request per kind in this time does not load an API server. It is also the
            delay with which the end of an outage may be noticed.
        absent_poll: Time between checks for kinds that the API server does not serve.
        absent_hold: How long objects stay after their kind is no longer served, if no delete event removed them. This
            covers the replacement of CRDs; removing a CRD deletes its objects one by one first.
        hold_seconds: Time between a list with unusual deletes and the list that must confirm them.
        hold_share: Deletes are unusual if they exceed this share of a kind and `hold_count`, or leave no object.
        hold_count: See `hold_share`.
        silent_watches: After this many watches in a row without an event, and after each outage, the version is checked
            for a rollback. This is rare, because quiet kinds have bookmarks.
        confirm_watches: After this many watches (about a minute), an unusual list is confirmed a second time.
        yield_every: Objects in a row before other tasks run.
    """

    page_size: int = 500
    watch_shortest: float = 13.0
    watch_longest: float = 16.0
    watch_margin: float = 3.5
    crowd: int = 35
    crowd_longest: float = 60.0
    backoff_base: float = 0.25
    backoff_cap: float = 10.0
    absent_poll: float = 6.0
    absent_hold: float = 60.0
    hold_seconds: float = 3.0
    hold_share: float = 0.3
    hold_count: int = 20
    silent_watches: int = 4
    confirm_watches: int = 3
    yield_every: int = 50


def watch_seconds(options: ReflectorOptions, collections: int) -> tuple[float, float]:
    """Return the minimum and maximum duration of watches for a number of collections."""
    stretch = max(1.0, min(collections / options.crowd, options.crowd_longest / options.watch_longest))
    return options.watch_shortest * stretch, options.watch_longest * stretch


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    item: JsonObject
    version: str


class MalformedEvent(Exception):
    """A line is not a watch event."""


def parse_event(line: bytes, where: str) -> WatchEvent:
    """Parse a line of a watch.

    Raises:
        KubeError: The line is an ERROR event. Its code selects the class as for a response, so 410 is KubeGone.
        MalformedEvent: The line is not a watch event.
    """
    try:
        event: Any = orjson.loads(line)
        kind, item = event["type"], event["object"]
        if kind == "ERROR":
            raise error_of(int(item.get("code") or 500), orjson.dumps(item), where)
        version = item["metadata"]["resourceVersion"]
    except KubeError:
        raise
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise MalformedEvent(type(error).__name__) from None
    if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
        raise MalformedEvent("type")
    if not isinstance(version, str) or version in NO_VERSIONS:
        raise MalformedEvent("resourceVersion")
    return WatchEvent(kind, item, version)


def key_of(resource: Resource, item: JsonObject) -> ObjectKey | None:
    """Return the key of a raw object; None if it has no name."""
    meta = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        return None
    return ObjectKey(resource.kind, str(meta.get("namespace") or ""), meta["name"])


def version_of(item: JsonObject) -> str:
    """Return the resourceVersion of a raw object that has metadata."""
    return str(item["metadata"].get("resourceVersion") or "")


def is_rolled_back(known: str, current: str) -> bool:
    """Return whether the API server went back in time, as after the restore of an etcd backup.

    A watch from a future version stays silent forever. resourceVersions are opaque everywhere else; here, a wrong
    comparison costs only a list.
    """
    return known.isdecimal() and current.isdecimal() and int(current) < int(known)
