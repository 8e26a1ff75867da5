"""The tree: its hierarchy, its filters, and its three formats."""

from typing import Any

import pytest

from apisix_ingress.diagnostics.reports.tree import Wanted, covers, pods_by_address, tree_document
from apisix_ingress.diagnostics.reports.tree_render import dot_lines, mermaid_lines, text_lines
from apisix_ingress.model.keys import ObjectKey, RecordKey
from apisix_ingress.model.objects import Pod
from tests.factories import make_key, make_meta

WEB, OTHER = make_key(), make_key("other")
SERVICE = make_key("web", kind="Service")
ROUTE, SPLIT = RecordKey("routes", "1"), RecordKey("routes", "2")
STABLE, CANARY = RecordKey("upstreams", "a"), RecordKey("upstreams", "b")
STREAM = RecordKey("stream_routes", "s")


def wanted() -> Wanted:
    """Return two routes, a stream route, two upstreams and a pod."""
    split = {"traffic-split": {"rules": [{"weighted_upstreams": [{"upstream_id": "b", "weight": 1}, {"weight": 9}]}]}}
    records: dict[RecordKey, dict[str, Any]] = {
        ROUTE: {"name": "one", "hosts": ["a.example.org", "*.b.example.org"], "uris": ["/", "/x"], "upstream_id": "a"},
        SPLIT: {"name": "two", "uri": "/x", "priority": 5, "methods": ["GET"], "vars": [["a", "==", "b"]]}
        | {"host": "a.example.org", "upstream_id": "a", "plugins": split},
        STABLE: {"name": "stable", "nodes": [{"host": "10.0.0.1", "port": 80, "weight": 100}]},
        CANARY: {"name": "canary", "nodes": []},
        STREAM: {"name": "tcp", "server_port": 9100, "upstream_id": "gone"},
    }
    owners = {ROUTE: WEB, SPLIT: OTHER, STABLE: SERVICE, CANARY: make_key("canary", kind="Service"), STREAM: WEB}
    return Wanted(records, owners, pods_by_address([Pod(make_meta("Pod", "web-1"), ("10.0.0.1",))]))


def paths(document: Any) -> dict[str, dict[str, list[str]]]:
    """Return host → path → routes."""
    return {
        host["host"]: {path["path"]: [route["record"] for route in path["routes"]] for path in host["paths"]}
        for host in document["hosts"]
    }


def test_routes_are_listed_by_host_and_path_in_matching_order() -> None:
    assert paths(tree_document(wanted())) == {
        "*.b.example.org": {"/": ["routes/1"], "/x": ["routes/1"]},
        "a.example.org": {"/": ["routes/1"], "/x": ["routes/2", "routes/1"]},
    }


def test_a_route_leads_to_its_upstreams_and_these_to_pods_with_their_owners() -> None:
    (host,) = (each for each in tree_document(wanted())["hosts"] if each["host"] == "a.example.org")
    split = host["paths"][1]["routes"][0]
    assert (split["owner"], split["methods"], split["priority"], split["conditions"]) == (str(OTHER), ["GET"], 5, 1)
    stable, canary = split["upstreams"]
    assert stable["nodes"] == [{"address": "10.0.0.1:80", "weight": 100, "pod": "Pod default/web-1"}]
    assert (stable["owner"], canary["nodes"], canary["missing"]) == (str(SERVICE), [], False)


def test_paths_of_the_same_routes_are_one_branch_of_the_text() -> None:
    lines = list(text_lines(tree_document(wanted())))
    assert lines[:2] == ["*.b.example.org", "└─ /, /x"]
    assert sum("routes/1 " in line for line in lines) == 3


def test_a_stream_route_is_shown_with_its_port_and_an_upstream_that_is_missing() -> None:
    (stream,) = tree_document(wanted())["streams"]
    assert (stream["port"], stream["owner"], stream["upstreams"][0]["missing"]) == (9100, str(WEB), True)


