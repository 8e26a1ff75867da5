"""Upstreams with many nodes or retries, and routes with many hosts and addresses."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.model.json import JsonObject
from apisix_ingress.model.keys import RecordKey, RecordKind
from apisix_ingress.model.records import Record
from translation.core.options import Options
from translation.safety.nodes import (
    MOST_CHECKED,
    MOST_MATCHERS,
    MOST_NAMES,
    MOST_RETRIES,
    MOST_TRIED,
    RETRIES_OF_MANY,
    matchers,
)
from translation.safety.records import safe_records

ALL, PRESET = Options(), Options(plugins="reviewed")


def record(kind: RecordKind, **fields: Any) -> Record:
    return Record(RecordKey(kind, "x"), "default_web_a", fields)


def nodes(number: int) -> list[JsonObject]:
    return [{"host": f"2001:db8::{index:x}", "port": 80, "weight": 1} for index in range(number)]


def judged(*records: Record, options: Options = PRESET) -> tuple[list[JsonObject], list[str]]:
    got, problems = safe_records(records, options)
    return [dict(each.body) for each in got], [problem.message for problem in problems]


@pytest.mark.parametrize("options", [ALL, PRESET])
def test_an_upstream_with_too_many_retries_has_no_nodes(options: Options) -> None:
    good, bad = (record("upstreams", nodes=nodes(1), retries=MOST_RETRIES + more) for more in (0, 1))
    found = record("upstreams", service_name="a", discovery_type="dns", retries=MOST_RETRIES + 1)

    bodies, messages = judged(good, bad, found, options=options)

    assert bodies == [good.body, {**bad.body, "nodes": []}, {"retries": MOST_RETRIES + 1, "nodes": []}]
    assert [message.partition(" is more")[0] for message in messages] == ["upstream default_web_a: retries"] * 2


def test_not_all_of_many_nodes_are_tried() -> None:
    few, many = record("upstreams", nodes=nodes(MOST_TRIED)), record("upstreams", nodes=nodes(MOST_TRIED + 1))
    own = record("upstreams", nodes=nodes(MOST_TRIED + 1), retries=3)
    large = record("upstreams", nodes=nodes(MOST_TRIED + 1), retries=MOST_RETRIES)

    got, problems = safe_records([few, many, own, large], PRESET)

    assert (got[0] is few, got[2] is own) == (True, True)
    assert [got[1].body["retries"], got[3].body["retries"]] == [RETRIES_OF_MANY] * 2
    assert problems == ()
    assert safe_records([many], ALL) == ((many,), ())


@pytest.mark.parametrize(
    "active",
    [
        {"type": "http", "http_path": "/"},
        {"http_path": "/"},
        {"type": "https"},
        {"type": "tcp", "timeout": 86400},
        {"type": "tcp", "concurrency": 1000},
    ],
    ids=str,
)
def test_checks_that_a_server_can_keep_open_are_left_out(active: JsonObject) -> None:
    """A gateway starts the next probes each second, even if the earlier ones have not ended."""
    given = record("upstreams", nodes=nodes(2), checks={"active": active, "passive": {}})

    bodies, messages = judged(given)

    assert bodies == [{"nodes": given.body["nodes"]}]
    assert [message.startswith("upstream default_web_a: checks are left out") for message in messages] == [True]
    assert judged(given, options=ALL) == ([given.body], [])


def test_an_upstream_with_many_names_has_no_nodes() -> None:
    """A gateway resolves all of them, one after the other, before it sends a request."""
    few, many = (
        record("upstreams", nodes=[{"host": f"x{n}.test", "port": 80, "weight": 1} for n in range(number)] + nodes(9))
        for number in (MOST_NAMES, MOST_NAMES + 1)
    )

    bodies, messages = judged(few, many)

    assert bodies == [few.body, {"nodes": []}]
    assert [f"more than {MOST_NAMES} host names" in message for message in messages] == [True]
    assert judged(many, options=ALL) == ([many.body], [])


def test_many_nodes_are_not_checked() -> None:
    checks = {"active": {"type": "tcp"}}
    few, many = (record("upstreams", nodes=nodes(MOST_CHECKED + more), retries=1, checks=checks) for more in (0, 1))

    bodies, messages = judged(few, many)

    assert bodies == [few.body, {"nodes": many.body["nodes"], "retries": 1}]
    assert [message[:47] for message in messages] == ["upstream default_web_a: checks are left out, si"]


def test_a_split_has_few_nodes() -> None:
    def split(number: int) -> Record:
        targets = [{"upstream": {"nodes": {f"a{index}.test:80": 1 for index in range(number)}}}]
        return record("routes", uris=["/*"], plugins={"traffic-split": {"rules": [{"weighted_upstreams": targets}]}})

    assert judged(split(MOST_NAMES))[1] == []
    assert ["has more than 20 nodes" in message for message in judged(split(MOST_NAMES + 1))[1]] == [True]
    assert judged(split(MOST_NAMES + 1), options=ALL)[1] == []


def crowd(hosts: int, **fields: Any) -> Record:
    return record("routes", uris=["/*"], hosts=[f"h{index}.test" for index in range(hosts)], plugins={}, **fields)


def test_the_matchers_of_an_object_are_limited() -> None:
    addresses = [f"10.0.{index // 250}.{index % 250}" for index in range(MOST_MATCHERS // 100)]
    full, alone = crowd(50, remote_addrs=addresses), crowd(0, vars=[["remote_addr", "ipmatch", addresses[1:]]])
    last = crowd(2, vars=[["a", "==", 1]])

    bodies, messages = judged(*[full], *[alone] * 50, crowd(2), last)

    closed = {"fault-injection": {"abort": {"http_status": 503}}}
    assert [body["plugins"] for body in bodies] == [{}] * 52 + [closed]
    assert "vars" not in bodies[-1]
    assert [message.partition(" too many")[0] for message in messages] == ["route default_web_a: vars are"]
    assert judged(crowd(MOST_MATCHERS, remote_addrs=["10.0.0.1", "10.0.0.2"]), options=ALL)[1] == []


def test_the_longer_list_of_a_crowded_route_is_named() -> None:
    given = crowd(MOST_MATCHERS, remote_addrs=["10.0.0.1"] * 9, vars=[["a", "==", 1]])

    assert "remote_addrs are too many" in judged(given)[1][0]


@pytest.mark.parametrize(
    ("conditions", "want"),
    [
        ([], 0),
        ([["uri", "==", "/"]], 1),
        ([["OR", ["a", "==", 1], ["b", "!", "~~", "^/"]], ["c", "in", ["x", "y"]]], 5),
        ([["remote_addr", "!", "ipmatch", ["10.0.0.1"]]], 2),
        ([["AND", ["OR", ["a", "==", 1], ["b", "==", 2]]]], 2),
    ],
)
def test_conditions_count_with_the_items_of_their_lists(conditions: list[Any], want: int) -> None:
    assert sum(matchers({"hosts": ["a", "b"], "vars": conditions}).values()) == 2 * want
