"""The status of a running controller: the same document as that of the command, which reads it by --url."""

from datetime import UTC, datetime
from typing import Any

import pytest

from apisix_ingress.diagnostics.collect.running_controller import read_explanation, read_status, read_wanted
from apisix_ingress.diagnostics.reports.references import with_references, with_texts
from apisix_ingress.diagnostics.reports.status import Filter
from apisix_ingress.errors import IngressError, UsageError
from apisix_ingress.explain.text import lines
from apisix_ingress.gateway.sync.observer import Outage, RecordState
from apisix_ingress.model.records import Record
from tests.unit.apisix_ingress.statuspage.harness import PageHarness, ScriptedCluster, make_harness, served
from tests.unit.translation.objects import make, pem, rule, secret, service, slice_of

AWAY = Outage("unreachable", "10.0.0.9:9180: Connection refused", datetime(2026, 11, 22, 8, 55, 30, tzinfo=UTC))


def route(name: str, **fields: Any) -> dict[str, Any]:
    return make("ApisixRoute", name, spec={"http": [rule(match={"hosts": [f"{name}.org"], "paths": ["/"]}, **fields)]})


def stage(*clusters: ScriptedCluster) -> PageHarness:
    broken = route("broken", backends=[{"serviceName": "gone", "servicePort": 80}])
    ready = slice_of([{"addresses": ["10.0.0.7"]}])
    return make_harness(service(), ready, route("web"), broken, clusters=list(clusters) or None)


def names(document: Any) -> dict[str, str]:
    return {each["object"]["name"]: each["state"] for each in document["items"]}


async def test_a_running_controller_lists_objects_that_need_attention() -> None:
    async with served(stage()) as harness:
        got = await read_status(harness.url, Filter())
    assert (got["healthy"], names(got)) == (False, {"broken": "failed"})
    assert got["objects"] == {"ApisixRoute": {"ok": 1, "failed": 1, "waiting": 0, "pending": 0}}
    assert got["clusters"][0]["in_sync"]
    assert (got["leader"]["state"], got["leader"]["holder"]) == ("held", "pod-a_1")


async def test_objects_are_filtered_by_namespace_and_kind_and_listed_all_on_request() -> None:
    async with served(stage()) as harness:
        every = await read_status(harness.url, Filter(kinds=frozenset({"ApisixRoute", "Ingress"}), healthy=True))
        none = await read_status(harness.url, Filter("elsewhere"))
    assert names(every) == {"broken": "failed", "web": "ok"}
    assert (none["healthy"], none["objects"], none["items"]) == (True, {}, [])


async def test_an_unreachable_cluster_is_named_with_its_cause_and_its_objects_wait() -> None:
    harness = stage(ScriptedCluster("down", outage=AWAY))
    for key in harness.world.desired.records("down"):
        harness.clusters[0].states[key] = RecordState("unreachable", "no response", is_away=True)
    async with served(harness):
        got = await read_status(harness.url, Filter())
    assert names(got) == {"broken": "failed", "web": "waiting"}
    (cluster,) = got["clusters"]
    assert (cluster["reachable"], cluster["in_sync"], cluster["trouble"]) == (False, False, AWAY.cause)
    assert cluster["since"] == f"{AWAY.since:%Y-%m-%dT%H:%M:%SZ}"


async def test_a_follower_reports_that_it_does_not_know_the_gateways() -> None:
    harness = stage(ScriptedCluster(taken_over=False))
    harness.controller.leads, harness.controller.leader = False, "pod-b_1"
    async with served(harness):
        got = await harness.data("status")
    assert (got["leader"]["holder"], names(got)["web"]) == ("pod-b_1", "pending")
    assert "does not lead" in got["clusters"][0]["trouble"]


