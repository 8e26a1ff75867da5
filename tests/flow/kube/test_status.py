"""Status and Events against an API server over HTTP."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from apisix_ingress.errors import LeadershipLost
from apisix_ingress.kube.client.api import KubeApi
from apisix_ingress.kube.informer.reflector import Reflector
from apisix_ingress.kube.status.events import EventRecorder
from apisix_ingress.kube.status.interface import StatusObserver
from apisix_ingress.kube.status.writer import StatusWriter
from apisix_ingress.model.condition import Condition, aborted, synced
from apisix_ingress.model.json import FrozenJson, JsonObject
from apisix_ingress.model.keys import ObjectKey
from apisix_ingress.model.kinds.table import RESOURCES
from apisix_ingress.runtime.clock import MonotonicClock
from apisix_ingress.runtime.term import Term
from apisix_ingress.state.store import Store
from tests.fakes.kube.apiserver import FakeApiServer, Fault, Kind, Manifest
from tests.waiting import WAIT_SECONDS, until

WEB = ObjectKey("ApisixRoute", "default", "web")
SHOP = ObjectKey("Ingress", "default", "shop")


class StatusHarness(StatusObserver):
    """Reflectors, the writer and the recorder of two kinds."""

    def __init__(self, server: FakeApiServer, api: KubeApi) -> None:
        self.server = server
        self.wanted: dict[ObjectKey, Condition] = {}
        self.published: list[dict[str, Any]] | None = None
        self.dropped = 0
        clock, rng = MonotonicClock(), random.Random(1)
        self.stores: dict[str, Store[Any]] = {
            kind: Store(kind, lambda read: None) for kind in ("ApisixRoute", "Ingress")
        }
        self.outcomes: list[tuple[str, str]] = []
        self.recorder = EventRecorder(api, clock=clock, rng=rng, observer=self)
        self.writer = StatusWriter(api, self.stores, self, clock=clock, rng=rng, recorder=self.recorder, observer=self)
        silent = self.writer.noticed
        self.reflectors = [
            Reflector(RESOURCES[kind], store, api, clock=clock, rng=rng, silent=silent)
            for kind, store in self.stores.items()
        ]
        self.term = Term(clock, holder="tester")
        self.writing: asyncio.Task[None]

    def condition(self, key: ObjectKey) -> Condition | None:
        return self.wanted.get(key)

    def addresses(self, key: ObjectKey) -> list[dict[str, Any]] | None:
        return self.published if key == SHOP else None

    def document(self, key: ObjectKey, status: FrozenJson, now: str) -> JsonObject:
        raise AssertionError(f"{key} has no document to be made of {status} at {now}")

    def status_written(self, kind: str, outcome: str) -> None:
        self.outcomes.append((kind, outcome))

    def event_dropped(self) -> None:
        self.dropped += 1

    def want(self, key: ObjectKey, condition: Condition) -> None:
        self.wanted[key] = condition
        self.writer.wake(key)

    def conditions(self, name: str = "web") -> list[dict[str, Any]]:
        item = self.server.get("apisixroutes", name) or {}
        found: list[dict[str, Any]] = (item.get("status") or {}).get("conditions", [])
        return found

    def events(self) -> list[tuple[str, str, str, int]]:
        return [(each["type"], each["reason"], each["message"], each["count"]) for each in self.server.all("events")]

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition."""
        await until(condition, what, state=lambda: f"{self.server.all('apisixroutes')} {self.events()}")

    async def until_said(self, status: str, generation: int) -> None:
        def said() -> bool:
            return any((c["status"], c.get("observedGeneration")) == (status, generation) for c in self.conditions())

        await self.until(said, f"{status} for generation {generation}")

    async def until_generation(self, generation: int) -> None:
        """Edit the route until it has a generation, and wait until the store has it."""
        while (item := self.server.get("apisixroutes", "web") or route())["metadata"].get("generation", 0) < generation:
            self.server.put({**item, "spec": {**item["spec"], "edited": item["metadata"].get("generation", 0)}})
        await self.until_stored(WEB)

    async def until_stored(self, key: ObjectKey) -> None:
        """Wait until the store has the version of the API server."""

        def stored() -> bool:
            item, there = self.stores[key.kind].get(key), self.server.get(RESOURCES[key.kind].plural, key.name)
            return bool(item and there and item.meta.resource_version == there["metadata"]["resourceVersion"])

        await self.until(stored, f"{key} in the store")

    def shown(self) -> list[dict[str, Any]] | None:
        """Return the addresses of the Ingress."""
        status = (self.server.get("ingresses", "shop") or {}).get("status") or {}
        found: list[dict[str, Any]] | None = (status.get("loadBalancer") or {}).get("ingress")
        return found

    def writes(self) -> int:
        return self.server.count("patch", "apisixroutes") + self.server.count("patch", "ingresses")


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[StatusHarness]:
    async with FakeApiServer() as server, await KubeApi.connect(str(server.kubeconfig(tmp_path / "k"))) as api:
        server.put(route())
        server.put(ingress())
        made = StatusHarness(server, api)
        jobs = [reflector.run() for reflector in made.reflectors]
        tasks = [asyncio.create_task(job) for job in (*jobs, made.recorder.run(made.term))]
        made.writing = asyncio.create_task(made.writer.run(made.term))
        tasks.append(made.writing)
        try:
            await made.until_stored(WEB)
            await made.until_stored(SHOP)
            # What a test tells open watches would reach none of them before.
            await made.until(lambda: all(map(server.watching, ("apisixroutes", "ingresses"))), "both watches")
            yield made
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError, LeadershipLost, ExceptionGroup):
                    await task


