"""The explain form: one at a time, and never longer than its deadline."""

import asyncio
from datetime import UTC, datetime

import pytest

from apisix_ingress.gateway.sync.observer import Outage, RecordState
from apisix_ingress.statuspage import explain_form as explaining
from apisix_ingress.statuspage import snapshot
from apisix_ingress.statuspage.explain_form import Busy, Explainer, Question
from apisix_ingress.statuspage.snapshot import gather
from tests.unit.apisix_ingress.statuspage.harness import ScriptedCluster, make_harness
from tests.unit.translation.objects import route, rule, service, slice_of

ENDPOINTS = slice_of([{"addresses": ["10.0.0.7"]}])
CONDITION = {"subject": {"scope": "Header", "name": "X-A"}, "op": "Equal", "value": "1"}


def test_form_is_read_field_by_field() -> None:
    got = Question.of({"url": " shop.example.org/a ", "method": "post", "headers": "X-A: 1\n\nX-B: 2", "odd": "x"})
    request = got.request()
    assert (request.host, request.path, request.method) == ("shop.example.org", "/a", "POST")
    assert request.headers == {"x-a": "1", "x-b": "2"}


async def test_conditions_are_polled_until_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "DEADLINE", -1.0)
    harness = make_harness(service(), route(rule(match={"exprs": [CONDITION]})))
    found = await gather(harness.facts)
    with pytest.raises(Busy):
        await Explainer().answer(Question("any.example.org/a"), harness.facts, found, ["default"])


@pytest.mark.parametrize("chunk", [1, 1000])
async def test_a_second_request_is_rejected_while_the_first_is_processed(
    monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(snapshot, "CHUNK", chunk)  # 1: others run while the first gathers records
    harness = make_harness(service(), route(rule(match={"exprs": [CONDITION]})))
    found, explainer = await gather(harness.facts), Explainer()
    asked = [explainer.answer(Question("any.example.org/a"), harness.facts, found, ["default"]) for _ in range(2)]
    first, second = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(first, dict)
    assert isinstance(second, Busy)


async def test_every_gateway_cluster_answers_and_an_earlier_version_as_it_is() -> None:
    clusters = [ScriptedCluster("east"), ScriptedCluster("west")]
    harness = make_harness(service(), ENDPOINTS, route(rule(match={"paths": ["/new"]})), clusters=clusters)
    key = next(key for key in harness.world.desired.keys() if key.kind == "routes")  # noqa: SIM118
    clusters[1].states[key] = RecordState("unreachable", "no response")
    clusters[1].earlier[key] = {"uris": ["/old"], "upstream_id": "1"}
    found = await gather(harness.facts)
    got = await Explainer().answer(Question("any.example.org/new"), harness.facts, found, ["east", "west"])
    (west,) = got["elsewhere"]
    assert (got["cluster"], got["answer"]["kind"], west["cluster"], west["status"]) == ("east", "backend", "west", 404)
    assert "should answer, but the gateway has an earlier version of it" in west["summary"]


async def test_what_a_gateway_that_does_not_respond_answers_is_not_claimed() -> None:
    outage = Outage("unreachable", "refused", datetime(2026, 11, 22, 8, tzinfo=UTC))
    harness = make_harness(service(), ENDPOINTS, route(rule()), clusters=[ScriptedCluster(outage=outage)])
    found = await gather(harness.facts)
    got = await Explainer().answer(Question("any.example.org/a"), harness.facts, found, ["default"])
    harness.clusters[0].taken_over = False
    unread = await Explainer().answer(Question("any.example.org/a"), harness.facts, found, ["default"])
    assert unread["answer"]["summary"] == (
        "unknown: gateway cluster default is not reachable: refused. "
        "It has not responded since this replica began to lead, so its records are not known"
    )
    assert got["answer"]["summary"].startswith("unknown; with the last known records of the gateway, answered by route")
