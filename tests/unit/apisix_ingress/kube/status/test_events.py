"""The rate of Events. Their content is tested with an API server."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import cast

from structlog.testing import capture_logs

from apisix_ingress.errors import KubeError, KubeForbidden, KubeUnavailable
from apisix_ingress.kube.status.events import BESIDE_CHANGES_SECONDS, FAILED_EVENT, ConditionEvents, EventRecorder
from apisix_ingress.kube.status.interface import Load, StatusObserver
from apisix_ingress.model.condition import Cause, Condition, aborted, synced
from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.objects import Meta
from apisix_ingress.runtime.term import Term
from tests.fakes.clock import FakeClock

WEB = Meta("ApisixRoute", "default", "web")


class EventsApi(StatusObserver):
    """Takes every Event, while gateways are being changed."""

    load: Load = "changes"

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.dropped = 0

    def event_dropped(self) -> None:
        self.dropped += 1

    async def create(self, path: str, body: JsonObject, *, timeout: float = 0.0) -> JsonObject:
        self.messages.append(body["message"])
        return {}

    async def patch(self, path: str, body: object, *, timeout: float = 0.0) -> JsonObject:
        raise AssertionError(f"no Event comes twice, so {path} is not patched with {body} within {timeout} s")


@asynccontextmanager
async def sending(api: EventsApi, clock: FakeClock) -> AsyncIterator[EventRecorder]:
    """Send Events while gateways are being changed."""
    recorder = EventRecorder(api, clock=clock, rng=random.Random(1), observer=api, gateways=api)
    task = asyncio.create_task(recorder.run(Term(clock, holder="tester")))
    try:
        yield recorder
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_events_of_successes_are_sent_slowly_while_gateways_are_being_changed() -> None:
    api, clock = EventsApi(), FakeClock()
    async with sending(api, clock) as recorder:
        for number in range(5):
            recorder.record(WEB, "Normal", "Seen", f"hello {number}")
        await clock.advance(2 * BESIDE_CHANGES_SECONDS)
        assert api.messages == ["hello 0", "hello 1"]
        await clock.advance(3 * BESIDE_CHANGES_SECONDS)
        assert len(api.messages) == 5


async def test_a_warning_waits_for_no_news() -> None:
    api, clock = EventsApi(), FakeClock()
    async with sending(api, clock) as recorder:
        for number in range(3):
            recorder.record(WEB, "Warning", "Failed", f"broken {number}")
        await clock.advance(0.0)
        assert api.messages == ["broken 0", "broken 1", "broken 2"]


class FailingApi(EventsApi):
    """Rejects Events, or fails, a number of times."""

    def __init__(self, *errors: KubeError) -> None:
        super().__init__()
        self.errors = list(errors)
        self.tries = 0

    async def create(self, path: str, body: JsonObject, *, timeout: float = 0.0) -> JsonObject:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        return await super().create(path, body, timeout=timeout)


async def test_an_event_that_is_refused_is_dropped_and_reported_once_with_the_remedy() -> None:
    refused = KubeForbidden("POST events: 403: no", status=403)
    api, clock = FailingApi(refused, refused), FakeClock()
    with capture_logs() as logs:
        async with sending(api, clock) as recorder:
            for number in range(3):
                recorder.record(WEB, "Warning", "Failed", f"broken {number}")
            await clock.advance(0.0)
    assert (api.tries, api.dropped, api.messages) == (3, 2, ["broken 2"])
    reported = [(line["event"], line["problem"], line["remedy"]) for line in logs]
    assert reported == [("event.dropped", "POST events: 403: no", "grant create, patch on events")]


async def test_an_event_in_a_namespace_that_ends_is_dropped_without_a_word() -> None:
    ending = KubeForbidden("403: unable to create new content in namespace a because it is being terminated")
    api, clock = FailingApi(ending), FakeClock()
    with capture_logs() as logs:
        async with sending(api, clock) as recorder:
            recorder.record(WEB, "Warning", "Failed", "broken")
            await clock.advance(0.0)
    assert (api.dropped, [line["log_level"] for line in logs]) == (1, ["debug"])


async def test_an_event_is_retried_a_few_times_without_an_api_server() -> None:
    away = KubeUnavailable("POST events: no response in time", retry_after=1.0)
    api, clock = FailingApi(away, away, away, away), FakeClock()
    with capture_logs() as logs:
        async with sending(api, clock) as recorder:
            recorder.record(WEB, "Warning", "Failed", "first")
            await clock.advance(60)
            assert (api.tries, api.dropped, api.messages) == (3, 1, [])
            recorder.record(WEB, "Warning", "Failed", "second")
            await clock.advance(60)
    assert (api.tries, api.dropped, api.messages) == (5, 1, ["second"])
    want = [("event.dropped", "POST events: no response in time")]
    assert [(line["event"], line["problem"]) for line in logs] == want


def test_each_cause_of_a_failure_has_its_own_event_reason() -> None:
    reported: list[tuple[str, str, str]] = []

    class Recorder:
        def record(self, meta: Meta, type: str, reason: str, message: str) -> None:
            reported.append((type, reason, message))

    events = ConditionEvents(cast("EventRecorder", Recorder()), began="")
    causes = [Cause("ServiceNotFound", "spec.a: no Service"), Cause("SecretNotFound", "spec.b: no Secret")]
    events.announce(Meta("ApisixRoute", "default", "web"), aborted(1, "both", causes=causes))
    events.announce(Meta("ApisixRoute", "default", "web"), aborted(1, "whole"))
    assert reported == [
        ("Warning", "ServiceNotFound", f"{FAILED_EVENT}spec.a: no Service"),
        ("Warning", "SecretNotFound", f"{FAILED_EVENT}spec.b: no Secret"),
        ("Warning", "ResourceSyncAborted", f"{FAILED_EVENT}whole"),
    ]


def test_warnings_are_one_event_for_each_version_and_none_about_versions_before_the_start() -> None:
    reported: list[tuple[str, str, str]] = []

    class Recorder:
        def record(self, meta: Meta, type: str, reason: str, message: str) -> None:
            if type == "Warning":
                reported.append((meta.name, reason, message))

    events = ConditionEvents(cast("EventRecorder", Recorder()), began="2026-01-02T00:00:00Z")
    old = Meta("Ingress", "default", "old", created="2026-01-01T00:00:00Z")
    new = Meta("Ingress", "default", "new", created="2026-01-03T00:00:00Z")

    def warned(generation: int, message: str) -> Condition:
        return replace(synced(generation), warning=Cause("NginxNoEffect", message) if message else None)

    for meta in (old, new):
        for each in (
            warned(1, "a"),
            warned(1, "a"),
            warned(1, "a; b"),
            warned(2, "a; b"),
            warned(2, ""),
            warned(2, "a"),
        ):
            events.announce_once(meta, each)
    reason = "NginxNoEffect"
    after = ["a; b", "a; b", "a"]
    assert reported == [
        *(("old", reason, message) for message in after),
        *(("new", reason, message) for message in ("a", *after)),
    ]
    events.forget(new.key)
    events.announce_once(replace(new, uid="2"), warned(1, "a"))
    assert reported[-1] == ("new", reason, "a")