def route(name: str = "web", **spec: Any) -> Manifest:
    return {
        "kind": "ApisixRoute",
        "apiVersion": "apisix.apache.org/v2",
        "metadata": {"name": name},
        "spec": spec or {"http": []},
    }


def ingress() -> Manifest:
    meta = {"name": "shop", "creationTimestamp": "2020-01-01T00:00:00Z"}
    return {"kind": "Ingress", "apiVersion": "networking.k8s.io/v1", "metadata": meta, "spec": {}}


async def test_a_condition_is_written_once_with_its_event(harness: StatusHarness) -> None:
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)
    [got] = harness.conditions()
    assert got.pop("lastTransitionTime") != ""
    assert got == {
        "type": "ResourcesAvailable",
        "status": "True",
        "reason": "ResourcesSynced",
        "message": "Sync Successfully",
        "observedGeneration": 1,
    }
    await harness.until(lambda: len(harness.events()) == 1, "an Event")
    assert harness.events() == [("Normal", "ResourcesSynced", "ApisixIngress synced successfully", 1)]
    for _ in range(3):
        harness.writer.wake(WEB)
        assert await harness.writer.flush(WAIT_SECONDS)
    await harness.until_stored(WEB)
    harness.writer.wake(WEB)
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.writes() == 1


async def test_conditions_and_fields_of_others_are_kept(harness: StatusHarness) -> None:
    foreign = {"type": "Checked", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    harness.server.put({**route(), "status": {"conditions": [foreign], "note": "theirs"}})
    await harness.until_stored(WEB)
    harness.want(WEB, aborted(1, "no Service"))
    await harness.until_said("False", 1)
    assert harness.conditions()[0] == foreign
    assert (harness.server.get("apisixroutes", "web") or {})["status"]["note"] == "theirs"
    await harness.until(lambda: len(harness.events()) == 1, "an Event")
    want = ("Warning", "ResourceSyncAborted", "ApisixIngress synced failed, with error: no Service", 1)
    assert harness.events() == [want]


def put_conditions(harness: StatusHarness, *conditions: dict[str, Any]) -> None:
    """Write the status as another client."""
    item = harness.server.get("apisixroutes", "web") or {}
    harness.server.put({**item, "status": {**item["status"], "conditions": list(conditions)}})


@pytest.mark.parametrize("others", [[], [{"type": "ResourcesAvailable", "status": "Unknown"}]], ids=["gone", "changed"])
async def test_a_condition_that_somebody_overwrote_is_repaired(
    harness: StatusHarness, others: list[dict[str, Any]]
) -> None:
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)
    await harness.until_stored(WEB)
    put_conditions(harness, *others)
    await harness.until_said("True", 1)
    await harness.until(lambda: harness.outcomes == [("ApisixRoute", "ok")] * 2, "the answers to two writes")


async def test_foreign_conditions_wake_no_owner(harness: StatusHarness) -> None:
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)
    await harness.until_stored(WEB)
    await harness.until(lambda: harness.writer.queue.is_idle, "nothing to do")
    put_conditions(harness, *harness.conditions(), {"type": "Theirs", "status": "True"})
    await harness.until_stored(WEB)
    assert (harness.writer.queue.is_idle, harness.writer.queue.delayed) == (True, 0)


async def test_addresses_that_somebody_removed_are_put_back(harness: StatusHarness) -> None:
    harness.published = [{"ip": "192.0.2.1"}]
    harness.want(SHOP, synced(1))
    await harness.until(lambda: harness.shown() == harness.published, "the addresses")
    await harness.until_stored(SHOP)
    item = harness.server.get("ingresses", "shop") or {}
    harness.server.put({**item, "status": {}})
    await harness.until(lambda: harness.shown() == harness.published, "the addresses again")


