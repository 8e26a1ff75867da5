"""What a reflector knows of lists and watches as protocols: options, observers, and the reading of event lines.

Pure but for the observer; who lists when, and what follows, is decided in `reflector`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from apisix_ingress.errors import KubeError
from apisix_ingress.kube.client.api import NO_VERSIONS, error_of
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.resource import Resource

Operation = Literal["add", "update", "delete"]


class ReflectorObserver:
    """What a metric may want to know; this one does nothing. Called synchronously: be quick and do not raise."""

    def listed(self, kind: str, objects: int, seconds: float) -> None:
        """Note a complete list."""

    def changed(self, kind: str, operation: Operation) -> None:
        """Note a change that reached the store."""

    def undecodable(self, kind: str) -> None:
        """Note a version of an object that can't be read."""

    def failed(self, kind: str, reason: str) -> None:
        """Note a list or watch that ended badly; `reason` is one constant word."""

    def held(self, kind: str, objects: int) -> None:
        """Note how many deletes are held back; 0: none any more."""


@dataclass(frozen=True, slots=True)
class ReflectorOptions:
    """How a reflector lists and watches; times in seconds.

    Attributes:
        page_size: Objects a page of a list.
        watch_shortest: After so many seconds the API server ends a watch at the earliest,
        watch_longest: and at the latest; drawn for each watch, so that kinds do not reconnect together. The next watch
            goes on from the last version, which costs no list, and delivers what a stalled one kept back.
        watch_margin: A watch is given up when nothing arrived for so much longer than it was to last. `watch_longest`
            and this together bound any silence: 19.5 s.
        crowd: With more collections (kinds times namespaces) than this, each watch lasts proportionally longer, so that
            the API server gets no more than three requests a second,
        crowd_longest: but no longer than this.
        backoff_base: First delay after a failure; doubled each time, with jitter,
        backoff_cap: up to this. A request of each kind in so many seconds burdens no API server, and it is how late
            its return may be noticed.
        absent_poll: How often to look for a kind that the API server does not know.
        absent_hold: For so long the objects of a kind stay that is not served any more though nobody deleted them, as
            while CRDs are replaced: where CRDs are removed their objects are deleted first, one by one.
        hold_seconds: Between two lists of which the second has to confirm unusual deletes.
        hold_share: Deletes above this share of a kind,
        hold_count: and above this number are unusual; so are those that leave nothing.
        silent_watches: So many watches in a row without a word, and the version is checked for a roll-back; so it is
            after each outage. That is rare: a quiet kind has bookmarks.
        confirm_watches: After so many watches an unusual list is looked at again for the second time: a minute.
        yield_every: Objects in a row before other tasks get their turn.
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
    """Return how long watches last, at least and at most, when so many collections are watched."""
    stretch = max(1.0, min(collections / options.crowd, options.crowd_longest / options.watch_longest))
    return options.watch_shortest * stretch, options.watch_longest * stretch


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One event of a watch."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    item: JsonObject
    version: str


class MalformedEvent(Exception):
    """A line that is no event of the protocol."""


def parse_event(line: bytes, where: str) -> WatchEvent:
    """Read a line of a watch.

    Raises:
        KubeError: the line is an ERROR event; KubeGone for 410, as if it had been the answer.
        MalformedEvent: it is no event.
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
    """Return the key of a raw object, None if it does not even have a name."""
    meta = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        return None
    return ObjectKey(resource.kind, str(meta.get("namespace") or ""), meta["name"])


def version_of(item: JsonObject) -> str:
    """Return the resourceVersion of a raw object that has metadata."""
    return str(item["metadata"].get("resourceVersion") or "")


def is_rolled_back(known: str, current: str) -> bool:
    """Say whether the API server went back in time, as it does when a backup of etcd is restored.

    Versions are opaque everywhere else. Here it is only a suspicion that costs a list if it is wrong: a watch from
    a version of the future is silent for ever.
    """
    return known.isdecimal() and current.isdecimal() and int(current) < int(known)
