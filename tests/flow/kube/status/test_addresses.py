"""Addresses of Ingresses, written to an API server over HTTP."""

from typing import Any

import pytest

from apisix_ingress.model.condition import aborted, synced
from tests.flow.kube.status.harness import SHOP, StatusHarness, ingress
from tests.waiting import WAIT_SECONDS


async def test_removed_addresses_are_restored(harness: StatusHarness) -> None:
    harness.published = [{"ip": "192.0.2.1"}]
    harness.want(SHOP, synced(1))
    await harness.until(lambda: harness.shown() == harness.published, "the addresses")
    await harness.until_stored(SHOP)
    item = harness.server.get("ingresses", "shop") or {}
    harness.server.put({**item, "status": {}})
    await harness.until(lambda: harness.shown() == harness.published, "the addresses again")


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


async def test_published_addresses_are_tracked_and_withdrawn(harness: StatusHarness) -> None:
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


async def test_own_addresses_are_found_at_an_ingress_that_left_unobserved(harness: StatusHarness) -> None:
    harness.published = [{"ip": "192.0.2.1"}]
    harness.want(SHOP, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    await harness.until_stored(SHOP)
    harness.published = []
    del harness.wanted[SHOP]
    harness.writer.review([{"ip": "192.0.2.2"}])
    harness.writer.review([])
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.shown() == [{"ip": "192.0.2.1"}]  # another installation of this controller may publish it
    harness.writer.review([{"ip": "192.0.2.1"}])
    assert await harness.writer.flush(WAIT_SECONDS)
    assert (harness.shown(), harness.writes()) == ([], 2)


async def test_an_ingress_that_moves_to_this_class_gets_addresses(harness: StatusHarness) -> None:
    harness.server.put({**ingress(), "status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.7"}]}}})
    await harness.until_stored(SHOP)
    harness.published = [{"ip": "192.0.2.1"}]
    harness.want(SHOP, synced(1))
    assert await harness.writer.flush(WAIT_SECONDS)
    assert harness.shown() == [{"ip": "192.0.2.1"}]
