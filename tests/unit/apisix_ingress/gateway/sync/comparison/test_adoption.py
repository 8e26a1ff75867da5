"""Ids follow the records of clusters, and objects that depend on them are translated before anything is written."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from apisix_ingress.gateway.backend import ObservedRecord
from apisix_ingress.gateway.sync.comparison.adoption import IdAdoption
from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.names import nginx_name, wide_id
from apisix_ingress.state.desired import Desired
from apisix_ingress.state.ids.id_table import IdTable
from tests.factories import COLLIDING, make_claimant, make_record
from tests.fakes.gateway import LoopClock

FIRST, SECOND, THIRD, _ = COLLIDING
OLD, YOUNG = make_claimant("old", created="2026-01-01"), make_claimant("young", created="2026-02-01")
SLOT = RecordKey("ssls", "849e9177")


class Scene:
    """Certificates of an old and a young object whose names have the same CRC; and a cluster."""

    name = "another"
    reachable = True

    def __init__(self) -> None:
        self.ids = IdTable(lambda read: None)
        self.desired = Desired(self.ids)
        self.old = make_record(FIRST, kind="ssls", body={"cert": "old"})
        self.young = make_record(SECOND, kind="ssls", id=wide_id(SECOND), body={"cert": "young"})
        self.desired.replace(OLD, [self.old])
        self.desired.replace(YOUNG, [self.young])
        self.ids.settle()
        self.translated = 0
        self.adoptions = IdAdoption(self.ids, self.desired, self._translate, clock=LoopClock())

    async def _translate(self) -> None:
        self.translated += 1

    def names(self, key: RecordKey) -> tuple[str, ...]:
        """Simulate a cluster where a third name has the short id."""
        return (THIRD,) if key == SLOT else ()

    def short(self) -> list[str]:
        return [name for name in COLLIDING if self.ids.known_id("ssls", name) == SLOT.id]


async def test_an_unnamed_record_belongs_to_the_owner_that_desires_it() -> None:
    scene = Scene()
    body = {**scene.young.body, "id": SLOT.id}
    await scene.adoptions.adopt("c1", {SLOT: ObservedRecord(replace(scene.young, body=body).digest)})
    assert (scene.short(), scene.translated) == ([SECOND], 1)


async def test_unchanged_ids_cause_no_translation() -> None:
    scene = Scene()
    await scene.adoptions.adopt(
        "c1", {SLOT: ObservedRecord(scene.old.digest), scene.young.key: ObservedRecord(scene.young.digest)}
    )
    assert (scene.short(), scene.translated) == ([FIRST], 0)


async def test_new_name_gets_no_id_that_a_cluster_holds() -> None:
    scene = Scene()
    scene.adoptions.add(scene)
    scene.desired.replace(OLD, [])
    scene.desired.replace(YOUNG, [])
    assert scene.ids.id_of("ssls", FIRST) == wide_id(FIRST)
    assert scene.ids.id_of("ssls", THIRD) == SLOT.id


async def test_a_new_version_of_gateways_is_translated_before_the_first_write() -> None:
    scene, reported = Scene(), []

    def learn(cluster: str, version: str) -> bool:
        reported.append((cluster, version))
        return len(reported) == 1

    adoptions = IdAdoption(scene.ids, scene.desired, scene._translate, clock=LoopClock(), versions=learn)
    for _ in range(2):
        adoptions.report_version("c1", "APISIX/3.19.0")
        await adoptions.adopt("c1", {})
    assert (reported, scene.translated) == ([("c1", "APISIX/3.19.0")] * 2, 1)


@pytest.mark.parametrize("renewed", [True, False])
async def test_clusters_are_queried_again_in_each_term(renewed: bool) -> None:
    scene = Scene()
    old, young = (ObservedRecord(b"", name=name) for name in (FIRST, SECOND))
    await scene.adoptions.adopt("c1", {SLOT: old})
    if renewed:
        scene.adoptions.renew()
    await scene.adoptions.adopt("c2", {SLOT: young})
    assert scene.short() == ([SECOND] if renewed else [FIRST])


async def test_cluster_that_was_read_first_waits_for_what_the_others_have() -> None:
    scene = Scene()
    scene.adoptions.add(scene)
    first = asyncio.create_task(scene.adoptions.adopt("c1", {}))
    await asyncio.sleep(0.05)
    assert not first.done()
    await scene.adoptions.adopt("another", {SLOT: ObservedRecord(b"", name=SECOND)})
    await first
    assert (scene.short(), scene.translated) == ([SECOND], 2)


@pytest.mark.parametrize("reachable", [True, False])
async def test_a_cluster_that_does_not_respond_delays_others_only_briefly(reachable: bool) -> None:
    scene = Scene()
    scene.reachable = reachable
    scene.adoptions.add(scene)
    async with asyncio.timeout(30):
        await scene.adoptions.adopt("c1", {})


async def test_records_without_names_are_passed_on_with_their_hosts() -> None:
    heard: list[object] = []

    def incumbents(
        found: dict[str, set[str]], reported: set[str], nameless: Mapping[RecordKey, tuple[str, ...]]
    ) -> Iterator[bool]:
        heard.extend((found, nameless))
        yield False

    scene = Scene()
    adoptions = IdAdoption(scene.ids, scene.desired, scene._translate, clock=LoopClock(), incumbents=incumbents)
    named = ObservedRecord(b"", name="victim_web_r", hosts=("b.test",))
    await adoptions.adopt("c1", {SLOT: ObservedRecord(b"", hosts=("a.test",)), RecordKey("routes", "1"): named})
    assert heard == [{"b.test": {"victim"}}, {SLOT: ("a.test",)}]


async def test_hosts_are_held_by_the_namespace_in_names_of_records_or_of_their_upstreams() -> None:
    heard: list[object] = []

    def incumbents(
        found: dict[str, set[str]], reported: set[str], nameless: Mapping[RecordKey, tuple[str, ...]]
    ) -> Iterator[bool]:
        heard.append(found)
        yield False

    scene = Scene()
    adoptions = IdAdoption(scene.ids, scene.desired, scene._translate, clock=LoopClock(), incumbents=incumbents)
    upstream, nginx = RecordKey("upstreams", "1"), nginx_name("a.test", "1")
    held = {
        upstream: ObservedRecord(b"", name="victim_web_80"),
        RecordKey("routes", "1"): ObservedRecord(b"", frozenset({upstream}), nginx, hosts=("a.test",)),
        RecordKey("routes", "2"): ObservedRecord(b"", name=nginx_name("b.test", "1"), hosts=("b.test",)),
        RecordKey("routes", "3"): ObservedRecord(
            b"", name="HTTPRoute_victim_app_0_0_Gateway_operator_gw_http", hosts=("c.test",)
        ),
    }
    await adoptions.adopt("c1", held)
    assert heard == [{"a.test": {"victim"}, "c.test": {"victim"}}]
