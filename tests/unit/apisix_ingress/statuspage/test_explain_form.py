"""The explain form: one at a time, and never longer than its deadline."""

import asyncio

import pytest

from apisix_ingress.statuspage import explain_form as explaining
from apisix_ingress.statuspage import snapshot
from apisix_ingress.statuspage.explain_form import Busy, Explainer, Question
from apisix_ingress.statuspage.snapshot import gather
from tests.unit.apisix_ingress.statuspage.harness import make_harness
from tests.unit.translation.objects import route, rule, service

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
        await Explainer().answer(Question("any.example.org/a"), harness.facts, found, "default")


@pytest.mark.parametrize("chunk", [1, 1000])
async def test_a_second_request_is_rejected_while_the_first_is_processed(
    monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(snapshot, "CHUNK", chunk)  # 1: others run while the first gathers records
    harness = make_harness(service(), route(rule(match={"exprs": [CONDITION]})))
    found, explainer = await gather(harness.facts), Explainer()
    asked = [explainer.answer(Question("any.example.org/a"), harness.facts, found, "default") for _ in range(2)]
    first, second = await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(first, dict)
    assert isinstance(second, Busy)