async def test_the_transition_time_changes_with_the_status_only(harness: StatusHarness) -> None:
    old = {
        "type": "ResourcesAvailable",
        "status": "True",
        "reason": "ResourcesSynced",
        "message": "Sync Successfully",
        "observedGeneration": 1,
        "lastTransitionTime": "2020-01-01T00:00:00Z",
    }
    harness.server.put({**route(), "status": {"conditions": [old]}})
    await harness.until_generation(2)
    harness.want(WEB, synced(2))
    await harness.until_said("True", 2)
    assert harness.conditions() == [{**old, "observedGeneration": 2}]
    harness.want(WEB, aborted(2, "broken"))
    await harness.until_said("False", 2)
    assert harness.conditions()[0]["lastTransitionTime"] > "2025"
    await harness.until(lambda: len(harness.events()) == 1, "an Event for the change of words only")


async def test_a_conflict_is_settled_with_a_fresh_read(harness: StatusHarness) -> None:
    harness.server.bookmarks = False
    harness.server.order("apisixroutes", "stall")
    harness.server.put({**route(), "status": {"conditions": [{"type": "Checked", "status": "True"}]}})
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)
    assert [each["type"] for each in harness.conditions()] == ["Checked", "ResourcesAvailable"]
    harness.want(WEB, aborted(1, "no more"))
    await harness.until_said("False", 1)
    assert harness.server.count("patch", "apisixroutes") == 3


async def test_a_lost_reply_does_not_lead_to_a_second_write(harness: StatusHarness) -> None:
    harness.server.faults.append(Fault("patch", "apisixroutes", apply=True, cut=True, times=1))
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)
    await harness.until(lambda: harness.server.count("get", "apisixroutes") == 1, "a fresh read")
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.writes() == 1


async def test_an_older_generation_never_overwrites_a_newer_one(harness: StatusHarness) -> None:
    await harness.until_generation(5)
    harness.want(WEB, synced(5))
    await harness.until_said("True", 5)
    harness.want(WEB, aborted(4, "late"))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.conditions()[0]["observedGeneration"], harness.writes()) == (5, 1)


async def test_a_long_message_is_cut_with_a_hash_of_the_whole(harness: StatusHarness) -> None:
    harness.want(WEB, aborted(1, "x" * 5000))
    await harness.until_said("False", 1)
    message = harness.conditions()[0]["message"]
    assert len(message) == 1024
    assert message.startswith("xxx")
    harness.writer.wake(WEB)
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.writes() == 1
    await harness.until(lambda: len(harness.events()) == 1, "an Event")
    assert len(harness.events()[0][2]) == 1024


async def test_failures_that_do_not_last_are_never_reported(harness: StatusHarness) -> None:
    harness.want(WEB, aborted(1, "its Service is not known yet"))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), harness.writer.queue.delayed) == (0, 1)
    harness.want(WEB, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert [condition["status"] for condition in harness.conditions()] == ["True"]
    await harness.until(lambda: bool(harness.events()), "an Event")
    assert [event[0] for event in harness.events()] == ["Normal"]


async def test_rewording_in_a_burst_is_written_at_most_once_at_a_time(harness: StatusHarness) -> None:
    harness.want(WEB, aborted(1, "attempt 0 failed"))
    await harness.until_said("False", 1)
    for number in range(1, 5):
        harness.want(WEB, aborted(1, f"attempt {number} failed"))
        assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), harness.writer.queue.delayed) == (1, 1)


async def test_a_deleted_object_is_forgotten(harness: StatusHarness) -> None:
    harness.server.faults.append(Fault("watch", status=500))
    harness.server.order("apisixroutes", "cut")
    harness.server.remove("apisixroutes", "web")
    harness.want(WEB, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), harness.writer.queue.delayed) == (1, 0)


async def test_a_kind_without_status_subresource_is_tried_once(harness: StatusHarness) -> None:
    harness.server.install(Kind("ApisixRoute", "apisix.apache.org/v2", "apisixroutes", status=False))
    for _ in range(3):
        harness.want(WEB, synced(1))
        assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), harness.writer.queue.delayed) == (1, 0)