@pytest.mark.parametrize(
    ("leader", "whom"), [("pod-b_1", "ask Pod pod-b, which leads"), ("", "no leader is known yet")]
)
async def test_commands_refuse_the_answers_of_a_follower_and_name_the_leader(leader: str, whom: str) -> None:
    harness = stage(ScriptedCluster(taken_over=False))
    harness.controller.leads, harness.controller.leader = False, leader
    async with served(harness):
        for answer in (
            read_status(harness.url, Filter()),
            read_explanation(harness.url, {"url": "http://web.org/"}),
            read_wanted(harness.url),
        ):
            with pytest.raises(IngressError, match=f"not the leader, so it does not know the gateways: {whom}"):
                await answer


async def test_the_page_of_a_follower_names_the_leader_on_every_view() -> None:
    harness = stage(ScriptedCluster(taken_over=False))
    harness.controller.leads, harness.controller.leader = False, "pod-b_1"
    async with served(harness):
        pages = [(await harness.ask(path)).text for path in ("/status", "/status/hosts", "/status/changes")]
        harness.controller.leads = True
        leading = (await harness.ask("/status")).text
    assert all("Pod pod-b leads. Run <code>apisix-ingress dashboard</code>" in each for each in pages)
    assert "apisix-ingress dashboard" not in leading


async def test_a_failure_has_the_reason_of_its_problem_and_its_time() -> None:
    async with served(stage()) as harness:
        harness.journal.reported(next(key for key in harness.world.reports if key.name == "broken"))
        (item,) = (await read_status(harness.url, Filter()))["items"]
    assert item["reason"] == "ServiceNotFound"
    assert item["since"] == harness.journal.began.strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_an_object_whose_service_has_no_ready_pod_fails_with_the_time_when_the_last_one_left() -> None:
    harness = make_harness(service(), route("web"))
    upstream = harness.record("upstreams", "default_web_80")
    harness.journal.replaced("default", upstream, None, Record(upstream, "u", {"nodes": []}))
    async with served(harness):
        (item,) = (await read_status(harness.url, Filter()))["items"]
    want = "Service default/web has no ready Pod, so its requests get the response 503"
    assert (item["object"]["kind"], item["state"], item["message"]) == ("ApisixRoute", "failed", want)
    assert (item["reason"], item["since"]) == ("NoEndpoints", harness.journal.began.strftime("%Y-%m-%dT%H:%M:%SZ"))


async def test_an_object_that_waits_for_a_gateway_fails_if_its_requests_fail_elsewhere() -> None:
    pair = pem()
    cert = secret("cert", **{"tls.crt": pair.certificate, "tls.key": pair.key})
    of_cert = {"hosts": ["a.example.com"], "secret": {"name": "cert", "namespace": "default"}}
    harness = make_harness(service(), route("web"), cert, make("ApisixTls", "old", spec=of_cert))
    for key in harness.world.desired.records("default"):
        harness.clusters[0].states[key] = RecordState("unreachable", "no response", is_away=True)
    async with served(harness):
        got = (await read_status(harness.url, Filter()))["items"]
    assert [(each["object"]["name"], each["state"], each["reason"], each["since"]) for each in got] == [
        ("web", "failed", "NoEndpoints", ""),
        ("old", "failed", "CertificateExpired", "2020-01-02T00:00:00Z"),
    ]


async def test_an_address_without_a_controller_is_an_error_that_says_what_to_check() -> None:
    with pytest.raises(IngressError, match=r"controller at http://127.0.0.1:1: no response: .*port-forward"):
        await read_status("127.0.0.1:1", Filter())
    with pytest.raises(UsageError, match="write the address of the controller"):
        await read_status("ftp://somewhere", Filter())


async def test_a_running_controller_explains_a_request() -> None:
    async with served(stage()) as harness:
        got = with_texts(await read_explanation(harness.url, {"url": "http://x.example.org/nowhere", "method": "GET"}))
        with pytest.raises(IngressError, match=r"400: .*port"):
            await read_explanation(harness.url, {"url": "http://x.example.org/", "server_port": "0"})
    assert got["outcome"] == "none"
    assert next(lines(got)) == "GET http://x.example.org/nowhere"


async def test_texts_and_references_of_an_explanation_are_equivalent() -> None:
    async with served(stage()) as harness:
        found = await harness.data("explain", url="http://web.org/")
    del found["replica"]
    assert with_references(with_texts(found)) == found
