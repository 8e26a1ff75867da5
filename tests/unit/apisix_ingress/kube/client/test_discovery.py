"""Which kinds are served, according to lists that many kinds share."""

import asyncio
from typing import Any

import pytest

from apisix_ingress.errors import KubeNotFound, KubeUnavailable
from apisix_ingress.kube.client.discovery import SHARED_SECONDS, Discovery
from apisix_ingress.model.kinds.table import RESOURCES
from tests.fakes.clock import FakeClock

ROUTE, UPSTREAM = RESOURCES["ApisixRoute"], RESOURCES["ApisixUpstream"]
BASE = "/apis/apisix.apache.org/v2"
NO_GROUPS: dict[str, Any] = {"groups": []}


class Server:
    """Responds with the value of `answers` for a path; exceptions are raised, and other paths are not found."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.requests: list[str] = []

    async def get(self, path: str) -> Any:
        self.requests.append(path)
        await asyncio.sleep(0)
        answer = self.answers.get(path, KubeNotFound(path, status=404))
        if isinstance(answer, Exception):
            raise answer
        return answer


def resources(*plurals: str) -> dict[str, Any]:
    return {"resources": [{"name": plural} for plural in plurals]}


def discovery(server: Server, clock: FakeClock | None = None) -> Discovery:
    return Discovery(server.get, host="server:6443", clock=clock or FakeClock())


async def test_a_kind_is_served_if_its_group_lists_it() -> None:
    server = Server(**{BASE: resources("apisixroutes")})
    found = discovery(server)
    assert await found.serves(ROUTE)
    assert not await found.serves(UPSTREAM)


async def test_kinds_share_the_lists_for_some_seconds() -> None:
    clock = FakeClock()
    server = Server(**{"/apis": NO_GROUPS})
    found = discovery(server, clock)
    assert not any(await asyncio.gather(found.serves(ROUTE), found.serves(UPSTREAM)))
    clock.shift(SHARED_SECONDS - 0.1)
    assert not await found.serves(ROUTE)
    assert server.requests == [BASE, "/apis"]
    server.answers[BASE] = resources("apisixroutes")
    clock.shift(0.2)
    assert await found.serves(ROUTE)


async def test_a_failure_is_shared_by_concurrent_callers_only() -> None:
    server = Server(**{BASE: KubeUnavailable("down")})
    found = discovery(server)
    got = await asyncio.gather(found.serves(ROUTE), found.serves(UPSTREAM), return_exceptions=True)
    assert [type(each) for each in got] == [KubeUnavailable, KubeUnavailable]
    assert server.requests == [BASE]
    server.answers[BASE] = resources("apisixroutes")
    assert await found.serves(ROUTE)


async def test_a_cancelled_caller_does_not_cancel_the_request_of_others() -> None:
    server = Server(**{BASE: resources("apisixroutes")})
    found = discovery(server)
    first, second = asyncio.create_task(found.serves(ROUTE)), asyncio.create_task(found.serves(ROUTE))
    await asyncio.sleep(0)
    first.cancel()
    assert await second


async def test_closing_cancels_the_requests_in_flight() -> None:
    found = discovery(Server())
    caller = asyncio.create_task(found.serves(ROUTE))
    await asyncio.sleep(0)
    await found.close()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ({"/apis": {"groups": [{"versions": [{"groupVersion": "apisix.apache.org/v2"}]}]}}, "contains it"),
        ({}, "check the kubeconfig's server"),
        ({"/apis": {"groups": [{}]}}, "not a list of API groups"),
        ({BASE: {"resources": None}}, "not a list of resources"),
    ],
)
async def test_a_404_is_only_trusted_if_both_lists_agree(answers: dict[str, Any], problem: str) -> None:
    with pytest.raises(KubeUnavailable, match=problem):
        await discovery(Server(**answers)).serves(ROUTE)


async def test_absent_kinds_share_the_list_of_all_groups() -> None:
    clock = FakeClock()
    server = Server(**{"/apis": NO_GROUPS})
    found = discovery(server, clock)
    assert not await found.serves(ROUTE)
    server.requests.clear()
    clock.shift(SHARED_SECONDS + 0.1)
    assert not any(await asyncio.gather(*(found.serves(each, was_absent=True) for each in (ROUTE, UPSTREAM))))
    assert server.requests == ["/apis"]
    server.answers["/apis"] = {"groups": [{"versions": [{"groupVersion": ROUTE.api_version}]}]}
    server.answers[BASE] = resources("apisixroutes")
    clock.shift(SHARED_SECONDS + 0.1)
    assert await found.serves(ROUTE, was_absent=True)
    assert not await found.serves(UPSTREAM, was_absent=True)
