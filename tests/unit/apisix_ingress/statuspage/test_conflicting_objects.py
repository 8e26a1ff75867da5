"""Hosts with several certificates: the winner, the losers, and undefined results."""

from __future__ import annotations

from typing import Any

from apisix_ingress.model.json import JsonObject
from tests.unit.apisix_ingress.statuspage.harness import make_harness, served
from tests.unit.translation.hosts.test_hosts_of_certificates import HOST, SECRETS, ingress, pair, tls
from tests.unit.translation.objects import make, service

OLDEST, NEWER = tls(1, namespace="red", name="oldest"), tls(2, "cert-2", namespace="blue", name="newer")


async def conflicts_of(*objects: JsonObject) -> tuple[Any, str]:
    """Return the conflicts as JSON and as a page."""
    async with served(make_harness(service(), *SECRETS, *objects)) as harness:
        return await harness.data("conflicts"), (await harness.ask("/status/conflicts")).text


async def test_skipped_host_is_shown_with_its_owner() -> None:
    data, page = await conflicts_of(OLDEST, NEWER)
    (item,) = data["certificates"]
    assert (item["host"], item["front"]["text"]) == (HOST, "ApisixTls red/oldest")
    assert [(each["object"]["text"], each["left_out"]) for each in item["behind"]] == [("ApisixTls blue/newer", True)]
    assert data["objects"] == 1
    assert HOST in page
    assert "ApisixTls blue/newer" in page
    assert "not published" in page


async def test_host_with_two_certificates_of_one_namespace_is_published_twice() -> None:
    data, page = await conflicts_of(OLDEST, tls(3, "cert-2", namespace="red", name="second"))
    (item,) = data["certificates"]
    assert [(each["object"]["text"], each["left_out"]) for each in item["behind"]] == [("ApisixTls red/second", False)]
    assert "both are published" in page


async def test_all_objects_that_lose_a_host_are_in_one_row() -> None:
    third = ingress(3, {"secretName": "cert-2", "hosts": [HOST, "b.example.com"]}, namespace="blue")
    data, _ = await conflicts_of(third, NEWER, OLDEST)
    (item,) = data["certificates"]
    assert [each["object"]["text"] for each in item["behind"]] == ["ApisixTls blue/newer", "Ingress blue/web"]


async def test_copies_of_one_certificate_do_not_conflict() -> None:
    copy = pair("cert-3", 1, namespace="blue")
    data, page = await conflicts_of(copy, OLDEST, tls(2, "cert-3", namespace="blue"), make("Namespace", "blue"))
    assert (data["certificates"], data["objects"]) == ([], 0)
    assert HOST not in page


async def test_the_overview_counts_the_losers_of_a_host() -> None:
    async with served(make_harness(*SECRETS, OLDEST, NEWER)) as harness:
        assert (await harness.data("overview"))["conflicts"] == 1


async def test_each_host_in_dispute_is_reported_and_no_other() -> None:
    hosts = (HOST, "b.example.com", "c.example.com")
    data, _ = await conflicts_of(tls(1, hosts=hosts[:2]), tls(2, "cert-2", namespace="blue", hosts=hosts))
    assert [item["host"] for item in data["certificates"]] == [HOST, "b.example.com"]
