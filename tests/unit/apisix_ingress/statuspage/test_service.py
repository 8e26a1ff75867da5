"""The pages over a loopback socket: their content in HTML and JSON, and responses to invalid requests."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from apisix_ingress.gateway.sync.observer import PENDING, Outage, RecordState
from apisix_ingress.model.keys import RECORD_KINDS
from apisix_ingress.statuspage.access import POLICY
from tests.unit.apisix_ingress.statuspage.harness import PageHarness, ScriptedCluster, make_harness, served
from tests.unit.translation.objects import make, rule, service, slice_of

AWAY = Outage("unreachable", "10.0.0.9:9180: Connection refused", datetime(2026, 11, 22, 8, 55, 30, tzinfo=UTC))
PAGES = (
    "",
    "/problems",
    "/hosts",
    "/records",
    "/certificates",
    "/changes",
    "/gateway-api",
    "/conflicts",
    "/explain",
    "/search",
    "/search?q=a",
)


def shop(name: str = "route", host: str = "shop.example.org", path: str = "/a", **fields: Any) -> dict[str, Any]:
    spec = {"http": [rule(match={"hosts": [host], "paths": [path]}, **fields)]}
    return make("ApisixRoute", name, spec=spec)


def stage_of(*objects: dict[str, Any], **rest: Any) -> PageHarness:
    endpoint = {"addresses": ["10.0.0.7"], "targetRef": {"kind": "Pod", "name": "web-0"}}
    return make_harness(service(), slice_of([endpoint]), *objects, **rest)


@pytest.mark.parametrize("page", PAGES)
async def test_every_page_carries_the_policy_and_forbids_writing(page: str) -> None:
    async with served(stage_of(shop())) as harness:
        got = await harness.ask(f"/status{page}")
        assert got.status == 200
        assert got.headers["Content-Security-Policy"] == POLICY
        assert got.headers["X-Content-Type-Options"] == "nosniff"
        assert got.headers["Referrer-Policy"] == "no-referrer"
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            refused = await harness.ask(f"/status{page}", method=method)
            assert (refused.status, refused.headers["Content-Security-Policy"]) == (405, POLICY)
        head = await harness.ask(f"/status{page}", method="HEAD")
        assert (head.status, head.text) == (200, "")


async def test_page_that_did_not_change_is_not_sent_again() -> None:
    async with served(stage_of(shop())) as harness:
        first = await harness.ask("/status/records")
        again = await harness.ask("/status/records", headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status, again.text) == (304, "")


async def test_route_leads_from_its_host_to_the_pod_and_names_who_owns_each() -> None:
    async with served(stage_of(shop())) as harness:
        (row,) = (await harness.data("routes"))["items"]
        assert (row["hosts"], row["paths"], row["status"]) == (["shop.example.org"], ["/a"], "applied")
        assert row["owner"]["text"] == "ApisixRoute default/route"
        assert [(each["name"], each["owner"]["text"], each["nodes"]) for each in row["upstreams"]] == [
            ("default_web_80", "Service default/web", 1)
        ]
        whole = await harness.data("record", kind="routes", id=row["id"])
        (backend,) = whole["backends"]
        assert backend["nodes"] == [{"address": "10.0.0.7:8080", "weight": 100, "pod": "web-0"}]
        page = await harness.ask(f"/status/record?kind=routes&id={row['id']}")
        assert page.status == 200
        for text in ("shop.example.org", "10.0.0.7:8080", "web-0", "Service default/web"):
            assert text in page.text


async def test_search_finds_by_host_path_object_and_upper_case() -> None:
    async with served(stage_of(shop("one", "a.example.org", "/x"), shop("two", "b.example.org", "/y"))) as harness:
        for query, want in (("a.example", ["one"]), ("/y", ["two"]), ("ONE", ["one"]), ("example /x", ["one"])):
            found = (await harness.data("records", q=query))["items"]
            assert [item["owner"]["name"] for item in found] == want
        assert (await harness.data("records", q="nowhere"))["total"] == 0


async def test_long_list_has_pages_of_a_hundred() -> None:
    rules = [rule(f"r{number}", match={"paths": [f"/{number:03}"]}) for number in range(230)]
    async with served(stage_of(make("ApisixRoute", "big", spec={"http": rules}))) as harness:
        last = await harness.data("records", page="3")
        assert (last["total"], last["pages"], len(last["items"])) == (230, 3, 30)
        assert last["items"][-1]["paths"] == ["/229"]
        beyond = await harness.data("records", page="99")
        assert beyond["page"] == 3
        page = await harness.ask("/status/records?page=2")
        assert 'rel="prev"' in page.text
        assert 'rel="next"' in page.text


async def test_refused_record_is_shown_with_the_gateways_error() -> None:
    harness = stage_of(shop())
    key = harness.record("routes", "default_route_rule")
    harness.clusters[0].states[key] = RecordState("rejected", "value should match <only> one schema")
    async with served(harness):
        overview = await harness.data("overview")
        (item,) = overview["quarantined"]
        assert (item["id"], item["message"]) == (key.id, "value should match <only> one schema")
        assert overview["clusters"][0]["records"]["rejected"] == 1
        page = await harness.ask("/status")
        assert "value should match &lt;only&gt; one schema" in page.text
        assert [item["id"] for item in (await harness.data("records", state="rejected"))["items"]] == [key.id]
        assert (await harness.data("records", state="applied"))["total"] == 0


async def test_only_the_first_refused_records_are_listed_and_the_others_counted() -> None:
    rules = [rule(f"r{number}", match={"paths": [f"/{number:03}"]}) for number in range(130)]
    harness = stage_of(make("ApisixRoute", "big", spec={"http": rules}))
    harness.clusters[0].states = {
        key: RecordState("rejected", "no") for key in harness.world.desired.records("default") if key.kind == "routes"
    }
    async with served(harness):
        overview = await harness.data("overview")
        assert (len(overview["quarantined"]), overview["quarantined_more"]) == (100, 30)
        page = (await harness.ask("/status")).text
        assert "129 more with this cause" in page
        assert page.count('<li class="finding') == 1


async def test_an_unreachable_cluster_shows_the_reason_and_the_other_is_unaffected() -> None:
    down = ScriptedCluster("down", outage=AWAY)
    async with served(stage_of(shop(), clusters=[ScriptedCluster("up"), down])) as harness:
        up, reported = (await harness.data("overview"))["clusters"]
        assert (up["state"], up["reason"], up["version"]) == ("in sync", "", "APISIX/3.17.0")
        assert (reported["state"], reported["reason"], reported["breaker_open"]) == ("unreachable", AWAY.cause, True)
        assert (reported["headline"], reported["since"]) == ("Not reachable", "2026-11-22T08:55:30Z")
        shown = (await harness.ask("/status")).text
        assert "Not reachable since" in shown
        assert "10.0.0.9:9180: Connection refused" in shown
        down.taken_over = False  # a new leader, which has never reached it: the outage may be older than its term
        unknown = (await harness.data("overview"))["clusters"][1]
        assert (unknown["headline"], unknown["since"]) == ("Not reachable", "")
        assert "Not reachable:" in (await harness.ask("/status")).text


async def test_outage_that_a_former_leader_saw_is_not_reported() -> None:
    former = ScriptedCluster(taken_over=False, outage=AWAY)
    harness = stage_of(shop(), clusters=[former])
    harness.controller.leads, harness.controller.leader = False, "pod-b_2"
    async with served(harness):
        (reported,) = (await harness.data("overview"))["clusters"]
        assert (reported["state"], reported["reason"], reported["breaker_open"]) == (
            "not written by this replica",
            "",
            False,
        )
        assert reported["records"]["unknown"] == reported["records"]["wanted"] > 0


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({}, "in sync"),
        ({"backlog": 3}, "writing"),
        ({"taken_over": False}, "starting"),
        ({"taken_over": False, "outage": AWAY}, "unreachable"),
        ({"outage": replace(AWAY, reason="failing")}, "failing"),
        ({"outage": replace(AWAY, reason="unauthorized")}, "unauthorized"),
        ({"outage": replace(AWAY, reason="redirected")}, "redirected"),
        ({"states": RecordState("pending")}, "writing"),
        ({"states": RecordState("waiting", "for another")}, "incomplete"),
        ({"states": RecordState("rejected", "no")}, "incomplete"),
    ],
)
async def test_state_of_a_cluster_is_in_one_word(changes: Mapping[str, Any], want: str) -> None:
    harness = stage_of(shop())
    for name, value in changes.items():
        given = {harness.record("routes", "default_route_rule"): value} if name == "states" else value
        setattr(harness.clusters[0], name, given)
    async with served(harness):
        assert (await harness.data("overview"))["clusters"][0]["state"] == want


async def test_audit_that_failed_is_reported_until_one_succeeds() -> None:
    harness = stage_of(shop())
    harness.journal.compared("default", ok=False)
    async with served(harness):
        harness.clusters[0].audit_failure = "GET routes: HTTP 500"
        assert (await harness.data("overview"))["clusters"][0]["state"] == "audit failed"
        assert "GET routes: HTTP 500" in (await harness.ask("/status")).text
        harness.journal.compared("default", ok=True)
        assert (await harness.data("overview"))["clusters"][0]["state"] == "in sync"


async def test_a_body_too_large_for_yaml_is_shown_as_json() -> None:
    config = {"body": "x" * 40_000}
    large = shop(plugins=[{"name": "echo", "enable": True, "config": config}])
    async with served(stage_of(large)) as harness:
        key = harness.record("routes", "default_route_rule")
        assert (await harness.ask(f"/status/api/record?kind=routes&id={key.id}&format=yaml")).status == 413
        assert (await harness.data("record", kind="routes", id=key.id))["body"]["plugins"]["echo"] == config
        page = await harness.ask(f"/status/record?kind=routes&id={key.id}")
        assert "the body as YAML" not in page.text


async def test_a_follower_reports_a_refused_admin_key() -> None:
    async with served(stage_of(shop(), clusters=[ScriptedCluster(taken_over=False)])) as harness:
        harness.controller.leads, harness.controller.leader = False, "pod-b_2"
        harness.controller.refused["default"] = "the gateway rejects the admin key: set clusters[0].admin_key"
        (cluster,) = (await harness.data("overview"))["clusters"]
        assert (cluster["state"], cluster["refused"]) == ("admin key rejected", harness.controller.refused["default"])
        page = (await harness.ask("/status")).text
        assert "This replica could not write here as leader." in page
        assert "Writes are paused." not in page


async def test_a_follower_names_the_leader_and_makes_no_statement_about_gateways() -> None:
    harness = stage_of(shop(), clusters=[ScriptedCluster(taken_over=False, version="")])
    harness.controller.leads, harness.controller.leader = False, "pod-b_2"
    async with served(harness):
        overview = await harness.data("overview")
        assert (overview["replica"]["leads"], overview["replica"]["leader"]) == (False, "pod-b_2")
        (cluster,) = overview["clusters"]
        assert (cluster["state"], cluster["records"]["unknown"]) == ("not written by this replica", 2)
        assert cluster["records"]["applied"] == 0
        page = await harness.ask("/status")
        assert "This replica is a follower." in page.text
        assert "pod-b_2 leads" in page.text


async def test_held_deletes_and_repaired_drift_are_reported() -> None:
    harness = stage_of(shop())
    harness.journal.compared("default", ok=True)
    harness.journal.drift("default", 3)
    harness.journal.held("default", 412)
    async with served(harness):
        (cluster,) = (await harness.data("overview"))["clusters"]
        assert (cluster["held"], [each["records"] for each in cluster["repairs"]]) == (412, [3])
        assert "delete these records through the Admin API" in cluster["held_remedy"]
        page = await harness.ask("/status")
        assert "412 deletes are held back" in page.text
        assert "3 records differed from the desired state" in page.text


async def test_problem_is_shown_with_code_field_and_message() -> None:
    broken = shop("broken", "broken.example.org", backends=[{"serviceName": "gone", "servicePort": 80}])
    async with served(stage_of(shop(), broken)) as harness:
        (item,) = (await harness.data("problems"))["items"]
        assert (item["object"]["text"], item["code"]) == ("ApisixRoute default/broken", "ServiceNotFound")
        assert item["field"].startswith("spec.http[0].backends[0]")
        whole = await harness.data("object", kind="ApisixRoute", namespace="default", name="broken")
        assert [each["code"] for each in whole["problems"]] == ["ServiceNotFound"]
        assert (await harness.data("problems", q="nothing"))["total"] == 0


async def test_a_conflict_names_the_preceding_object_of_another_namespace() -> None:
    older, newer = shop("older"), shop("newer")
    older["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
    newer["metadata"] |= {"creationTimestamp": "2026-02-01T00:00:00Z"}
    async with served(stage_of(older, newer)) as harness:
        found = await harness.data("conflicts")
        (item,) = found["matchers"]
        assert (item["host"], item["path"]) == ("shop.example.org", "/a")
        assert item["front"]["text"] == "ApisixRoute default/older"
        assert [each["text"] for each in item["behind"]] == ["ApisixRoute default/newer"]
        assert "ApisixRoute default/newer" in (await harness.ask("/status/conflicts")).text


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("record?kind=routes&id=nope", 404, "unknown record routes/nope"),
        ("record", 404, "unknown record"),
        ("object?kind=Ingress&name=x", 404, "does not exist"),
        ("records?kind=services", 400, "unknown kind 'services'"),
        ("records?state=odd", 400, "unknown state 'odd'"),
        ("records?page=-1", 400, "invalid page '-1'"),
        ("records?page=99999999", 400, "invalid page '99999999'"),
        ("problems?page=x", 400, "invalid page 'x'"),
        ("problems?severity=odd", 400, "unknown severity 'odd'"),
        ("hosts?state=odd", 400, "unknown state 'odd'"),
        (f"records?q={'x' * 201}", 400, "the search is too long"),
        ("explain?url=ftp://x", 400, "the scheme 'ftp'"),
        ("explain?url=x&server_port=0", 400, "invalid port '0'"),
        (f"explain?url=x&server_port={'9' * 5000}", 400, "use a number from 1 to 65535"),
        (f"explain?url={'x' * 3000}", 400, "too long"),
        ("explain?url=x&headers=" + "a:b%0A" * 30, 400, "30 headers"),
        ("explain?url=x&cluster=odd", 400, "unknown gateway cluster 'odd'"),
    ],
)
async def test_an_invalid_request_gets_a_response_with_the_reason(path: str, status: int, words: str) -> None:
    async with served(stage_of(shop())) as harness:
        page, data = await harness.ask(f"/status/{path}"), await harness.ask(f"/status/api/{path}")
        assert (page.status, data.status) == (status, status)
        assert words in data.text
        assert words.replace("'", "&#39;") in page.text


async def test_unknown_pages_and_assets_are_not_found() -> None:
    async with served(stage_of()) as harness:
        for path in ("/status/nothing", "/status/assets/..%2fservice.py", "/status/assets/x.js"):
            assert (await harness.ask(path)).status == 404


@pytest.mark.parametrize("path", ["/", "/status/"])
async def test_other_addresses_of_the_page_lead_to_it(path: str) -> None:
    async with served(stage_of()) as harness:
        reply = await harness.ask(path, follow=False)
    assert (reply.status, reply.headers["Location"]) == (302, "/status")


async def test_explain_returns_the_same_as_the_command_line() -> None:
    async with served(stage_of(shop(), shop("other", path="/*"))) as harness:
        document = await harness.data("explain", url="http://shop.example.org/a", headers="X-User: 7")
        assert document["outcome"] == "route"
        assert document["route"]["owner"] == {"kind": "ApisixRoute", "namespace": "default", "name": "route"}
        assert [each["outcome"] for each in document["candidates"]] == ["wins", "loses"]
        page = await harness.ask("/status/explain?url=http%3A%2F%2Fshop.example.org%2Fa")
        assert "answered by route" in page.text
        assert (
            "404: no route matches this request"
            in (await harness.ask("/status/explain?url=elsewhere.example.org")).text
        )


async def test_explain_reports_the_current_404_for_a_rejected_route() -> None:
    harness = stage_of(shop())
    state = RecordState("rejected", "unknown plugin [limit-cuont]")
    harness.clusters[0].states[harness.record("routes", "default_route_rule")] = state
    async with served(harness):
        answer = (await harness.data("explain", url="http://shop.example.org/a"))["answer"]
        page = (await harness.ask("/status/explain?url=shop.example.org/a")).text
    assert answer["status"] == 404
    assert answer["summary"].endswith("cluster default rejected it: unknown plugin [limit-cuont]")
    assert "rejected it: unknown plugin [limit-cuont]" in page


async def test_explain_reports_that_an_earlier_version_still_matches() -> None:
    harness = stage_of(shop())
    key = harness.record("routes", "default_route_rule")
    harness.clusters[0].states[key] = PENDING
    harness.clusters[0].earlier[key] = harness.world.desired.records("default")[key].body
    async with served(harness):
        answer = (await harness.data("explain", url="http://shop.example.org/a"))["answer"]
    assert answer["summary"].endswith("in an earlier version: the write to cluster default has not been confirmed yet")


async def test_explain_and_search_know_the_host_of_an_object_that_is_not_published() -> None:
    broken = shop("broken", "nosvc.example.org", backends=[{"serviceName": "gone", "servicePort": 80}])
    async with served(stage_of(shop(), broken)) as harness:
        found = await harness.data("explain", url="http://nosvc.example.org/a")
        page = (await harness.ask("/status/explain?url=nosvc.example.org/a")).text
        rows = await harness.data("records", q="nosvc.example.org")
        search = (await harness.ask("/status/records?q=nosvc.example.org")).text
        elsewhere = await harness.data("records", q="other.example.org")
    assert found["answer"]["summary"].startswith(
        "404: no route matches. ApisixRoute default/broken matches this request"
    )
    assert "Service default/gone" in found["answer"]["summary"]
    assert "Service default/gone" in page
    assert (rows["total"], rows["unpublished"][0]["object"]["text"]) == (0, "ApisixRoute default/broken")
    assert "Service default/gone" in search
    assert "No matches" not in search
    assert elsewhere["unpublished"] == []


async def test_explain_handles_a_path_that_is_not_utf8() -> None:
    async with served(stage_of(shop())) as harness:
        page, data = [await harness.ask(f"/status{api}/explain?url=x.org/a%25ff") for api in ("", "/api")]
        assert (page.status, data.status) == (200, 200)
        assert "/a\\\\udcff" in data.text


async def test_empty_world_has_pages_too() -> None:
    async with served(make_harness(clusters=[])) as harness:
        for page in PAGES:
            assert (await harness.ask(f"/status{page}")).status == 200


async def test_every_kind_of_record_can_be_listed_with_bodies() -> None:
    async with served(stage_of(shop())) as harness:
        got = {kind: (await harness.data("records", kind=kind, body="yes"))["total"] for kind in RECORD_KINDS}
        assert {kind: total for kind, total in got.items() if total} == {"routes": 1, "upstreams": 1}


async def test_pending_record_is_listed_as_unsettled() -> None:
    harness = stage_of(shop())
    harness.clusters[0].states[harness.record("upstreams", "default_web_80")] = PENDING
    async with served(harness):
        found: Mapping[str, Any] = await harness.data("records", kind="upstreams", state="unsettled")
        assert [item["status"] for item in found["items"]] == ["pending"]
        assert (await harness.data("records", kind="routes", state="unsettled"))["total"] == 0


async def test_the_page_of_an_object_names_what_keeps_its_edit_from_a_gateway() -> None:
    outage = Outage("unreachable", "refused", datetime(2026, 11, 22, 8, tzinfo=UTC))
    clusters = [ScriptedCluster("east"), ScriptedCluster("west", outage=outage)]
    harness = make_harness(service(), slice_of([{"addresses": ["10.0.0.7"]}]), shop(), clusters=clusters)
    key = harness.record("routes", "default_route_rule")
    clusters[1].states[key] = RecordState("unreachable", "refused", is_away=True)
    async with served(harness):
        found = await harness.data("object", kind="ApisixRoute", namespace="default", name="route")
        listed = (await harness.data("problems"))["items"]
    assert [(each["code"], each["cluster"], each["since"]) for each in found["problems"]] == [
        ("Undelivered", "west", "2026-11-22T08:00:00Z")
    ]
    assert [each["code"] for each in listed] == ["Outage"]


async def test_the_page_of_an_object_names_its_service_without_ready_pods() -> None:
    async with served(make_harness(service(), shop())) as harness:
        found = await harness.data("object", kind="ApisixRoute", namespace="default", name="route")
    assert [each["code"] for each in found["problems"]] == ["NoEndpoints"]