@pytest.mark.parametrize("status", [404, 409])
async def test_a_recreated_object_gets_only_its_own_status(harness: StatusHarness, status: int) -> None:
    unseen = Fault("watch", status=500)
    harness.server.faults.append(unseen)
    harness.server.order("apisixroutes", "cut")
    harness.server.remove("apisixroutes", "web")
    harness.server.put(route())
    harness.server.faults.append(Fault("patch", "apisixroutes", status=status, times=1))
    harness.want(WEB, synced(1))
    await harness.until(lambda: harness.server.count("get", "apisixroutes") > 0, "a look at the object")
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.conditions(), harness.writes(), harness.writer.queue.delayed) == ([], 1, 0)
    harness.server.faults.remove(unseen)
    await harness.until_stored(WEB)
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)


@pytest.mark.parametrize("status", [403, 422])
async def test_a_refused_write_is_tried_again_slowly(harness: StatusHarness, status: int) -> None:
    harness.server.faults.append(Fault("patch", "apisixroutes", status=status))
    harness.want(WEB, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), harness.writer.queue.delayed) == (1, 1)


async def test_a_permission_that_is_lost_again_is_reported_again(harness: StatusHarness) -> None:
    forbidden = Fault("patch", "apisixroutes", status=403)
    with capture_logs() as logs:
        for generation in (1, 2):
            await harness.until_generation(generation)
            harness.server.faults.append(forbidden)
            harness.want(WEB, synced(generation))
            assert await harness.writer.flush(WAIT_SECONDS)
            harness.writer.wake(WEB)
            assert await harness.writer.flush(WAIT_SECONDS)
            harness.server.faults.remove(forbidden)
            harness.writer.wake(WEB)
            await harness.until_said("True", generation)
            assert await harness.writer.flush(WAIT_SECONDS)
    got = [line["remedy"] for line in logs if line["event"] == "status.rejected"]
    assert got == ["grant patch on apisixroutes/status"] * 2


async def test_an_unavailable_api_server_is_tried_again(harness: StatusHarness) -> None:
    harness.server.faults.append(Fault("patch", "apisixroutes", status=500, times=2))
    harness.want(WEB, synced(1))
    await harness.until_said("True", 1)
    assert harness.writes() == 3


async def test_nothing_is_written_after_the_term(harness: StatusHarness) -> None:
    harness.term.end()
    harness.want(WEB, synced(1))
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(harness.writing, WAIT_SECONDS)
    assert caught.value.subgroup(LeadershipLost) is not None
    assert harness.writes() == 0


async def test_an_ingress_gets_addresses_and_events_but_no_condition(harness: StatusHarness) -> None:
    harness.published = [{"ip": "192.0.2.1"}]
    harness.want(SHOP, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    got = (harness.server.get("ingresses", "shop") or {})["status"]
    assert got == {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
    harness.writer.wake(SHOP)
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), len(harness.recorder)) == (1, 0)
    harness.want(SHOP, aborted(1, "no Secret"))
    await harness.until(lambda: len(harness.events()) == 1, "an Event")
    assert harness.events()[0][:2] == ("Warning", "ResourceSyncAborted")


