"""Closing records of rejected routes."""

from typing import Any

import orjson

from apisix_ingress.model.keys import RecordKey
from apisix_ingress.model.records import Record, comparable
from translation.closing import ABORT, closings, is_closed, requests_of

KEY = RecordKey("routes", "r1")
IDENTITY = {"id": "r1", "name": "ns_web_admin", "desc": "d", "labels": {"managed-by": "x"}}
SERVED = {"upstream_id": "u1", "plugin_config_id": "p1", "timeout": {"read": 1}, "enable_websocket": True}


def bodies(**fields: Any) -> list[dict[str, Any]]:
    return [dict(each.body) for each in closings(Record(KEY, "ns_web_admin", {**IDENTITY, **fields}))]


def test_a_closing_record_has_the_match_and_the_identity_of_its_route() -> None:
    match = {
        "uris": ["/admin", "/admin/*"],
        "hosts": ["a.example"],
        "methods": ["GET"],
        "vars": [["arg_x", "==", "1"]],
        "remote_addrs": ["10.0.0.0/8"],
        "priority": 7,
    }
    got = bodies(**match, **SERVED, plugins={"key-auth": {}})
    assert got[:2] == [{**IDENTITY, **match, "plugins": ABORT}, {**IDENTITY, **match, "plugins": {}}]


def test_if_a_condition_may_be_the_reason_the_path_of_a_guarded_route_is_closed_for_every_request() -> None:
    got = bodies(
        uris=["/a/*/b", "/a/*", "/c"], host="a.example", vars=[["x", "?"]], filter_func="f", plugins={"key-auth": {}}
    )
    whole = {**IDENTITY, "uris": ["/a/*", "/c"], "host": "a.example"}
    assert got[2:] == [{**whole, "plugins": ABORT}, {**whole, "plugins": {}}]


def test_the_conditions_of_a_route_without_a_guard_stay() -> None:
    match = {"uri": "/a*", "vars": [["x", "?"]]}
    assert bodies(**match, upstream_id="u1") == [{**IDENTITY, **match, "plugins": plugins} for plugins in (ABORT, {})]


def test_other_kinds_have_no_closing_record() -> None:
    for kind in ("stream_routes", "upstreams", "plugin_configs", "ssls", "consumers", "global_rules"):
        assert list(closings(Record(RecordKey(kind, "x"), "x", {"id": "x"}))) == []


def test_a_closing_record_refers_to_nothing_and_keeps_its_hosts() -> None:
    first = next(closings(Record(KEY, "n", {**IDENTITY, "uri": "/a", "hosts": ["A.example"], **SERVED})))
    assert (first.key, first.name, first.refs, first.hosts) == (KEY, "n", frozenset(), ("a.example",))


def test_closing_records_are_recognized_as_sent_and_as_compared() -> None:
    for each in closings(Record(KEY, "n", {**IDENTITY, "uri": "/a", "plugins": {"key-auth": {}}})):
        assert is_closed(each.body)
        assert is_closed(orjson.loads(comparable("routes", each.body)))


def test_routes_that_serve_are_not_closed() -> None:
    served = ({"plugins": {}, "upstream_id": "u"}, {"plugins": ABORT, "plugin_config_id": "p"}, {"upstream_id": "u"})
    other = {"plugins": {"fault-injection": {"abort": {"http_status": 503, "percentage": 50}}}}
    assert [is_closed(body) for body in (*served, other)] == [False] * 4


def test_requests_are_named_by_host_and_path() -> None:
    few = {"hosts": ["a.example"], "uris": ["/a", "/a/*"]}
    many = {"uris": [f"/{number}" for number in range(9)]}
    want = ["a.example, /a /a/*", "every host, /0 /1 /2 and 6 more", "b.example, /"]
    assert [requests_of(body) for body in (few, many, {"host": "b.example", "uri": "/"})] == want
