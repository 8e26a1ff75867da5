"""Waits until an object is in effect: every gateway cluster has confirmed its current generation.

Custom resources are watched for their condition. An Ingress has none: its records are periodically compared with the
gateways. An object without a ready Pod is not in effect, since its requests fail. A gateway that does not respond is
not a rejection: it may come back in time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from apisix_ingress.diagnostics.collect.cluster_state import ClusterState, look
from apisix_ingress.diagnostics.collect.inventory import take_inventory
from apisix_ingress.diagnostics.reports.status import (
    Wellness,
    computed_wellness,
    short_of,
    stored_wellness,
    with_reason,
)
from apisix_ingress.diagnostics.shortfalls import NO_ENDPOINTS, Shortfalls
from apisix_ingress.errors import KubeError, KubeGone, KubeNotFound, KubeUnavailable
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.informer.watch_events import MalformedEvent, parse_event
from apisix_ingress.model.decoders import decode_custom
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES, has_condition
from apisix_ingress.runtime.clock import Clock
from apisix_ingress.settings import Settings
from providers.status.conditions import Conditions

LASTING_SECONDS = 3.0
"""Seconds after which a rejection is final: objects that it refers to may be created later."""

POLL_SECONDS = 2.0
"""Seconds between two comparisons of an Ingress, and after a failure of the API server."""

FIRST_SECONDS = 10.0
"""Minimum timeout of a first response in seconds, however short the given time."""

WATCH_SECONDS = 60
MARGIN_SECONDS = 10.0

ABSENT = Wellness("pending", "NotFound", "the object does not exist yet")

UNHEARD = Wellness("pending", "Unavailable", "no response yet")
NOT_OURS = Wellness("pending", "NotOurs", "the object does not exist, or its class or namespace is not served")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of waiting: live, failed or timed out."""

    outcome: str
    last: Wellness


async def wait_live(
    api: KubeApi, settings: Settings, key: ObjectKey, *, seconds: float, clock: Clock, step: Callable[[str], None]
) -> Verdict:
    """Wait until an object is in effect, or rejected for a while, or the timeout.

    Raises:
        KubeError: The API server rejects the request, or does not know the kind.
    """
    last, doubted = UNHEARD, None
    deadline = clock.monotonic() + seconds
    states = _states(api, settings, key, clock)
    async with aclosing(states):
        while True:
            now = clock.monotonic()
            left = min(deadline, deadline if doubted is None else doubted + LASTING_SECONDS) - now
            try:
                async with asyncio.timeout(max(FIRST_SECONDS if last is UNHEARD else 0.0, left)):
                    last = await anext(states)
            except TimeoutError:
                return Verdict("failed" if last.state == "failed" else "timed out", last)
            step(f"{key}: {last.reason}: {last.message}" if last.state != "ok" else f"{key}: live")
            if last.state == "ok":
                return Verdict("live", last)
            doubted = (clock.monotonic() if doubted is None else doubted) if last.state == "failed" else None


def _states(api: KubeApi, settings: Settings, key: ObjectKey, clock: Clock) -> AsyncGenerator[Wellness, None]:
    """Return the state of an object at each event."""
    has_status = has_condition(key.kind) and settings.kubernetes.status.enabled
    return _confirmed(api, settings, key, clock) if has_status else _compared(api, settings, key, clock)


async def _confirmed(api: KubeApi, settings: Settings, key: ObjectKey, clock: Clock) -> AsyncGenerator[Wellness, None]:
    """Yield the state from the condition; once that is True, whether Pods are ready."""
    async with aclosing(_watched(api, key, clock)) as states:
        async for found in states:
            if found.state == "ok":
                break
            yield await _explained(api, settings, key, found)
    while True:
        try:
            inventory = await take_inventory(api, settings)
            # Without the permission to list every kind, only the condition is known.
            yield found if inventory.unread else _served(Shortfalls(inventory.world), key, found)
        except KubeUnavailable as error:
            yield Wellness("pending", "Unavailable", str(error))
        await clock.sleep(POLL_SECONDS)


async def _explained(api: KubeApi, settings: Settings, key: ObjectKey, found: Wellness) -> Wellness:
    """Return a stored state with the reason of a failure, as far as the objects can be read."""
    if found.state != "failed":
        return with_reason(found, found)
    try:
        inventory = await take_inventory(api, settings)
    except KubeUnavailable:
        return found
    computed = computed_wellness(Conditions(inventory.world, ()).of(key))
    return found if inventory.unread else with_reason(found, computed)


async def _watched(api: KubeApi, key: ObjectKey, clock: Clock) -> AsyncGenerator[Wellness, None]:
    path, fields = RESOURCES[key.kind].path(key.namespace), f"metadata.name={key.name}"
    while True:
        try:
            page = await api.page(path, limit=1, fields=fields)
            yield _wellness(page.items[0] if page.items else None, key.kind)
            watch = api.watch(path, version=page.version, seconds=WATCH_SECONDS, margin=MARGIN_SECONDS, fields=fields)
            async with watch as lines:
                async for line in lines:
                    event = parse_event(line, f"watch of {key}")
                    name = (event.item.get("metadata") or {}).get("name")
                    if name == key.name and event.type in ("ADDED", "MODIFIED", "DELETED"):
                        yield _wellness(None if event.type == "DELETED" else event.item, key.kind)
        except (KubeGone, MalformedEvent):
            await clock.sleep(POLL_SECONDS)
        except KubeNotFound:
            remedy = "apisix-ingress crds | kubectl apply --server-side -f -"
            raise KubeError(f"{key.kind} is not installed: {remedy}") from None
        except KubeUnavailable as error:
            yield Wellness("pending", "Unavailable", str(error))
            await clock.sleep(POLL_SECONDS)


async def _compared(api: KubeApi, settings: Settings, key: ObjectKey, clock: Clock) -> AsyncGenerator[Wellness, None]:
    while True:
        try:
            yield _seen(await look(api, settings), key)
        except KubeUnavailable as error:
            yield Wellness("pending", "Unavailable", str(error))
        await clock.sleep(POLL_SECONDS)


def _seen(seen: ClusterState, key: ObjectKey) -> Wellness:
    """Return the state of an object from the gateways.

    Raises:
        KubeUnavailable: Unknown for now, since a list failed.
        KubeError: Unknown, since permissions to list are missing.
    """
    unread = seen.inventory.unread
    if unread:
        lasting = {kind: reason for kind, reason in unread.items() if kind not in seen.inventory.failed}
        kind, reason = min((lasting or unread).items())
        error = KubeError if lasting else KubeUnavailable
        raise error(f"whether {key} is in effect is unknown without every {kind}: {reason}")
    world = seen.inventory.world
    return _served(Shortfalls(world), key, computed_wellness(seen.condition(key))) if key in world.reports else NOT_OURS


def _served(short: Shortfalls, key: ObjectKey, found: Wellness) -> Wellness:
    """Return the state of an object; without a ready Pod it is pending, since Pods may become ready in time."""
    known = short_of(short, key, found)
    return replace(known, state="pending") if known.reason == NO_ENDPOINTS else known


def _wellness(raw: JsonObject | None, kind: str) -> Wellness:
    return ABSENT if raw is None else stored_wellness(decode_custom(raw, kind))
