"""The response to a request: plugins in the order of the gateway, destinations, and what the response depends on."""

from __future__ import annotations

from typing import Any

import pytest

from apisix_ingress.explain.request import parse_request
from apisix_ingress.explain.response import Response, respond
from apisix_ingress.model.keys import RecordKey

NODES = [{"host": "10.0.0.1", "port": 80, "weight": 1}]
ABORT = {"fault-injection": {"abort": {"http_status": 503}}}


def got(plugins: dict[str, Any], url: str = "http://a.org/x?q=1", **request: Any) -> Response:
    asked = parse_request(url, **request)
    return respond(asked, {"uri": "/*", "upstream": {"nodes": NODES}, "plugins": plugins}, {})


@pytest.mark.parametrize(
    ("plugins", "status", "location"),
    [
        ({"redirect": {"http_to_https": True}}, 301, "https://a.org/x?q=1"),
        ({"redirect": {"uri": "/y${uri}", "append_query_string": True}}, 302, "/y/x?q=1"),
        ({"redirect": {"regex_uri": ["^/(x)$", "https://b.org/$1/"], "ret_code": 308}}, 308, "https://b.org/x/"),
        (
            {
                "proxy-rewrite": {"use_real_request_uri_unsafe": True, "regex_uri": ["^(.*?)/?$", "$1"]},
                "redirect": {"uri": "https://$host$upstream_uri", "ret_code": 308},
            },
            308,
            "https://a.org/x?q=1",
        ),
        ({"redirect": {"uri": "/$request_id"}}, 302, "/$request_id"),
    ],
)
def test_redirects_have_a_status_and_a_location(plugins: dict[str, Any], status: int, location: str) -> None:
    found = got(plugins)
    assert (found.kind, found.status, found.location, found.depends_on) == ("redirect", status, location, ())


@pytest.mark.parametrize(
    ("plugins", "status"),
    [
        ({**ABORT, "redirect": {"uri": "/y"}}, 503),
        ({"redirect": {"uri": "/y"}, "ip-restriction": {"blacklist": ["192.0.2.0/24"]}}, 302),
        ({"key-auth": {}, "ip-restriction": {"blacklist": ["192.0.2.0/24"]}}, 401),
        ({"ip-restriction": {"blacklist": ["192.0.2.0/24"]}, "workflow": {"rules": []}}, 403),
        ({**ABORT, "response-rewrite": {"status_code": 299}}, 299),
        ({**ABORT, "response-rewrite": {"status_code": 299, "vars": [["status", "==", "200"]]}}, 503),
        ({"fault-injection": {"abort": {"http_status": 503, "vars": [[["arg_q", "==", "2"]]]}}}, None),
        ({"fault-injection": {"abort": {"http_status": 503}, "_meta": {"disable": True}}}, None),
        ({"workflow": {"rules": [{"case": [["arg_q", "==", "1"]], "actions": [["return", {"code": 410}]]}]}}, 410),
        ({"uri-blocker": {"block_rules": ["^/x"]}}, 403),
    ],
)
def test_plugins_respond_in_the_order_of_the_gateway(plugins: dict[str, Any], status: int | None) -> None:
    found = got(plugins, remote_addr="192.0.2.1")
    assert (found.status, found.depends_on) == (status, ())


@pytest.mark.parametrize(
    "plugins",
    [
        {"limit-count": {"count": 1}},
        {"serverless-pre-function": {"functions": []}},
        {"fault-injection": {"abort": {"http_status": 503, "percentage": 1}}},
        {"ip-restriction": {"whitelist": ["192.0.2.0/24"]}},
        {"response-rewrite": {"status_code": 299, "vars": [["status", "==", "200"]]}},
        {"uri-blocker": {"block_rules": ["("]}},
    ],
)
def test_unknown_responses_are_not_claimed(plugins: dict[str, Any]) -> None:
    found = got(plugins)
    assert (found.kind, found.status, len(found.depends_on)) == ("backend", None, 1)


def test_only_the_selected_targets_of_a_traffic_split_are_destinations() -> None:
    targets = [{"upstream_id": "canary", "weight": 1}, {"weight": 0}]
    rules = [{"match": [{"vars": [["http_x", "==", "1"]]}], "weighted_upstreams": targets}]
    route = {"uri": "/*", "upstream_id": "own", "plugins": {"traffic-split": {"rules": rules}}}
    records = {RecordKey("upstreams", name): {"nodes": NODES} for name in ("own", "canary")}

    chosen = {
        value: [
            each.key.id
            for each in respond(parse_request("a.org", headers=headers), route, records).destinations
            if each.key
        ]
        for value, headers in {"without": (), "with": ("X: 1",)}.items()
    }
    assert chosen == {"without": ["own"], "with": ["canary"]}


def test_a_global_rule_responds_before_a_route_is_chosen() -> None:
    found = respond(parse_request("a.org"), None, {}, [{"plugins": ABORT}])
    assert (found.status, found.plugin) == (503, "fault-injection")


def test_patterns_of_users_are_not_evaluated_where_time_is_short() -> None:
    plugins = {"uri-blocker": {"block_rules": ["^/x"]}}
    found = respond(parse_request("a.org/x"), {"upstream": {"nodes": NODES}, "plugins": plugins}, {}, patterns=False)
    assert (found.kind, found.depends_on) == (
        "backend",
        ("uri-blocker may respond itself: patterns are not evaluated",),
    )
