"""The headline: the sentence and its tone in every state, and the totals below it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from apisix_ingress.gateway.sync.observer import PENDING, Outage, RecordState
from tests.unit.apisix_ingress.statuspage.harness import PageHarness, ScriptedCluster, make_harness, served
from tests.unit.translation.objects import make, rule, service, slice_of

ENDPOINTS = slice_of([{"addresses": ["10.0.0.7"]}])


def shop(name: str = "route", host: str = "shop.example.org", **fields: Any) -> dict[str, Any]:
    return make("ApisixRoute", name, spec={"http": [rule(match={"hosts": [host], "paths": ["/a"]}, **fields)]})


async def headline_of(harness: PageHarness) -> tuple[str, str, str]:
    async with served(harness):
        found = (await harness.data("overview"))["headline"]
        page = (await harness.ask("/status")).text
    assert found["title"] in page
    return found["tone"], found["title"], found["detail"]


async def test_all_routes_are_live() -> None:
    harness = make_harness(
        service(),
        ENDPOINTS,
        shop(),
        shop("two", "b.example.org"),
        clusters=[ScriptedCluster("a"), ScriptedCluster("b")],
    )
    assert await headline_of(harness) == ("good", "All 2 routes live on 2 gateway clusters", "")


async def test_the_last_check_is_the_oldest_of_all_clusters() -> None:
    harness = make_harness(service(), shop(), clusters=[ScriptedCluster("a"), ScriptedCluster("b")])
    harness.journal.compared("a", ok=True)
    harness.journal.of("a").compared_at = datetime(2026, 1, 1, tzinfo=UTC)
    harness.journal.compared("b", ok=True)
    async with served(harness):
        assert (await harness.data("overview"))["headline"]["checked"] == "2026-01-01T00:00:00Z"


async def test_hosts_that_fail_are_counted() -> None:
    backends = [{"serviceName": "gone", "servicePort": 80}, {"serviceName": "lost", "servicePort": 80}]
    harness = make_harness(service(), ENDPOINTS, shop(), shop("broken", "broken.example.org", backends=backends))
    want = ("bad", "1 of 2 hosts fails", "A referenced Service does not exist. 1 of 1 route live on 1 gateway cluster.")
    assert await headline_of(harness) == want


async def test_service_without_endpoints_needs_attention() -> None:
    tone, title, detail = await headline_of(make_harness(service(), shop()))
    assert (tone, title) == ("bad", "1 of 1 host answers 503")
    assert detail == "No endpoint is ready. 0 of 1 route live on 1 gateway cluster."


async def test_host_whose_edit_is_rejected_still_answers_and_does_not_fail() -> None:
    harness = make_harness(service(), ENDPOINTS, shop())
    harness.clusters[0].states[harness.record("routes", "default_route_rule")] = RecordState("rejected", "no")
    tone, title, detail = await headline_of(harness)
    assert (tone, title, detail) == ("bad", "1 object needs attention", "0 of 1 route live on 1 gateway cluster.")


async def test_an_unreachable_gateway_is_listed_first() -> None:
    outage = Outage("unreachable", "10.0.0.9:9180: Connection refused", datetime(2026, 11, 22, tzinfo=UTC))
    clusters = [ScriptedCluster("up"), ScriptedCluster("down", taken_over=False, outage=outage)]
    broken = shop("broken", "broken.example.org", backends=[{"serviceName": "gone", "servicePort": 80}])
    tone, title, detail = await headline_of(make_harness(service(), shop(), broken, clusters=clusters))
    assert (tone, title) == ("bad", "Gateway cluster down is not reachable")
    assert detail.startswith("10.0.0.9:9180: Connection refused. Writes are paused.")


async def test_a_pending_route_is_not_a_problem() -> None:
    harness = make_harness(service(), ENDPOINTS, shop(), shop("two", "b.example.org"))
    harness.clusters[0].states[harness.record("routes", "default_two_rule")] = PENDING
    assert await headline_of(harness) == ("busy", "1 of 2 routes not live yet", "Writing to 1 gateway cluster.")


async def test_follower_names_the_leader_instead() -> None:
    harness = make_harness(service(), ENDPOINTS, shop(), clusters=[ScriptedCluster(taken_over=False)])
    harness.controller.leads, harness.controller.leader = False, "pod-b_2"
    want = "pod-b_2 leads and knows the state of the gateways: forward the port of Pod pod-b to see it."
    assert await headline_of(harness) == ("idle", "This replica is a follower", want)


async def test_start_and_empty_world_have_no_problems() -> None:
    empty = make_harness()
    state, title, detail = await headline_of(empty)
    assert (state, title) == ("idle", "No routes yet")
    assert detail.startswith("There is no Ingress, ApisixRoute, ")
    assert detail.endswith(" yet. 1 gateway cluster connected.")
    empty.controller.is_ready = False
    assert (await headline_of(empty))[:2] == ("busy", "Reading and translating objects")


@pytest.mark.parametrize(
    ("spec", "detail", "command"),
    [
        (
            {"ingressClassName": "traefik"},
            "there is no IngressClass traefik",
            "kubectl create ingress web --class=apisix",
        ),
        ({"ingressClassName": "nginx"}, "set ingress_nginx.enabled to true", "apisix-ingress migrate"),
        ({"ingressClassName": "apisix", "rules": []}, "The served objects define no route: check their rules.", ""),
    ],
)
async def test_a_page_without_routes_shows_the_missing_part_and_the_next_command(
    spec: dict[str, Any], detail: str, command: str
) -> None:
    harness = make_harness(make("Ingress", "web", spec=spec))
    async with served(harness):
        found, page = (await harness.data("overview"))["headline"], await harness.ask("/status")
        report = await harness.data("status")
    assert (found["title"], detail in found["detail"], command in found["command"]) == ("No routes yet", True, True)
    assert (f"<code>{command}" in page.text) is bool(command)
    assert report["hint"] == (
        {"text": found["detail"].removesuffix(" 1 gateway cluster connected."), "command": found["command"]}
        if command
        else None
    )


async def test_objects_of_files_get_no_command_for_a_cluster() -> None:
    harness = make_harness()
    harness.controller.watches = {}
    async with served(harness):
        assert (await harness.data("overview"))["headline"]["command"] == ""


async def test_tiles_count_what_fails() -> None:
    harness = make_harness(service(), ENDPOINTS, shop(), shop("two", "b.example.org"))
    harness.clusters[0].states[harness.record("routes", "default_two_rule")] = RecordState("rejected", "no")
    async with served(harness):
        tiles = (await harness.data("overview"))["tiles"]
        page = (await harness.ask("/status")).text
    got = {tile["name"]: (tile["total"], tile["good"], tile["warn"], tile["bad"]) for tile in tiles}
    assert got == {
        "hosts": (2, 1, 1, 0),
        "routes": (2, 1, 1, 0),
        "upstreams": (1, 1, 0, 0),
        "certificates": (0, 0, 0, 0),
        "consumers": (0, 0, 0, 0),
    }
    assert "1 incomplete" in page
    assert "<title>(1) Overview" in page


async def test_a_follower_does_not_show_live_routes_next_to_problems() -> None:
    broken = shop("broken", "broken.example.org", backends=[{"serviceName": "gone", "servicePort": 80}])
    harness = make_harness(service(), ENDPOINTS, shop(), broken, clusters=[ScriptedCluster(taken_over=False)])
    harness.controller.leads, harness.controller.leader = False, ""
    detail = "1 object needs attention. No leader is known yet. 1 route translated here."
    assert await headline_of(harness) == ("idle", "This replica is a follower", detail)


async def test_a_gateway_cluster_that_was_not_compared_yet_is_named() -> None:
    clusters = [ScriptedCluster("east"), ScriptedCluster("west", taken_over=False)]
    tone, title, detail = await headline_of(make_harness(service(), ENDPOINTS, shop(), clusters=clusters))
    assert (tone, title) == ("busy", "1 of 1 route not live yet")
    assert detail == "Writing to 2 gateway clusters; gateway cluster west has not been compared yet."
