"""Lists of hosts, changes, objects of the Gateway API, and the search over all of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from apisix_ingress.gateway.sync.observer import Outage, RecordState
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.records import Record
from apisix_ingress.statuspage.views.presentation import rfc3339
from tests.unit.apisix_ingress.statuspage.harness import PageHarness, ScriptedCluster, make_harness, served
from tests.unit.translation.objects import OPTIONS, fill, ingress, ingress_rule, make, rule, service, slice_of
from tests.unit.translation.settling import prepare, settle
from translation.nginx.options import NginxOptions

ENDPOINTS = slice_of([{"addresses": ["10.0.0.7"]}])
AWAY = Outage("unreachable", "10.0.0.9:9180: Connection refused", datetime(2026, 11, 22, 8, 55, 30, tzinfo=UTC))
GOLDEN = Path(__file__).parents[4] / "golden" / "own" / "gateway-grpc-and-stream-routes" / "in.yaml"


def shop(name: str = "route", host: str = "shop.example.org", path: str = "/a", **fields: Any) -> dict[str, Any]:
    return make("ApisixRoute", name, spec={"http": [rule(match={"hosts": [host], "paths": [path]}, **fields)]})


async def test_host_has_the_worst_state_of_its_routes_and_names_their_objects() -> None:
    lost = shop("lost", path="/c", backends=[{"serviceName": "gone", "servicePort": 80}])
    harness = make_harness(service(), ENDPOINTS, shop(), shop("two", path="/b"), shop("well", "b.example.org"), lost)
    harness.clusters[0].states[harness.record("routes", "default_two_rule")] = RecordState("rejected", "no")
    async with served(harness):
        rows = (await harness.data("hosts"))["items"]
        troubled = (await harness.data("hosts", state="troubled"))["items"]
        page = (await harness.ask("/status/hosts")).text
    assert [(row["host"], row["status"], row["routes"]) for row in rows] == [
        ("shop.example.org", "partial", 2),
        ("b.example.org", "live", 1),
    ]
    assert [each["name"] for each in rows[0]["owners"]] == ["route", "two"]
    assert [each["name"] for each in rows[0]["unpublished"]] == ["lost"]
    assert "/status/problems?q=shop.example.org" in page
    assert "/status/problems?q=b.example.org" not in page
    assert [row["host"] for row in troubled] == ["shop.example.org"]
    assert "/status/explain?url=http%3A%2F%2Fshop.example.org%2F" in page


async def test_host_has_the_cause_of_its_state_and_the_time_of_that_cause() -> None:
    lost = shop("lost", "lost.org", backends=[{"serviceName": "gone", "servicePort": 80}])
    idle = shop("idle", "idle.org", backends=[{"serviceName": "idle", "servicePort": 80}])
    harness = make_harness(service(), ENDPOINTS, service("idle"), shop("edited", "edited.org"), lost, idle)
    key, upstream = harness.record("routes", "default_edited_rule"), harness.record("upstreams", "default_idle_80")
    rejected = RecordState("rejected", "unknown plugin [limit-cuont]")
    harness.clusters[0].states[key] = rejected
    harness.journal.outcome("default", key, rejected)
    harness.journal.reported(ObjectKey("ApisixRoute", "default", "lost"))
    harness.journal.replaced("default", upstream, None, Record(upstream, "u", {"nodes": []}))
    async with served(harness):
        rows = (await harness.data("hosts", sort="host"))["items"]
    assert [(row["host"], row["summary"], row["cause"]) for row in rows] == [
        (
            "edited.org",
            "rejected",
            "gateway cluster default rejects the record: unknown plugin [limit-cuont];"
            " until the object is corrected, its earlier version answers",
        ),
        ("idle.org", "closed (503)", "Service default/idle has no ready Pod, so its requests get the response 503"),
        ("lost.org", "not published", "Service default/gone does not exist; create it or correct the name"),
    ]
    assert all(row["since"] >= rfc3339(harness.journal.began) for row in rows)


async def test_the_time_of_a_partial_host_is_that_of_the_outage() -> None:
    began = datetime(2026, 11, 22, 8, tzinfo=UTC)
    clusters = [ScriptedCluster("up"), ScriptedCluster("down", outage=Outage("unreachable", "refused", began))]
    async with served(make_harness(service(), ENDPOINTS, shop(), clusters=clusters)) as harness:
        (row,) = (await harness.data("hosts"))["items"]
    assert (row["status"], row["since"]) == ("partial", "2026-11-22T08:00:00Z")
    assert row["cause"] == "gateway cluster down does not respond: refused"


async def test_a_host_that_a_gateway_closed_is_closed_although_another_cluster_does_not_respond() -> None:
    clusters = [ScriptedCluster("up"), ScriptedCluster("down", taken_over=False)]
    harness = make_harness(service(), ENDPOINTS, shop(), clusters=clusters)
    closed = RecordState("rejected", "unknown plugin", is_closed=True)
    clusters[0].states[harness.record("routes", "default_route_rule")] = closed
    async with served(harness):
        (row,) = (await harness.data("hosts"))["items"]
    assert row["summary"] == "closed (503)"


@pytest.mark.parametrize(
    ("sort", "want"),
    [
        ("", ["c.org", "a.org", "b.org"]),
        ("state", ["c.org", "a.org", "b.org"]),
        ("host", ["a.org", "b.org", "c.org"]),
        ("routes", ["b.org", "a.org", "c.org"]),
        ("certificate", ["a.org", "b.org", "c.org"]),
    ],
)
async def test_hosts_are_sorted_by_a_column_the_worst_state_first_by_default(sort: str, want: list[str]) -> None:
    lost = shop("lost", "c.org", backends=[{"serviceName": "gone", "servicePort": 80}])
    two = shop("two", "b.org", path="/b")
    async with served(make_harness(service(), ENDPOINTS, shop("a", "a.org"), shop("b", "b.org"), two, lost)) as harness:
        found = await harness.data("hosts", sort=sort)
        page = (await harness.ask(f"/status/hosts?sort={sort}")).text
        refused = await harness.ask("/status/hosts?sort=colour")
    assert [each["host"] for each in found["items"]] == want
    assert found["sort"] == (sort or "state")
    assert page.count("aria-sort=") == 1
    assert refused.status == 400


async def test_host_of_an_object_that_is_not_published_is_listed() -> None:
    lost = shop("lost", "lost.example.org", backends=[{"serviceName": "gone", "servicePort": 80}])
    async with served(make_harness(lost)) as harness:
        (row,) = (await harness.data("hosts", q="lost"))["items"]
    assert (row["host"], row["status"], row["routes"]) == ("lost.example.org", "not published", 0)


async def test_host_with_live_routes_is_partial_if_an_object_is_not_published() -> None:
    lost = shop("lost", path="/c", backends=[{"serviceName": "gone", "servicePort": 80}])
    async with served(make_harness(service(), ENDPOINTS, shop(), lost)) as harness:
        (row,) = (await harness.data("hosts"))["items"]
    assert row["status"] == "partial"


async def test_host_whose_object_keeps_an_earlier_version_is_partial() -> None:
    world, loop = prepare(service(), ENDPOINTS, shop())
    loop.settle()
    broken = shop(backends=[{"serviceName": "gone", "servicePort": 80}])
    broken["metadata"]["generation"] = 2
    fill(world, [broken])
    loop.settle()
    async with served(make_harness(world=world)) as harness:
        (row,) = (await harness.data("hosts"))["items"]
        page = (await harness.ask("/status/hosts")).text
    assert (row["status"], row["routes"]) == ("partial", 1)
    assert "earlier version live" in page


async def test_a_route_that_an_earlier_process_left_in_a_gateway_answers_as_before_a_failover() -> None:
    gone = [{"serviceName": "gone", "servicePort": 80}]
    lost = [shop(name, f"{name}.example.org", backends=gone) for name in ("kept", "new")]
    harness = make_harness(*lost)
    kept, upstream = RecordKey("routes", "7"), harness.record("upstreams", "default_gone_80")
    labels = {"managed-by": "apisix-ingress-controller"}
    body = {"name": "default_kept_rule", "hosts": ["kept.example.org"], "uris": ["/a"], "labels": labels}
    harness.clusters[0].kept[kept] = {**body, "upstream_id": upstream.id}
    async with served(harness):
        hosts = (await harness.data("hosts"))["items"]
        answer = (await harness.data("explain", url="kept.example.org/a"))["answer"]
        listed = (await harness.data("records", kind="routes"))["items"]
    assert [(each["host"], each["summary"], each["routes"]) for each in hosts] == [
        ("kept.example.org", "closed (503)", 1),
        ("new.example.org", "not published", 0),
    ]
    assert (answer["kind"], answer["status"]) == ("error", 503)
    assert listed == []


async def test_a_host_is_partial_if_one_of_two_clusters_is_unreachable() -> None:
    away = RecordState("unreachable", "10.0.0.9:9180: Connection refused")
    down = ScriptedCluster("down", taken_over=False, outage=AWAY)
    harness = make_harness(service(), ENDPOINTS, shop(), clusters=[ScriptedCluster("up"), down])
    down.states = dict.fromkeys(harness.world.desired.keys(), away)
    async with served(harness):
        (row,) = (await harness.data("hosts"))["items"]
        tiles = {each["name"]: each for each in (await harness.data("overview"))["tiles"]}
    assert row["status"] == "partial"
    assert {name: (tiles[name]["warn"], tiles[name]["bad"]) for name in ("hosts", "routes", "upstreams")} == {
        "hosts": (1, 0),
        "routes": (1, 0),
        "upstreams": (1, 0),
    }


async def test_follower_claims_to_know_no_state_of_a_host() -> None:
    harness = make_harness(service(), ENDPOINTS, shop(), clusters=[ScriptedCluster(taken_over=False)])
    harness.controller.leads = False
    async with served(harness):
        assert (await harness.data("hosts"))["items"][0]["status"] == "unknown"


async def test_changes_of_the_last_hour_name_their_objects_even_of_deleted_records() -> None:
    harness = make_harness(service(), ENDPOINTS, shop())
    key = harness.record("routes", "default_route_rule")
    harness.journal.written("default", RecordKey("routes", "old"), "deleted", "default_old_rule", "ok")
    harness.journal.written("default", RecordKey("routes", "gone"), "deleted", "default_gone_rule", "ok")
    harness.journal.written("default", key, "created", "default_route_rule", "ok")
    harness.journal.written("default", key, "updated", "default_route_rule", "ok")
    old = next(each for each in harness.journal.changes() if each.key.id == "old")
    old.at -= timedelta(hours=2)
    async with served(harness):
        found = (await harness.data("changes"))["items"]
        page = (await harness.ask("/status/changes?q=gone")).text
    assert [(each["change"], each["owner"]["text"], each["times"], each["exists"]) for each in found] == [
        ("updated", "ApisixRoute default/route", 2, True),
        ("deleted", "ApisixRoute default/gone", 1, False),
    ]
    assert "1 record changed in the last hour" in page


async def test_changes_count_from_the_start_of_the_term_and_name_clusters_that_were_not_read() -> None:
    clusters = [ScriptedCluster("up"), ScriptedCluster("down", taken_over=False)]
    harness = make_harness(service(), ENDPOINTS, shop(), clusters=clusters)
    harness.journal.began -= timedelta(hours=1)
    before = harness.journal.began
    harness.journal.leading()
    async with served(harness):
        found = await harness.data("changes")
    assert found["began"] == rfc3339(harness.journal.began) > rfc3339(before)
    assert found["note"].endswith(" Changes in gateway cluster down are missing, because it has not been read yet.")


async def test_search_finds_every_sort_of_thing() -> None:
    lost = shop("lost", "shop.example.org", "/c", backends=[{"serviceName": "gone", "servicePort": 80}])
    async with served(make_harness(service(), ENDPOINTS, shop(), lost)) as harness:
        found = await harness.data("search", q="shop.example.org")
        objects = await harness.data("search", q="ApisixRoute lost")
        page = (await harness.ask("/status/search?q=default")).text
        empty = await harness.data("search")
    assert [(each["name"], each["total"]) for each in found["sections"]] == [
        ("hosts", 1),
        ("problems", 1),
        ("routes", 1),
    ]
    assert [each["name"] for each in objects["sections"]] == ["hosts", "problems", "objects"]
    for title in ("Problems", "Objects", "Routes", "Upstreams"):
        assert f">{title} <span" in page
    assert (empty["total"], empty["sections"]) == (0, [])


async def test_listeners_and_parents_of_the_gateway_api_are_shown_with_their_conditions() -> None:
    objects = [each for each in yaml.safe_load_all(GOLDEN.read_text()) if "kind" in each]
    async with served(make_harness(world=settle(*objects))) as harness:
        found = await harness.data("gateway-api")
        page = (await harness.ask("/status/gateway-api")).text
        overview = (await harness.ask("/status")).text
        one = found["items"][0]["object"]
        of_object = await harness.data("object", kind=one["kind"], namespace=one["namespace"], name=one["name"])
    assert {each["object"]["kind"] for each in found["listeners"]} == {"Gateway"}
    assert {each["object"]["kind"] for each in found["items"]} >= {"GRPCRoute", "TCPRoute"}
    assert "Accepted" in page
    assert 'href="/status/gateway-api"' in overview
    assert of_object["parents"]


async def test_page_of_the_gateway_api_is_not_offered_where_it_is_not_used() -> None:
    async with served(make_harness(service(), shop())) as harness:
        assert 'href="/status/gateway-api"' not in (await harness.ask("/status")).text


NGINX = "nginx.ingress.kubernetes.io/"


def nginx_harness(annotations: dict[str, str] | None = None) -> PageHarness:
    item = ingress(ingress_rule(host="blog.example.org"), annotations=annotations)
    item["spec"]["ingressClassName"] = "nginx"
    nginx_class = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "IngressClass",
        "metadata": {"name": "nginx"},
        "spec": {"controller": "k8s.io/ingress-nginx"},
    }
    options = replace(OPTIONS, nginx=NginxOptions(seed=b"seed"))
    return make_harness(world=settle(service(), ENDPOINTS, nginx_class, item, options=options))


async def test_the_owner_of_a_host_of_ingress_nginx_is_its_ingress() -> None:
    async with served(nginx_harness()) as harness:
        (row,) = [each for each in (await harness.data("hosts"))["items"] if each["host"] == "blog.example.org"]
        owner = row["owners"][0]
        found = await harness.data("object", kind=owner["kind"], namespace=owner["namespace"], name=owner["name"])
        names = ("hosts", "records", "explain", "certificates", "records?kind=ssls")
        whole = [(await harness.ask(f"/status/{name}")).text for name in names]
    assert owner["text"] == "Ingress default/ing"
    assert found["records"] != []
    assert [each for each in whole if "NginxHost" in each or "ingress-nginx host" in each] == []


async def test_host_of_ingress_nginx_that_is_closed_is_shown_with_status_and_cause() -> None:
    login = {f"{NGINX}auth-type": "basic", f"{NGINX}auth-secret": "missing"}
    async with served(nginx_harness(login)) as harness:
        (row,) = [each for each in (await harness.data("hosts"))["items"] if each["host"] == "blog.example.org"]
        overview = await harness.data("overview")
        explained = await harness.data("explain", url="http://blog.example.org/")
    (tile,) = (each for each in overview["tiles"] if each["name"] == "hosts")
    assert (row["status"], row["summary"], tile["bad"]) == ("closed", "closed (503)", 1)
    assert overview["headline"]["title"] == "1 of 1 host answers 503"
    assert [each["severity"] for each in overview["attention"] if "blog.example.org" in each["hosts"]] == ["error"]
    assert (explained["answer"]["kind"], explained["answer"]["status"]) == ("error", 503)


async def test_host_of_ingress_nginx_without_a_record_is_not_published() -> None:
    async with served(nginx_harness({f"{NGINX}configuration-snippet": "deny all;"})) as harness:
        (row,) = (await harness.data("hosts"))["items"]
    assert (row["host"], row["status"]) == ("blog.example.org", "not published")


async def test_host_that_is_redirected_shows_where_to() -> None:
    moved = shop(plugins=[{"name": "redirect", "enable": True, "config": {"uri": "https://b.org/", "ret_code": 308}}])
    async with served(make_harness(service(), ENDPOINTS, moved)) as harness:
        (row,) = (await harness.data("hosts"))["items"]
    assert (row["status"], row["summary"]) == ("redirect", "308 → https://b.org/")


async def test_a_route_that_gets_no_request_does_not_change_the_state_of_a_host() -> None:
    copy = make("ApisixRoute", "copy", namespace="team-b", spec=shop(priority=-1)["spec"])
    harness = make_harness(service(), ENDPOINTS, service(namespace="team-b"), shop(), copy)
    async with served(harness):
        (row,) = (await harness.data("hosts"))["items"]
        problems = await harness.data("problems", q="503")
        routes = {each["name"]: each["serves"] for each in (await harness.data("records"))["items"]}
    assert (row["status"], row["states"]) == ("live", {"live": 1, "not used": 1})
    assert (problems["total"], routes) == (0, {"default_route_rule": "live", "team-b_copy_rule": "not used"})


async def test_nothing_is_live_while_no_gateway_responds() -> None:
    clusters = [ScriptedCluster("one", outage=AWAY), ScriptedCluster("two", outage=AWAY, taken_over=False)]
    unused = make("ApisixRoute", "unused", namespace="team-b", spec=shop(priority=-1)["spec"])
    routes = [shop(), shop("two", "b.example.org"), service(namespace="team-b"), unused]
    harness = make_harness(service(), ENDPOINTS, *routes, clusters=clusters)
    async with served(harness):
        overview = await harness.data("overview")
        hosts = (await harness.data("hosts"))["items"]
        explained = await harness.data("explain", url="http://b.example.org/a", cluster="one")
        pages = [(await harness.ask(f"/status{where}")).text for where in ("", "/hosts", "/records")]
        answer = (await harness.ask("/status/explain?url=http://b.example.org/a&cluster=one")).text
    assert [each["good"] for each in overview["tiles"]] == [0, 0, 0, 0, 0]
    assert {each["status"] for each in hosts} == {"unknown"}
    assert [each for each in pages if "badge good" in each] == []
    assert "If the gateway still runs, it serves its last records" in explained["answer"]["unverified"]
    assert 'class="outcome warn"' in answer


@pytest.mark.parametrize("page", ["hosts", "problems", "certificates", "changes", "gateway-api"])
async def test_the_list_of_an_empty_cluster_has_a_note(page: str) -> None:
    async with served(make_harness()) as harness:
        assert (await harness.data(page))["total"] == 0
        assert (await harness.ask(f"/status/{page}?q=nothing")).status == 200


async def test_a_certificate_whose_secret_is_missing_is_listed_where_it_is_looked_for() -> None:
    spec = {"hosts": ["shop.example.org"], "secret": {"name": "cert", "namespace": "default"}}
    async with served(make_harness(service(), ENDPOINTS, shop(), make("ApisixTls", "shop", spec=spec))) as harness:
        (row,) = (await harness.data("certificates"))["items"]
        (host,) = (await harness.data("hosts"))["items"]
        tiles = {each["name"]: each["bad"] for each in (await harness.data("overview"))["tiles"]}
        pages = [(await harness.ask(f"/status/{name}")).text for name in ("certificates", "hosts")]
        explained = await harness.data("explain", url="https://shop.example.org/a")
        problems = (await harness.data("problems", q="default/cert"))["items"]
    assert (row["validity"], row["hosts"], row["secret"]["name"]) == ("missing", ["shop.example.org"], "cert")
    assert (host["certificate"]["validity"], tiles["certificates"]) == ("missing", 1)
    assert "default/cert" in row["cause"]
    assert [page for page in pages if "missing" not in page] == []
    assert "default/cert" in explained["answer"]["summary"]
    assert len(problems) == 1


async def test_response_of_a_gateway_to_requests_without_a_route_is_not_the_state_of_its_host() -> None:
    gateways = GOLDEN.parents[1] / "gateway-listeners-are-isolated" / "in.yaml"
    objects = [each for each in yaml.safe_load_all(gateways.read_text()) if "kind" in each]
    async with served(make_harness(world=settle(*objects))) as harness:
        rows = (await harness.data("hosts"))["items"]
        problems = (await harness.data("problems"))["items"]
    assert [(row["host"], row["status"]) for row in rows] == [
        ("blog.example.org", "closed"),
        ("example.net", "closed"),
        ("shop.example.org", "closed"),
        ("*.example.org", "not used"),
    ]
    assert [each["code"] for each in problems] == ["BackendNotFound"]