async def test_addresses_wait_for_the_gateways(harness: StatusHarness) -> None:
    harness.published = [{"ip": "192.0.2.1"}]
    harness.writer.wake(SHOP)
    assert await harness.writer.flush(WAIT_SECONDS)
    harness.want(SHOP, aborted(1, "no Secret"))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), harness.shown()) == (0, None)
    harness.want(SHOP, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.shown() == [{"ip": "192.0.2.1"}]


async def test_our_published_addresses_are_tracked_and_withdrawn(harness: StatusHarness) -> None:
    harness.published = [{"ip": "192.0.2.1"}]
    harness.want(SHOP, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    harness.published = [{"hostname": "lb.example.com"}, {"ip": "192.0.2.2"}]
    harness.want(SHOP, aborted(1, "no Secret"))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.shown() == [{"hostname": "lb.example.com"}, {"ip": "192.0.2.2"}]
    harness.published = []
    del harness.wanted[SHOP]
    harness.writer.wake(SHOP)
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.shown(), harness.writes()) == ([], 3)


async def test_the_order_of_addresses_is_not_a_difference(harness: StatusHarness) -> None:
    harness.published = [{"ip": "192.0.2.1"}, {"hostname": "lb.example.com"}]
    harness.want(SHOP, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    harness.published.reverse()
    harness.writer.wake(SHOP)
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.writes() == 1


@pytest.mark.parametrize("addresses", [None, [], [{"ip": "192.0.2.1"}]])
async def test_addresses_of_another_controller_are_left_alone(
    harness: StatusHarness, addresses: list[dict[str, Any]] | None
) -> None:
    theirs = {"loadBalancer": {"ingress": [{"ip": "198.51.100.7"}]}}
    harness.server.put({**ingress(), "status": theirs})
    await harness.until_stored(SHOP)
    harness.published = addresses
    for condition in (None, aborted(1, "no Secret"), synced(1) if not addresses else None):
        if condition:
            harness.wanted[SHOP] = condition
        else:
            harness.wanted.pop(SHOP, None)
        harness.writer.wake(SHOP)
        assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.writes(), harness.shown()) == (0, [{"ip": "198.51.100.7"}])


async def test_our_addresses_are_found_at_an_ingress_that_left_unseen(harness: StatusHarness) -> None:
    harness.published = [{"ip": "192.0.2.1"}]
    harness.want(SHOP, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    await harness.until_stored(SHOP)
    harness.published = []
    del harness.wanted[SHOP]
    harness.writer.review([{"ip": "192.0.2.2"}])
    harness.writer.review([])
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.shown() == [{"ip": "192.0.2.1"}]  # perhaps what another installation of ours publishes
    harness.writer.review([{"ip": "192.0.2.1"}])
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.shown(), harness.writes()) == ([], 2)


async def test_an_ingress_that_came_over_to_us_gets_our_addresses(harness: StatusHarness) -> None:
    harness.server.put({**ingress(), "status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.7"}]}}})
    await harness.until_stored(SHOP)
    harness.published = [{"ip": "192.0.2.1"}]
    harness.want(SHOP, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.shown() == [{"ip": "192.0.2.1"}]


async def test_an_equal_event_raises_the_count(harness: StatusHarness) -> None:
    meta = harness.stores["ApisixRoute"].get(WEB).meta  # type: ignore[union-attr]
    for _ in range(3):
        harness.recorder.record(meta, "Warning", "Conflicted", "lost to default/other")
    await harness.until(lambda: [each[3] for each in harness.events()] == [3], "a count of 3")
    harness.recorder.record(meta, "Warning", "Conflicted", "lost to default/other")
    await harness.until(lambda: [each[3] for each in harness.events()] == [4], "a count of 4")
    involved = harness.server.all("events")[0]["involvedObject"]
    assert involved == {
        "apiVersion": "apisix.apache.org/v2",
        "kind": "ApisixRoute",
        "namespace": "default",
        "name": "web",
        "uid": meta.uid,
    }


async def test_an_event_that_expired_is_created_again(harness: StatusHarness) -> None:
    meta = harness.stores["ApisixRoute"].get(WEB).meta  # type: ignore[union-attr]
    harness.recorder.record(meta, "Normal", "Seen", "hello")
    await harness.until(lambda: len(harness.events()) == 1, "an Event")
    harness.server.remove("events", harness.server.all("events")[0]["metadata"]["name"])
    harness.recorder.record(meta, "Normal", "Seen", "hello")
    await harness.until(lambda: [each[3] for each in harness.events()] == [1], "a new Event")


async def test_too_many_events_and_forbidden_ones_are_dropped(harness: StatusHarness) -> None:
    meta = harness.stores["ApisixRoute"].get(WEB).meta  # type: ignore[union-attr]
    for number in range(1003):
        harness.recorder.record(meta, "Normal", "Seen", f"hello {number}")
    assert (len(harness.recorder), harness.dropped) == (1000, 3)
    harness.server.faults.append(Fault("create", "events", status=403))
    await harness.until(lambda: harness.dropped > 5, "drops")
    assert harness.events() == []


async def test_an_event_for_a_terminating_namespace_is_dropped_silently(harness: StatusHarness) -> None:
    text = "events is forbidden: unable to create new content in namespace default because it is being terminated"
    body = json.dumps({"kind": "Status", "code": 403, "message": text})
    harness.server.faults.append(Fault("create", "events", status=403, body=body))
    with capture_logs() as logs:
        harness.want(WEB, synced(1))
        await harness.until(lambda: harness.dropped == 1, "the drop")
    assert [line["log_level"] for line in logs if line["event"] == "event.dropped"] == ["debug"]


async def test_warnings_go_ahead_of_successes_and_are_not_dropped_for_them(harness: StatusHarness) -> None:
    meta = harness.stores["ApisixRoute"].get(WEB).meta  # type: ignore[union-attr]
    harness.recorder.record(meta, "Warning", "Failed", "broken")
    for number in range(1001):
        harness.recorder.record(meta, "Normal", "Seen", f"hello {number}")
    harness.recorder.record(meta, "Warning", "Failed", "broken as well")
    await harness.until(lambda: len(harness.events()) > 2, "some Events")
    got = [message for _, _, message, _ in harness.events()[:3]]
    assert got == ["broken", "broken as well", "hello 3"]
