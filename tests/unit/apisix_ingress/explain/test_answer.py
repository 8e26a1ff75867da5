"""The response to a client: errors of the gateway itself, routes that should match, unpublished objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from apisix_ingress.explain.answer import CLOSED, MOST_CLAIMANTS, Claimant, Unapplied
from apisix_ingress.explain.report import explain
from apisix_ingress.explain.request import parse_request
from apisix_ingress.explain.text import lines
from apisix_ingress.model.keys import RecordKey

NODES = [{"host": "10.0.0.1", "port": 80, "weight": 1}]
LIVE = {"uri": "/*", "host": "a.org", "upstream": {"nodes": NODES}}
REFUSED = "cluster default rejected it: unknown plugin [limit-cuont]"


def ask(
    records: dict[str, dict[str, Any]],
    *,
    url: str = "a.org/x",
    unapplied: dict[str, Unapplied] | None = None,
    claimants: Sequence[Claimant] = (),
    owner: str = "",
) -> dict[str, Any]:
    keyed: Any = {RecordKey(*path.split("/")): {"id": path.split("/")[1], **body} for path, body in records.items()}  # type: ignore[arg-type]
    missing: Any = {RecordKey(*path.split("/")): each for path, each in (unapplied or {}).items()}  # type: ignore[arg-type]
    return explain(parse_request(url), keyed, lambda key: owner, unapplied=missing, claimants=claimants)


def claimant(host: str = "a.org", uri: str = "/*", owner: str = "ApisixRoute default/web") -> Claimant:
    return Claimant(owner, [{"hosts": [host], "uris": [uri]}], ["AIX0101 spec.http[0]: Service default/web is missing"])


@pytest.mark.parametrize(
    ("body", "status", "cause"),
    [
        (LIVE, None, "answered by route r"),
        (
            {"uri": "/*", "upstream": {"nodes": []}},
            503,
            "503: route r is chosen, but upstream of the route has no nodes",
        ),
        ({"uri": "/*", "upstream_id": "gone"}, 502, "502: route r is chosen, but upstream gone does not exist"),
        ({"uri": "/*"}, 503, "503: route r is chosen, but it has no upstream"),
        ({"uri": "/*", "plugins": {"redirect": {"uri": "/y"}}}, 302, "302 → /y, by route r"),
        (
            {"uri": "/*", "plugins": {"fault-injection": {"abort": {"http_status": 503}}}},
            503,
            "503: route r is chosen, but fault-injection responds itself",
        ),
        ({"uri": "/*", "plugins": {"mocking": {}}}, 200, "200: route r is chosen, and mocking responds itself"),
    ],
)
def test_the_report_names_the_gateways_own_response(body: dict[str, Any], status: int, cause: str) -> None:
    answer = ask({"routes/r": body})["answer"]
    assert (answer["status"], answer["summary"]) == (status, cause)


def test_split_with_one_upstream_that_works_is_not_an_error() -> None:
    split = {"rules": [{"weighted_upstreams": [{"upstream_id": "empty", "weight": 1}, {"weight": 9}]}]}
    records: dict[str, dict[str, Any]] = {
        "routes/r": {**LIVE, "plugins": {"traffic-split": split}},
        "upstreams/empty": {"nodes": []},
    }
    assert ask(records)["answer"]["status"] is None


def test_a_rejected_route_that_should_match_is_named_with_the_reason() -> None:
    got = ask({}, unapplied={"routes/r": Unapplied(LIVE, REFUSED)})
    want = f"404: route r should answer, but the gateway does not have it: {REFUSED}"
    assert (got["outcome"], got["route"], got["answer"]["status"], got["answer"]["summary"]) == (
        "none",
        None,
        404,
        want,
    )
    assert got["should"] == {
        "id": "r",
        "name": "",
        "owner": "",
        "reason": REFUSED,
        "has_earlier": False,
        "is_closed": False,
    }


def test_a_closed_route_is_not_described_as_an_earlier_version() -> None:
    got = ask({"routes/r": {**LIVE, **CLOSED}}, unapplied={"routes/r": Unapplied(LIVE, REFUSED, is_closed=True)})
    assert (got["answer"]["status"], got["answer"]["summary"]) == (503, f"503: route r is closed: {REFUSED}")


def test_a_route_that_matches_instead_of_a_rejected_one_is_named() -> None:
    got = ask({"routes/wide": {**LIVE, "host": "*.org"}}, unapplied={"routes/r": Unapplied(LIVE, REFUSED)})
    assert got["route"]["id"] == "wide"
    assert got["answer"]["summary"] == f"answered by route wide; route r should answer instead: {REFUSED}"


def test_the_earlier_version_of_a_rejected_route_matches() -> None:
    got = ask({"routes/r": LIVE}, unapplied={"routes/r": Unapplied(LIVE, REFUSED, has_earlier=True)})
    assert got["answer"]["summary"] == f"answered by route r, in an earlier version: {REFUSED}"


def test_object_that_asks_for_the_request_is_the_reason_of_a_404() -> None:
    got = ask({}, claimants=[claimant(uri="/other", owner="ApisixRoute default/a"), claimant()])
    assert got["answer"]["summary"] == (
        "404: no route matches. ApisixRoute default/web matches this request but is not published: "
        "AIX0101 spec.http[0]: Service default/web is missing"
    )
    assert [(each["object"], each["names_path"]) for each in got["objects"]] == [
        ("ApisixRoute default/web", True),
        ("ApisixRoute default/a", False),
    ]


def test_the_response_of_a_gateway_to_a_request_without_a_route_is_described_as_such() -> None:
    guard = {"uri": "/*", "plugins": {"fault-injection": {"abort": {"http_status": 404}}}}
    got = ask({"routes/r": guard}, owner="Gateway default/gw")
    assert got["answer"]["summary"] == "404: no route matches this request"


def test_objects_of_other_hosts_are_skipped_and_many_are_counted() -> None:
    many = [claimant(owner=f"ApisixRoute default/r{number:02}") for number in range(MOST_CLAIMANTS + 3)]
    got = ask({}, claimants=[claimant(host="b.org"), *many])
    assert (len(got["objects"]), got["objects_more"]) == (MOST_CLAIMANTS, 3)


def test_wildcards_and_rules_without_hosts_are_requested_too() -> None:
    every = Claimant("Ingress default/any", [{"hosts": [], "uris": ["/*"]}], ["it has no class"])
    got = ask({}, claimants=[claimant(host="*.org"), every])
    assert [each["object"] for each in got["objects"]] == ["ApisixRoute default/web", "Ingress default/any"]


def test_misspelt_host_has_similar_ones() -> None:
    records = {"routes/r": {**LIVE, "host": "shop.example.org"}}
    got = ask(records, url="shpo.example.org/")
    assert got["similar_hosts"] == ["shop.example.org"]
    assert "  no route has this host; similar hosts: shop.example.org" in lines(got)
    assert ask(records, url="shop.example.org/")["similar_hosts"] == []


def test_routes_of_other_hosts_are_listed_on_request_only() -> None:
    got = ask({"routes/same": {**LIVE, "uri": "/y"}, "routes/other": {**LIVE, "host": "b.org"}})
    short, whole = list(lines(got)), list(lines(got, verbose=True))
    assert [line for line in short if "does not match" in line] == [
        "  does not match: same: its uri is /y, the request's path is /x",
        "  does not match: 1 more route of other hosts or paths; list them with -v",
    ]
    assert "  does not match: other: its host is b.org, the request's is a.org" in whole
