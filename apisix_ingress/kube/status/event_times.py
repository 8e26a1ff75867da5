"""Since when objects without conditions fail, according to the Events that earlier leaders wrote about them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from apisix_ingress.kube.client.api import Page
from apisix_ingress.kube.status.events import COMPONENT, FAILED_EVENT
from apisix_ingress.model.condition import SYNCED
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES

KIND = next(kind for kind, row in RESOURCES.items() if row.status == "addresses")
"""The kind whose failures are Events and not conditions: Ingress."""

Failure = tuple[ObjectKey, str]
"""An Ingress, and the code of its problem, which is the reason of the Event."""

PAGE, MOST_PAGES = 500, 20
"""Events in one request, and the maximum number of requests for a namespace."""


class EventLists(Protocol):
    """The method of `api.KubeApi` that reads lists."""

    async def page(self, path: str, *, limit: int, more: str = "", fields: str = "") -> Page:
        """Return one page of a list."""


async def failing_since(api: EventLists, namespaces: Sequence[str]) -> dict[Failure, datetime]:
    """Return when each problem of each Ingress began, unless it was synced since.

    Args:
        api: The API server.
        namespaces: Where to look; an empty name stands for all of them.

    Raises:
        KubeError: Events cannot be read.
    """
    found: dict[Failure, datetime] = {}
    for namespace in namespaces:
        events = [event async for event in _listed(api, namespace)]
        found |= since_of(events)
    return found


def since_of(events: Iterable[JsonObject]) -> Mapping[Failure, datetime]:
    """Return when each problem of each Ingress began: the first Event about it after the last success."""
    found: dict[ObjectKey, dict[str, datetime]] = {}
    for _, event in sorted(_ours(events), key=lambda pair: pair[0]):
        about, reason = event["involvedObject"], str(event.get("reason"))
        key = ObjectKey(KIND, str(about.get("namespace") or ""), str(about.get("name") or ""))
        if reason == SYNCED:
            found.pop(key, None)
        elif (first := moment(event.get("firstTimestamp"))) is not None:
            times = found.setdefault(key, {})
            times[reason] = min(first, times.get(reason, first))
    return {(key, reason): since for key, times in found.items() for reason, since in times.items()}


def _ours(events: Iterable[JsonObject]) -> Iterator[tuple[datetime, JsonObject]]:
    """Yield the Events of this program about successes and failures, each with its last time."""
    for event in events:
        last, message = moment(event.get("lastTimestamp")), str(event.get("message") or "")
        is_ours = event.get("reportingComponent") == COMPONENT and isinstance(event.get("involvedObject"), dict)
        if is_ours and last is not None and (event.get("reason") == SYNCED or message.startswith(FAILED_EVENT)):
            yield last, event


def moment(text: object) -> datetime | None:
    """Return a time of the API server; None if it is not one."""
    try:
        return datetime.strptime(str(text), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None


async def _listed(api: EventLists, namespace: str) -> AsyncIterator[JsonObject]:
    path = f"/api/v1/namespaces/{namespace}/events" if namespace else "/api/v1/events"
    more = ""
    for _ in range(MOST_PAGES):
        page = await api.page(path, limit=PAGE, more=more, fields=f"involvedObject.kind={KIND}")
        for event in page.items:
            yield event
        if not (more := page.more):
            return