def test_a_route_of_a_gateway_shows_its_listener() -> None:
    found = wanted()
    body = {**found.records[ROUTE], "name": "HTTPRoute_default_app_0_1_Gateway_infra_gw_https"}
    found = Wanted({**found.records, ROUTE: body}, found.owners, found.pod)
    assert "(listener https of Gateway infra/gw)" in "\n".join(text_lines(tree_document(found)))


def test_a_host_shows_the_routes_for_its_requests() -> None:
    document = tree_document(wanted(), host="X.b.example.org")
    assert (list(paths(document)), document["streams"]) == (["*.b.example.org"], [])


@pytest.mark.parametrize(
    ("about", "routes"),
    [
        (OTHER, {"routes/2"}),
        (SERVICE, {"routes/1", "routes/2"}),
        (make_key("canary", kind="Service"), {"routes/2"}),
        (make_key("web-1", kind="Pod"), {"routes/1", "routes/2"}),
        (make_key("nobody"), set()),
    ],
)
def test_an_object_shows_the_routes_that_lead_to_it(about: ObjectKey, routes: set[str]) -> None:
    found = paths(tree_document(wanted(), about=about))
    assert {record for host in found.values() for path in host.values() for record in path} == routes


@pytest.mark.parametrize(
    ("pattern", "host", "want"),
    [
        ("", "a.org", True),
        ("a.org", "a.org", True),
        ("*.a.org", "b.a.org", True),
        ("*.a.org", "a.org", False),
        ("*.a.org", "*.a.org", True),
        ("b.org", "a.org", False),
    ],
)
def test_a_host_is_covered_as_a_gateway_matches_it(pattern: str, host: str, want: bool) -> None:
    assert covers(pattern, host) is want


def test_text_draws_branches() -> None:
    assert list(text_lines(tree_document(wanted(), about=OTHER))) == [
        "a.example.org",
        "└─ /x",
        "   └─ routes/2 two (GET; priority 5; 1 condition) by ApisixRoute default/other",
        "      ├─ upstreams/a stable by Service default/web",
        "      │  └─ 10.0.0.1:80 by Pod default/web-1",
        "      └─ upstreams/b canary by Service default/canary: no nodes",
    ]


def test_graphs_have_each_record_once_and_an_edge_for_each_way_to_it() -> None:
    document = tree_document(wanted())
    dot, mermaid = list(dot_lines(document)), list(mermaid_lines(document))
    assert sum("routes/1 " in line for line in dot) == sum("routes/1 " in line for line in mermaid) == 1
    assert sum("->" in line for line in dot) == sum("-->" in line for line in mermaid) == 15


def test_a_name_ends_no_label_of_a_graph_and_no_line() -> None:
    odd = {"name": 'a"]; b\n<script>`#', "uri": "/", "upstream_id": "a"}
    document = tree_document(Wanted({ROUTE: odd}, {}, pods_by_address([])))
    (line,) = (each for each in dot_lines(document) if "routes/1" in each)
    assert line == '  n2 [label="routes/1 a\\"]; b\\\\n<script>`#", shape=box];'
    (line,) = (each for each in mermaid_lines(document) if "routes/1" in each)
    assert line == '  n2["routes/1 a#34;]; b#92;n#60;script#62;#96;#35;"]'


def test_a_route_shows_what_the_gateway_itself_responds() -> None:
    moved = {"name": "one", "host": "a.example.org", "uri": "/x", "plugins": {"redirect": {"http_to_https": True}}}
    closed = {"name": "two", "host": "a.example.org", "uri": "/y"}
    found = Wanted({ROUTE: moved, SPLIT: closed}, {}, pods_by_address([]))

    (host,) = tree_document(found)["hosts"]

    assert [route["responds"] for path in host["paths"] for route in path["routes"]] == [
        "301 → https://a.example.org/",
        "503: it has no upstream",
    ]
